"""A table of a metastore as a destination: which directory, which format, which buckets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BaseBucketAssigner
from filesink.errors import ConfigError, MetastoreConflictError
from filesink.metastore.api import Metastore, Table, TableName, check_metastore, no_table
from filesink.metastore.tables.formats import hive_format_of, is_csv, names_of_spark, spark_provider
from filesink.metastore.tables.kinds import check_kind
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from formats.avro.writer import AvroWriterFactory
from formats.csv.dialect import CsvDialect
from formats.csv.encoder import CsvEncoder
from formats.csv.options import Header
from formats.errors import FormatError
from formats.json.encoder import JsonLinesEncoder
from formats.orc.writer import OrcBulkWriterFactory
from formats.parquet.writer import ParquetWriterFactory

_READ_AS_BACKSLASH = '"'  # OpenCSVSerde takes this escape, its default, for a word of its library's own
_HEADER_LINES = "skip.header.line.count"
_FOOTER_LINES = "skip.footer.line.count"
# Options of Spark's tables that say where files are, how to write them, or what becomes of bad lines.
_HARMLESS = frozenset(
    {"path", "serialization.format", "compression", "ignorenullfields", "mode", "columnnameofcorruptrecord"}
)

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
        ConfigError: ``TABLE_NAME``, ``BAD_VALUE``.
        MetastoreConflictError: ``TABLE_NOT_FOUND``, and those of ``check_kind``.
    """
    parsed = TableName.parse(name)
    table = check_metastore(metastore).get_table(parsed)
    if table is None:
        raise no_table(parsed)
    check_kind(table)
    if not table.location:
        raise MetastoreConflictError(
            f"{parsed} is not a table that has files; name another one", code="NOT_A_TABLE"
        )
    return _as_spelled(table)


def _as_spelled(table: Table) -> Table:
    """``table`` with its keys in the case that Spark has given its directories."""
    spelled = names_of_spark(table)
    keys = [replace(key, name=spelled.get(key.name.lower(), key.name)) for key in table.partition_keys]
    return replace(table, partition_keys=tuple(keys))


def format_of(table: Table) -> FileFormat:
    """What writes files that the table's readers understand.

    Raises:
        ConfigError: ``TABLE_FORMAT``; there is nothing, or readers would skip some of its lines, or take
            them for something else.
    """
    if is_csv(table.format):
        _check_skipped_lines(table, headers=("0", "1"))
        return RowFormat(_csv(table))
    word = spark_provider(table) or hive_format_of(table.format) or ""
    make = _FORMATS.get(word)
    if make is None:
        serde, reader = (name.rpartition(".")[2] for name in (table.format.serde, table.format.input_format))
        raise ConfigError(
            f"there is no writer for files that {serde} and {reader} of {table.name} read. Use a table of "
            "Parquet, ORC, Avro or JSON, or of CSV with OpenCSVSerde; or choose a format yourself, with "
            "FileSink.for_row_format or for_bulk_format and a MetastorePolicy",
            code="TABLE_FORMAT",
        )
    form = make()
    if isinstance(form, RowFormat):
        _check_skipped_lines(table, headers=("0",))
        _check_options(table)
    return form


def assigner_of(table: Table) -> BaseBucketAssigner:
    """Directories as the table's partition keys want them."""
    keys = [key.name for key in table.partition_keys]
    if not keys:
        return BucketAssigner.base_path_bucket_assigner()
    return BucketAssigner.partition_bucket_assigner(*keys)


def _csv(table: Table) -> CsvEncoder:
    """As ``OpenCSVSerde`` reads; its defaults are those of the library behind it.

    Every field is quoted: outside of quotes it takes an escape character for one, too.
    """
    options = table.format.serde_parameters
    escape = options.get("escapeChar", _READ_AS_BACKSLASH)
    try:
        dialect = CsvDialect(
            delimiter=options.get("separatorChar", ","),
            quote=options.get("quoteChar", '"'),
            escape="\\" if escape == _READ_AS_BACKSLASH else escape,
            quote_mode="all",
        )
    except FormatError as error:
        raise ConfigError(
            f"the CSV of {table.name} cannot be written: {error}", code="TABLE_FORMAT"
        ) from error
    header: Header = "none" if table.parameters.get(_HEADER_LINES, "0") == "0" else "names"
    return CsvEncoder(dialect=dialect, header_mode=header)


def _check_options(table: Table) -> None:
    """Raise if a table of Spark's own has options that change how its lines are read."""
    if spark_provider(table) is None:
        return
    for name, value in table.format.serde_parameters.items():
        if name.lower() not in _HARMLESS:
            raise ConfigError(
                f"readers of {table.name} follow its option {name}={value[:20]!r}, and the files would be "
                "written without it. Use a table made without this option, or choose a format yourself, with "
                "FileSink.for_row_format and a MetastorePolicy",
                code="TABLE_FORMAT",
            )


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
                f"readers of {table.name} skip lines of each file ({name}={lines[:20]}), where the files "
                f"would have records; it may be {' or '.join(possible)}. Change this property of the "
                "table, or use another table",
                code="TABLE_FORMAT",
            )
