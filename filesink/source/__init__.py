"""Reading: which files there are, how they are cut and grouped into tasks, and what a task makes of them.

No Spark here; ``data_source`` drives it. Uses ``storage``, ``inventory`` and the ground, and ``formats``.
``discovery`` remembers which files of a directory were found, ``reading`` turns splits into record batches.
"""
