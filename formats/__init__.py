"""Formats: what turns Arrow record batches into the bytes of a file, and back.

Knows bytes and records. Has never heard of buckets, commits, Spark or stores.
"""

from formats.api import BinaryOutput, BulkWriter, BulkWriterFactory, Encoder, RowEncoder
from formats.arrow_ipc import ArrowWriterFactory
from formats.avro import AvroWriterFactory
from formats.compressed import CompressWriterFactory
from formats.errors import FormatError, LimitError
from formats.excel import ExcelWriterFactory
from formats.limits import ReadLimits, bounded
from formats.orc import OrcBulkWriterFactory, OrcIndexes
from formats.parquet import ParquetWriterFactory
from formats.parquet_encryption import ParquetEncryption
from formats.parquet_layout import ParquetLayout
from formats.sequence_file import SequenceFileWriterFactory
from formats.xml import XmlWriterFactory

__all__ = [
    "ArrowWriterFactory",
    "AvroWriterFactory",
    "BinaryOutput",
    "BulkWriter",
    "BulkWriterFactory",
    "CompressWriterFactory",
    "Encoder",
    "ExcelWriterFactory",
    "FormatError",
    "LimitError",
    "OrcBulkWriterFactory",
    "OrcIndexes",
    "ParquetEncryption",
    "ParquetLayout",
    "ParquetWriterFactory",
    "ReadLimits",
    "RowEncoder",
    "SequenceFileWriterFactory",
    "XmlWriterFactory",
    "bounded",
]
