"""A Hive metastore, over Thrift from the driver. The only place that imports its client.

May use ``metastore.api``, ``metastore.service_errors`` and the ground. ``types`` is pure: any metastore has
Hive's names of types.
"""
