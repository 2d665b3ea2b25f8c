"""Erasure: rows that a condition names are taken out of all files, and it is proved that they are.

May use what ``filesink.operations`` may. Without Spark. No value of a record or of a condition is kept.
"""
