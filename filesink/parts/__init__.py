"""The life of part files: from records to in-progress, pending and held files, and their merging.

May use ``buckets``, ``api``, ``ledger`` for the form of records, ``storage`` and ``formats``. Decides
nothing: what becomes visible is the business of ``commit``.
"""
