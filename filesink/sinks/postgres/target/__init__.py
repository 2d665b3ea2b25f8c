"""The table that rows go to: what the catalog says, its columns, the statements that fill it, its epochs.

May use ``connection``, values of ``settings`` and ``committables``, and ``copy`` for types; knows neither
tasks nor committers.
"""
