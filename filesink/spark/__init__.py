"""Spark drives the sink API: batch writes, streams, timers. Knows no files.

May use ``commit``, ``api`` and the ground. Only this room and ``data_source`` import pyspark.
"""
