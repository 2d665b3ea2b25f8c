"""What segments hold: rows of files and of epochs, as Arrow tables and as Parquet.

Pure; touches no store. May use pyarrow, ``errors``, and of ``inventory`` only its values: ``entry``, ``mark``
and ``names``.
"""
