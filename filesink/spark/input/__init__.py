"""A DataFrame as the input of an epoch: one job, its columns, sizes of batches, the session's settings."""
