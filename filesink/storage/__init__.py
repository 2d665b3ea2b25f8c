"""Stores: one contract (``api``), one room for each kind, and ``open``, which chooses by the path.

May use the ground only. Each client of a store is imported in its room and nowhere else.
"""
