"""Formats: what turns Arrow record batches into the bytes of a file, and back.

Knows bytes and records. Has never heard of buckets, commits, Spark or stores, and imports nothing of
``filesink``. One folder for each format. A format may use the modules beside the folders, ``text`` and
``compressed``, and no other format.
"""

from formats.api import (
    BaseEncoder,
    BinaryOutput,
    BulkWriter,
    BulkWriterFactory,
    ReadableFormat,
    RowEncoder,
    Split,
)
from formats.arrow_ipc.writer import ArrowWriterFactory
from formats.avro.writer import AvroWriterFactory
from formats.compressed.writer import CompressWriterFactory
from formats.encoders import Encoder
from formats.errors import FormatError, LimitError
from formats.excel.writer import ExcelWriterFactory
from formats.orc.writer import OrcBulkWriterFactory, OrcIndexes
from formats.parquet.encryption import ParquetEncryption
from formats.parquet.layout import ParquetLayout
from formats.parquet.writer import ParquetWriterFactory
from formats.read_limits import ReadLimits, bounded
from formats.sequence_file.writer import SequenceFileWriterFactory
from formats.text.lines import LineEncoder
from formats.xml.writer import XmlWriterFactory

__all__ = [
    "ArrowWriterFactory",
    "AvroWriterFactory",
    "BaseEncoder",
    "BinaryOutput",
    "BulkWriter",
    "BulkWriterFactory",
    "CompressWriterFactory",
    "Encoder",
    "ExcelWriterFactory",
    "FormatError",
    "LimitError",
    "LineEncoder",
    "OrcBulkWriterFactory",
    "OrcIndexes",
    "ParquetEncryption",
    "ParquetLayout",
    "ParquetWriterFactory",
    "ReadLimits",
    "ReadableFormat",
    "RowEncoder",
    "SequenceFileWriterFactory",
    "Split",
    "XmlWriterFactory",
    "bounded",
]
