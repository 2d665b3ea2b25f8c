"""The life of part files: from records to in-progress, pending and held files, and their merging.

Here is what tasks do and what committers need; ``stages`` is what the driver does with parts. May use
``buckets``, ``api``, ``storage``, ``formats``, and of ``ledger`` its records and the names of chains. Never
decides an epoch: ``commit`` does.
"""
