"""Spark drives the sink API. The only modules of filesink that import pyspark."""
