"""Copies of a whole path: files, ledgers and inventory, so that the copy is a sink itself.

May use what ``filesink.operations`` may. Without Spark.
"""
