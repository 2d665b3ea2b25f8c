"""Which files of a directory were found already: a log of its own, and 16 bytes a path in memory."""
