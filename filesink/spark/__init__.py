"""Spark drives the sink API: batch writes, streams, timers. Knows no files and no formats.

May use ``commit`` (not its ``committer``), ``api``, ``ledger`` and the ground; never ``parts``, ``storage``
or ``formats``. Only this room and ``data_source`` import pyspark at run time. ``input`` and ``catalog``
have their own rules.
"""
