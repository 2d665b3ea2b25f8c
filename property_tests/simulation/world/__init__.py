"""The simulated machine: disk, objects, clock, processes that take turns, and what goes wrong with a call.

Knows nothing of rows, ledgers or Spark, and imports nothing of the simulation outside of this room.
"""
