"""A Hive metastore, in Thrift from the driver. The only place that imports its client."""
