"""The life of part files: from records to in-progress, pending and held files, and their merging.

Here is what tasks do and what committers need; ``stages`` is what the driver does with parts. May use
``buckets``, ``api``, ``ledger`` for the form of records, ``storage`` and ``formats``. Decides nothing: that
is ``commit``'s business.
"""
