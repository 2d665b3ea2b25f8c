"""Makes an inventory for a path that was written without one, or whose inventory is damaged.

May use what ``inventory`` may, and ``inventory`` itself, which does not know this room.
"""
