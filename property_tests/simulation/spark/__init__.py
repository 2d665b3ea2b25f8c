"""Spark as a sink meets it: drivers, tasks with attempts, checkpoints, the data source, and their trouble.

May use ``world``, ``workload`` and ``observer``.
"""
