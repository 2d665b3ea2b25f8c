"""Which directory a record goes to: assigners, the names they make, and the routing of a batch.

Pure: no files, no stores, no clock. May use ``filesink.api``, ``filesink.storage.bucket_ids`` for what a
directory may be called, and the values on the ground (``local_time``, ``arguments``).
"""
