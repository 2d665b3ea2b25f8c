"""ORC: writer, reader, and what pyarrow leaves out of the tail of a file.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
"""
