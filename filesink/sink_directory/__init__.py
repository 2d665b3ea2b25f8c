"""The public face of what a path holds: sinks, snapshots, epochs, columns. Without Spark, and read only.

Whoever reads what sinks have written, a source, an export, a command line, uses this room and nothing
behind it. May use ``inventory``, ``metastore`` and what is below; decides and publishes nothing. Only
``adopt`` writes.
"""
