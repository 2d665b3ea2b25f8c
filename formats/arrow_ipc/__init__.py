"""Arrow's own file format (IPC): writer and reader of record batches.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
"""
