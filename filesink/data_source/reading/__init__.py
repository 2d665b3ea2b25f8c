"""``format("filesink")`` reads: Spark plans and runs the tasks, ``source`` knows files and records."""
