"""What segments hold: rows of files and of epochs, as Arrow tables and as Parquet. Pure; touches no store."""
