"""The file sink as an engine sees it: its three tiers put together, its reports, tables as its destination.

May use everything below (``commit``, ``metastore``, ``parts``, ``buckets``, ``ledger``, ``storage``), and
never Spark.
"""
