"""What people do to a sink by hand, without Spark: recovery, sweeping, giving up, taking back.

May use ``file_sink``, ``commit`` and below, and never Spark; but ``open_path`` takes the settings of a
session that is active. A restart of a stream needs none of it.
"""
