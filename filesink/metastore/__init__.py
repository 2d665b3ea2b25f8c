"""Tables and partitions: what a metastore holds, and when the sink tells it."""
