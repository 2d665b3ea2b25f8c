"""A table of a metastore as a destination: which directory, which format, which buckets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from filesink.buckets import BucketAssigner
from filesink.errors import ConfigError, MetastoreConflictError
from filesink.file_format import BulkFormat, FileFormat, RowFormat
from filesink.metastore.api import Metastore, Table, TableKind, TableName, no_table
from filesink.metastore.table_formats import hive_format_of
from formats.avro import AvroWriterFactory
from formats.csv import CsvDialect, CsvEncoder, Header
from formats.errors import FormatError
from formats.json_lines import JsonLinesEncoder
from formats.orc import OrcBulkWriterFactory
from formats.parquet import ParquetWriterFactory

_CSV_SERDE = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
_PROVIDER = "spark.sql.sources.provider"
_HEADER_LINES = "skip.header.line.count"
_FOOTER_LINES = "skip.footer.line.count"

_FORMATS: Mapping[str, Callable[[], FileFormat]] = MappingProxyType(
    {
        "parquet": lambda: BulkFormat(ParquetWriterFactory()),
        "orc": lambda: BulkFormat(OrcBulkWriterFactory()),
        "avro": lambda: BulkFormat(AvroWriterFactory()),
        "json": lambda: RowFormat(JsonLinesEncoder()),
    }
)


def find_table(name: str, metastore: Metastore) -> Table:
    """The table that a sink is made for.

    Raises:
        MetastoreConflictError: ``TABLE_NOT_FOUND``; ``NOT_A_TABLE``, a view or a transactional table.
    """
    parsed = TableName.parse(name)
    table = metastore.get_table(parsed)
    if table is None:
        raise no_table(parsed)
    if table.kind is TableKind.OTHER or not table.location:
        raise MetastoreConflictError(f"{parsed} is no table that has files", code="NOT_A_TABLE")
    if table.parameters.get("transactional", "").lower() == "true":
        raise MetastoreConflictError(
            f"{parsed} is transactional: its readers see only files that Hive's own transactions have put "
            "into delta directories. Name a table without the property 'transactional'",
            code="NOT_A_TABLE",
        )
    return table


def format_of(table: Table) -> FileFormat:
    """What writes files that the table's readers understand.

    Raises:
        ConfigError: ``TABLE_FORMAT``; there is nothing, or readers would skip some of its lines.
    """
    if table.format.serde == _CSV_SERDE:
        _check_skipped_lines(table, headers=("0", "1"))
        return RowFormat(_csv(table))
    word = table.parameters.get(_PROVIDER) or hive_format_of(table.format) or ""
    make = _FORMATS.get(word.lower())
    if make is None:
        raise ConfigError(
            f"nothing here writes what the serde of {table.name} reads, "
            f"{table.format.serde.rpartition('.')[2]}. Use a table of Parquet, ORC, Avro or JSON, or of CSV "
            "with OpenCSVSerde; or choose a format yourself, with FileSink.for_row_format or for_bulk_format "
            "and a MetastorePolicy",
            code="TABLE_FORMAT",
        )
    form = make()
    if isinstance(form, RowFormat):
        _check_skipped_lines(table, headers=("0",))
    return form


def assigner_of(table: Table) -> BucketAssigner:
    """Directories as the table's partition keys want them."""
    keys = [key.name for key in table.partition_keys]
    if not keys:
        return BucketAssigner.base_path_bucket_assigner()
    return BucketAssigner.partition_bucket_assigner(*keys)


def _csv(table: Table) -> CsvEncoder:
    """As ``OpenCSVSerde`` reads; its defaults are those of the library behind it."""
    options = table.format.serde_parameters
    try:
        dialect = CsvDialect(
            delimiter=options.get("separatorChar", ","),
            quote=options.get("quoteChar", '"'),
            escape=options.get("escapeChar", "\\"),
        )
    except FormatError as error:
        raise ConfigError(
            f"the CSV of {table.name} cannot be written: {error}", code="TABLE_FORMAT"
        ) from error
    header: Header = "none" if table.parameters.get(_HEADER_LINES, "0") == "0" else "names"
    return CsvEncoder(dialect=dialect, header_mode=header)


def _check_skipped_lines(table: Table, *, headers: Collection[str]) -> None:
    """Raise if readers would take records for lines of a header or footer, and skip them.

    Args:
        table: one of text files.
        headers: the numbers of header lines that can be written.
    """
    for name, possible in ((_HEADER_LINES, headers), (_FOOTER_LINES, ("0",))):
        lines = table.parameters.get(name, "0")
        if lines not in possible:
            raise ConfigError(
                f"readers of {table.name} skip lines of each file ({name}={lines[:20]}), and the files here "
                f"would have records there; it may be {' or '.join(possible)}. Change this property of the "
                "table, or use another table",
                code="TABLE_FORMAT",
            )
