"""The catalog of the Spark session as a metastore, and columns in the order of its tables."""
