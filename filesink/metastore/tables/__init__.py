"""What a table of a metastore says: columns, formats, readers, partitions. Pure; asks nobody."""
