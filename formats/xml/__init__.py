"""XML of flat records: writer and reader.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
"""
