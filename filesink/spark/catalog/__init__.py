"""The catalog of the Spark session as a metastore, and columns in the order of its tables.

May use ``metastore``, ``buckets`` and the ground, and of ``spark`` only ``arguments``. Knows no epochs.
"""
