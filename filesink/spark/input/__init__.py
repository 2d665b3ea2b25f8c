"""A DataFrame as the input of an epoch: one job, its columns, sizes of batches, the session's settings.

May use pyspark and pyarrow, ``api``, the task of ``commit``, and the ground; nothing else of ``spark``.
"""
