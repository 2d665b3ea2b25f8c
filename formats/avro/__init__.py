"""Avro object container files: types, values, blocks and codecs, written and read."""
