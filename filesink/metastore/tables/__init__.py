"""What a table of a metastore says: columns, formats, readers, partitions. Pure; asks nobody.

May use ``metastore.api``, ``policies``, ``locations`` and ``hive.types``, and no client of a metastore.
"""
