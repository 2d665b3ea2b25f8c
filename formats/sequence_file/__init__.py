"""Hadoop's SequenceFile and its Writables: writer and reader of keys and values.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
"""
