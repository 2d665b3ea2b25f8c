"""Parquet: writer, layout, encryption, reader."""
