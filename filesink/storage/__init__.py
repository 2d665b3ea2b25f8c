"""Stores: one contract (``api``), one room for each kind, and ``open``, which chooses by the path.

May use the ground, and of ``formats`` only its type of buffers. No store may use another;
``objects`` is what the object stores share. Each client of a store is imported in its room and nowhere else.
"""
