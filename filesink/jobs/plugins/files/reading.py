"""The ``FileSource`` that the options of a source mean, and the rows of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import filesink
from filesink.buckets.partition_paths import partition_values
from filesink.errors import JobError, StorageError
from filesink.jobs.model.column_types import ddl, quoted, sql_text
from filesink.jobs.model.schema import Schema
from filesink.jobs.plugins.api import Run
from filesink.jobs.plugins.files.archives import Archived
from filesink.jobs.plugins.files.headers import CsvBelowHeader
from filesink.jobs.plugins.files.lines import LinesBelowHeader, TextFields
from filesink.jobs.plugins.files.places import Place
from filesink.jobs.plugins.files.reading_options import FileReading
from filesink.jobs.plugins.transforms.columns import check_columns
from filesink.naming import parent, shown
from filesink.source.directories import Root, locate, root_of
from filesink.source.enumerators import RecursiveFileEnumerator
from filesink.storage.api import Entry, Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from filesink.source.files import SourceFile
    from formats.api import ReadableFormat

_LINES = frozenset({"text", "json"})  # read as lines, which Spark takes apart


def read_files(reading: FileReading, place: Place, run: Run) -> DataFrame:
    """The rows of the files that options mean; an empty directory has none.

    Raises:
        JobError: ``JOB_VALUE``; there are files, and the schema that their format needs has no columns.
    """
    if not run.env.is_stream and _is_empty(root_of(place.address(reading.path), place.storage(run))):
        run.say(f"'{shown(reading.path)}' is an empty directory: no rows")
        columns = reading.schema_.ddl if reading.schema_ is not None and reading.has_columns else "STRUCT<>"
        return run.spark.createDataFrame([], columns)
    if reading.format == "json" and not reading.has_columns:
        raise JobError(f"'schema' has no columns, and '{shown(reading.path)}' has files", code="JOB_VALUE")
    frame = _source(reading, place, run)
    if reading.format in _LINES and reading.schema_ is not None and reading.has_columns:
        frame = _of_lines(reading, frame, reading.schema_)
    elif _columns(reading):
        frame = frame.selectExpr(*_converted(reading, frame))
    if not reading.partitions and reading.schema_ is not None and reading.has_columns:
        frame = frame.select(*map(quoted, reading.schema_.arrow.names))
    if reading.wanted:
        check_columns(frame, reading.wanted, "read_columns")
        beside = _partitions(reading, place.address(reading.path), place.storage(run))
        kept = [name for name in beside if name in frame.columns and name not in reading.wanted]
        frame = frame.select(*map(quoted, (*reading.wanted, *kept)))
    return frame


def _is_empty(root: Root) -> bool:
    """Whether it is a directory that has nothing in it, not even what is hidden; one that is gone is not."""
    file = root.as_file()
    if root.pattern or file is None or next(iter(_scanned(root)), None) is not None:
        return False
    name = file.pattern[0]
    return any(one.name == name and one.kind is Kind.DIRECTORY for one in _scanned(file))


def _scanned(root: Root) -> Iterator[Entry]:
    try:
        yield from root.open().scan("")
    except (StorageError, FileNotFoundError):  # the source tells it, in words of its own
        return


def _of_lines(reading: FileReading, frame: DataFrame, schema: Schema) -> DataFrame:
    """Columns of lines, and those of directories behind them."""
    partitions = [quoted(name) for name in frame.columns if name != "value"]
    if reading.format == "text":
        return frame.selectExpr(*_fields(reading).columns(schema.arrow), *partitions)
    options = "map('mode', 'FAILFAST')"
    record = f"from_json(value, {sql_text(schema.ddl)}, {options}) AS record"
    columns = [f"record.{quoted(name)}" for name in schema.arrow.names]
    return frame.where("trim(value) <> ''").selectExpr(record, *partitions).selectExpr(*columns, *partitions)


def _partitions(reading: FileReading, address: str, storage: Mapping[str, Any]) -> list[str]:
    """Columns that directories have and the schema lacks, by the first file that is found."""
    if not reading.partitions:
        return []
    roots = (root_of(address, storage),)
    first = next(iter(RecursiveFileEnumerator().enumerate_files(roots)), None)
    directory = "" if first is None else parent(locate(roots, first.path)[1])
    names = [name for name, _ in partition_values(directory)]
    known = set(reading.schema_.arrow.names) if reading.schema_ is not None and reading.has_columns else ()
    return [name for name in names if name not in known]


def _source(reading: FileReading, place: Place, run: Run) -> DataFrame:
    address = place.address(reading.path)
    builder = _begun(reading, address).with_storage_options(**place.storage(run))
    if reading.name_pattern:
        accepts = Named(pattern=reading.name_pattern)
        builder = builder.set_file_enumerator(RecursiveFileEnumerator(accepts=accepts))
    # Lines are one column, also of a directory whose sink knows others.
    columns = ["value STRING"] if reading.format in _LINES else _columns(reading)
    if columns:
        beside = [f"{quoted(name)} STRING" for name in _partitions(reading, address, place.storage(run))]
        builder = builder.with_schema(", ".join([*columns, *beside]))
    if not run.env.is_stream and reading.format == "orc" and reading.archive == "none":
        # With a column more it is read in Python: Spark's own reader refuses timestamps of Java's ORC where
        # they are TIMESTAMP_NTZ, as Arrow has them.
        found: DataFrame = builder.with_metadata_columns("_file").build().read(run.spark)
        return found.drop("_file")
    if not run.env.is_stream:
        batch: DataFrame = builder.build().read(run.spark)
        return batch
    builder = builder.monitor_continuously(max(run.env.checkpoint_interval, 1))
    builder = builder.with_state_location(f"{run.directory}/found")
    if run.env.bytes_per_second:
        seconds = max(run.env.checkpoint_interval // 1000, 1)
        builder = builder.with_max_bytes_per_trigger(run.env.bytes_per_second * seconds)
    stream: DataFrame = builder.build().read_stream(run.spark)
    return stream


def _begun(reading: FileReading, address: str) -> Any:
    form = _reader(reading)
    if reading.archive != "none":
        return filesink.FileSource.for_record_stream_format(
            Archived(inner=form, archive=reading.archive), address
        )
    if reading.format in {"parquet", "orc", "excel", "xml"}:
        return filesink.FileSource.for_bulk_file_format(form, address)
    return filesink.FileSource.for_record_stream_format(form, address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Takes files by their names; goes to the tasks."""

    pattern: str

    def __call__(self, file: SourceFile) -> bool:
        """Whether the whole name fits."""
        return re.fullmatch(self.pattern, file.path.rsplit("/", 1)[-1]) is not None


