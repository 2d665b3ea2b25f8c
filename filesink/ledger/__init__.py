"""What is durable about a sink: records, completions, claims, layouts, and who may write where.

Every byte below ``_filesink/`` is written here: ``ledger`` is one chain, ``history`` looks at it, ``folding``
keeps it small. May use ``storage`` and the ground; knows nothing of parts, buckets or formats: what a sink
puts into a record is opaque here.
"""
