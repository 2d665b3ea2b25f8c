"""One directory and every reader: after each epoch, and after each kill, all engines read the same rows.

``python -m property_tests.one_directory BASE --epochs 50 --kills 200`` writes a history with partitions, more
columns, compactions and overwrites, and exports each version. Drivers are processes that get SIGKILL inside
of epochs and of exports. Engines are processes, too, so that each may have an environment of its own:
``--engine duckdb-delta=/path/to/python``.
"""
