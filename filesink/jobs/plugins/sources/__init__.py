"""Sources: made-up rows, files through ``FileSource``, and what Spark itself reads."""
