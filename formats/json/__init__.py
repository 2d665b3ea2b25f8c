"""JSON lines: one object for each record, with the values of Spark's ``to_json``.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
"""
