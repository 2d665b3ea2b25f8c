"""Comma-separated values: dialects, writer and reader.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
"""
