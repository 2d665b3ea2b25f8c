"""Options of a source of files, and the ``FileSource`` that they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

import filesink
from filesink.buckets.partition_paths import partition_values
from filesink.jobs.model.column_types import ddl, quoted, sql_text
from filesink.jobs.model.env import Mode
from filesink.jobs.model.options import Names, Options, option
from filesink.jobs.model.schema import Schema
from filesink.jobs.plugins.api import Run
from filesink.jobs.plugins.files.lines import LinesBelowHeader, TextFields
from filesink.jobs.plugins.files.places import Place
from filesink.jobs.plugins.transforms.columns import check_columns
from filesink.naming import parent
from filesink.source.directories import locate, root_of
from filesink.source.enumerators import RecursiveFileEnumerator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from filesink.source.files import SourceFile

Format = Literal["text", "csv", "json", "parquet", "orc", "excel", "xml", "avro"]
_OF_SINKS = "it says how files are written, and this one reads"
_LINES = frozenset({"text", "json"})  # read as lines, which Spark takes apart
_NEED_SCHEMA = frozenset({"csv", "json", "excel", "xml"})
LZO = "nothing here reads or writes lzo, whose library is under the GPL; take zstd or gzip"


def _lower(given: Any) -> Any:
    return given.lower() if isinstance(given, str) else given


def _format(given: Any) -> Any:
    found = _lower(given)
    if found == "binary":
        raise PydanticCustomError(
            "binary", "binary files are copied as they are: Spark has no rows of them; use distcp or rclone"
        )
    return found


def _codec(given: Any) -> Any:
    found = _lower(given)
    if found == "lzo":
        raise PydanticCustomError("lzo", LZO)
    return found


FormatOption = Annotated[Format, BeforeValidator(_format)]
CodecOption = Annotated[str, BeforeValidator(_codec)]


class FileReading(Options):
    """What a source of files is told beside where they lie."""

    refused = {
        "archive_compress_codec": "files inside of archives are not read; unpack them first",
        "null_format": "an empty field is null",
    }
    harmless = {"archive_compress_codec": ("none", "NONE"), "null_format": ("",)}
    without_effect = {
        "row_delimiter": "lines end with \\n, \\r\\n or \\r",
        "partition_dir_expression": _OF_SINKS,
        "is_partition_field_write_in_file": _OF_SINKS,
        "file_name_expression": _OF_SINKS,
        "filename_time_format": _OF_SINKS,
        "is_enable_transaction": _OF_SINKS,
        "csv_use_header_line": "skip_header_row_number = 1 says it",
        "time_format": "Spark has no times of day",
        "sheet_name": "all sheets are read",
        "xml_root_tag": "records are found by xml_row_tag",
        "discovery_mode": "a stream always goes on with files that come",
    }

    path: str = option(doc="A directory, a file, or a pattern.")
    format: FormatOption = option(doc="Of the files.", words=("file_format_type",))
    schema_: Schema | None = option(
        None, doc="The columns, for formats that do not know them.", words=("schema",)
    )
    delimiter: str = option("", doc="Between fields.", words=("field_delimiter", "delimiter"))
    skipped: int = option(
        0, doc="Lines before the first record.", unit="lines", words=("skip_header_row_number",), ge=0
    )
    wanted: Names = option((), doc="Columns that are read.", words=("read_columns",))
    partitions: bool = option(
        default=True, doc="Whether directories k=v are columns.", words=("parse_partition_from_path",)
    )
    name_pattern: str = option(
        "", doc="A regular expression for names of files.", words=("file_filter_pattern",)
    )
    encoding: str = option("UTF-8", doc="Of text, CSV.")
    codec: CodecOption = option("none", doc="Read off the names of files.", words=("compress_codec",))
    date_format: str = option("", doc="Of dates in text.")
    timestamp_format: str = option("", doc="Of timestamps in text.", words=("datetime_format",))
    xml_row_tag: str = option("RECORD", doc="The element of a record.")
    xml_use_attr_format: bool = option(default=False, doc="Whether columns are attributes.")

    @model_validator(mode="after")
    def _fits(self) -> FileReading:
        if self.format in _NEED_SCHEMA and not self.has_columns:
            raise PydanticCustomError(
                "schema", "needs 'schema', since {format} has none", {"format": self.format}
            )
        if self.encoding.upper() not in {"UTF-8", "UTF8"} and self.format not in {"text", "csv", "json"}:
            raise PydanticCustomError(
                "encoding", "{format} has an encoding of its own", {"format": self.format}
            )
        if self.skipped > 1 and self.format in {"csv", "excel"}:
            raise PydanticCustomError("header", "a header of {format} is one line", {"format": self.format})
        if self.format == "excel" and self.skipped == 0:
            raise PydanticCustomError("header", "sheets have a header here; write skip_header_row_number = 1")
        try:
            re.compile(self.name_pattern)
        except re.error:
            raise PydanticCustomError("pattern", "file_filter_pattern is no regular expression") from None
        return self

    @property
    def has_columns(self) -> bool:
        """Whether the columns are given."""
        return self.schema_ is not None and self.schema_.has_columns


def read_files(reading: FileReading, place: Place, run: Run) -> DataFrame:
    """The rows of the files that options mean."""
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
    form, address = _reader(reading), place.address(reading.path)
    begin = (
        filesink.FileSource.for_bulk_file_format
        if reading.format in {"parquet", "orc", "excel", "xml"}
        else filesink.FileSource.for_record_stream_format
    )
    builder = begin(form, address).with_storage_options(**place.storage(run))
    if reading.name_pattern:
        accepts = Named(pattern=reading.name_pattern)
        builder = builder.set_file_enumerator(RecursiveFileEnumerator(accepts=accepts))
    # Lines are one column, also of a directory whose sink knows others.
    columns = ["value STRING"] if reading.format in _LINES else _columns(reading)
    if columns:
        beside = [f"{quoted(name)} STRING" for name in _partitions(reading, address, place.storage(run))]
        builder = builder.with_schema(", ".join([*columns, *beside]))
    if run.env.mode is Mode.BATCH and reading.format == "orc":
        # With a column more it is read in Python: Spark's own reader refuses timestamps of Java's ORC where
        # they are TIMESTAMP_NTZ, as Arrow has them.
        return builder.with_metadata_columns("_file").build().read(run.spark).drop("_file")
    if run.env.mode is Mode.BATCH:
        return builder.build().read(run.spark)
    builder = builder.monitor_continuously(max(run.env.checkpoint_interval, 1))
    builder = builder.with_state_location(f"{run.directory}/found")
    if run.env.bytes_per_second:
        seconds = max(run.env.checkpoint_interval // 1000, 1)
        builder = builder.with_max_bytes_per_trigger(run.env.bytes_per_second * seconds)
    return builder.build().read_stream(run.spark)


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
            header = reading.skipped == 1
            return filesink.Encoder.csv(reading.delimiter or ",", header, charset=reading.encoding)
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