def _reader(reading: FileReading) -> Any:  # noqa: PLR0911 - a table
    match reading.format:
        case "text" if reading.skipped:
            return LinesBelowHeader(charset=reading.encoding, skipped=reading.skipped)
        case "text":
            return filesink.StreamFormat.text_line_format(reading.encoding)
        case "csv":
            return _csv(reading.delimiter or ",", reading)
        case "json":
            return filesink.StreamFormat.text_line_format(reading.encoding)
        case "avro":
            return filesink.Encoder.avro()
        case "parquet":
            return filesink.ParquetWriterFactory()
        case "orc":
            return filesink.OrcBulkWriterFactory()
        case "excel":
            return filesink.ExcelWriterFactory()
        case "xml":
            layout: Literal["attributes", "elements"] = (
                "attributes" if reading.xml_use_attr_format else "elements"
            )
            return filesink.XmlWriterFactory(row_tag=reading.xml_row_tag, layout=layout)


def _csv(delimiter: str, reading: FileReading) -> ReadableFormat:
    placed = filesink.Encoder.csv(delimiter, charset=reading.encoding)
    if not reading.skipped:
        return placed
    named = filesink.Encoder.csv(delimiter, True, charset=reading.encoding)  # noqa: FBT003 - its second word
    return CsvBelowHeader(named=named, placed=placed, delimiter=delimiter, charset=reading.encoding)


#: What sheets, XML and CSV hold as texts, since they have no such type.
_AS_TEXT = ("map<", "array<", "struct<", "binary", "decimal", "timestamp")


def _columns(reading: FileReading) -> Sequence[str]:
    """The columns that the format is asked for: those of the schema, nested ones of flat formats as texts."""
    if reading.schema_ is None or not reading.has_columns or reading.format in _LINES:
        return ()
    flat = reading.format in {"csv", "excel", "xml"}
    as_text = ("",) if reading.format == "excel" else _AS_TEXT if flat else ("\0",)
    kinds = {field.name: ddl(field.type) for field in reading.schema_.arrow}
    return [
        f"{quoted(name)} {'STRING' if kind.lower().startswith(as_text) else kind}"
        for name, kind in kinds.items()
    ]


def _converted(reading: FileReading, frame: DataFrame) -> list[str]:
    """Columns in the types of the schema; those that a flat format held as text are read from it."""
    assert reading.schema_ is not None  # noqa: S101 - only called with one
    kinds = {field.name: ddl(field.type) for field in reading.schema_.arrow}
    found = []
    for name, given in frame.dtypes:
        kind = kinds.get(name, "")
        nested = kind.startswith(("MAP<", "ARRAY<", "STRUCT<"))
        if given != "string" or kind in {"", "STRING"}:
            found.append(quoted(name))
        elif nested:
            text = kind.replace("'", "\\'")
            found.append(f"from_json({quoted(name)}, '{text}') AS {quoted(name)}")
        else:
            # A sheet may hold 1 as 1.0.
            value = f"CAST({quoted(name)} AS DECIMAL(38, 9))" if kind in _WHOLE else quoted(name)
            found.append(f"CAST({value} AS {kind}) AS {quoted(name)}")
    return found


_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def _fields(reading: FileReading) -> TextFields:
    return TextFields(
        delimiter=_unescaped(reading.delimiter) or "\x01",
        date_format=reading.date_format,
        timestamp_format=reading.timestamp_format,
    )


def _unescaped(delimiter: str) -> str:
    r"""SeaTunnel takes the delimiter for a pattern of Java's: ``\\|`` is a bar."""
    return re.sub(r"\\(.)", lambda found: {"t": "\t"}.get(found[1], found[1]), delimiter)
