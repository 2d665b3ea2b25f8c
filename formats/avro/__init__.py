"""Avro object container files: types, values, blocks and codecs, written and read.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
Only here fastavro is imported.
"""
