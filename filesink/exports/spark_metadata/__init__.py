"""``_spark_metadata``: the log of Spark's own file sink, from which Spark reads a path without listing it."""
