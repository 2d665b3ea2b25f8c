"""What a task makes of its splits: record batches with the columns that were asked for."""
