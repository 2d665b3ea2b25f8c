"""What has happened below a base path, in one order, and which files are live at each moment of it.

One inventory for all sinks of the path: versions 1, 2, 3 …, each an epoch of some chain. May use ``parts``,
``ledger`` and ``storage``; knows nothing of how epochs are committed, nor of Spark. Every byte below
``_filesink/_inventory/`` is written here; ``docs/inventory.md`` is its specification.
"""
