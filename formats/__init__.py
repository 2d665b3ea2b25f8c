"""Formats: what turns Arrow record batches into the bytes of a file, and back.

Knows bytes and records. Has never heard of buckets, commits, Spark or stores.
"""

from formats.api import BinaryOutput, BulkWriter, BulkWriterFactory, Encoder, RowEncoder
from formats.avro import AvroWriterFactory
from formats.errors import FormatError
from formats.parquet import ParquetWriterFactory

__all__ = [
    "AvroWriterFactory",
    "BinaryOutput",
    "BulkWriter",
    "BulkWriterFactory",
    "Encoder",
    "FormatError",
    "ParquetWriterFactory",
    "RowEncoder",
]
