"""HDFS, by its own protocol or over HTTP. The only place that imports its clients."""
