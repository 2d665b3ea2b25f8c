"""Options of a sink of files, and the ``FileSink`` that they mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

import filesink
from filesink.jobs.model.column_types import quoted
from filesink.jobs.model.options import Names, Options, option
from filesink.jobs.plugins.api import Run
from filesink.jobs.plugins.files.exporting import ExportNames, IcebergTable, exporters
from filesink.jobs.plugins.files.lines import TextFields
from filesink.jobs.plugins.files.places import Place
from filesink.jobs.plugins.files.reading_options import CodecOption, FormatOption
from filesink.jobs.plugins.transforms.columns import check_columns
from filesink.spark.input.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION_DIRECTORIES = re.compile(r"\$\{k(\d+)\}=\$\{v\1\}")
_PARQUET = ("none", "snappy", "gzip", "lz4", "brotli", "zstd")
_AVRO = {"none": "null", "snappy": "snappy", "zstd": "zstandard"}  # to Avro's words
_CODECS = {
    "parquet": _PARQUET,
    "orc": ("none", "snappy", "lz4", "zlib", "zstd"),
    "avro": tuple(_AVRO),
}
_UPPER = BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given)


class FileWriting(Options):
    """What a sink of files is told beside where they lie."""

    refused = {
        "single_file_mode": "each task writes a file of its own; compaction makes few of many",
        "create_empty_file_when_no_data": "a file without rows is not written",
        "preserve_source_filename": "names are filesink's, so that no file is ever replaced",
        "schema_evolution_enabled": "columns of a job do not change while it runs",
        "merge_update_event": "there are no kinds of rows",
        "is_enable_transaction": "every epoch is a transaction",
        "parquet_avro_write_fixed_as_int96": "Spark and others read 64-bit timestamps",
        "parquet_avro_write_timestamp_as_int96": "Spark and others read 64-bit timestamps",
    }
    harmless = {
        "is_enable_transaction": (True, "true"),
        **dict.fromkeys(
            (
                "single_file_mode", "create_empty_file_when_no_data", "preserve_source_filename",
                "schema_evolution_enabled", "merge_update_event", "parquet_avro_write_timestamp_as_int96",
            ),
            (False, "false"),
        ),
        "parquet_avro_write_fixed_as_int96": ([],),
    }  # fmt: skip
    without_effect = {
        "time_format": "Spark has no times of day",
        "tmp_path": "files wait beside their final place, under hidden names",
        "custom_filename": "names are filesink's, so that no file is ever replaced",
        "filename_time_format": "names are filesink's, so that no file is ever replaced",
        "have_partition": "partition_by says it",
        "multi_table_sink_replica": "tables are written one after the other",
        "max_rows_in_memory": "memory is bounded by bytes",
        "file_exists_mode": "no file is ever replaced",
    }

    path: str = option(doc="A directory; ${table_name} is the name of the table.")
    format: FormatOption = option("csv", doc="Of the files.", words=("file_format_type",))
    codec: CodecOption = option(
        "", doc="Of Parquet, ORC and Avro; the best one by default.", words=("compress_codec",)
    )
    partition_by: Names = option((), doc="Columns that become directories k=v.")
    partition_directories: str = option("", doc="Only ${k0}=${v0}/….", words=("partition_dir_expression",))
    partition_in_file: bool = option(
        default=False,
        doc="Whether the files have these columns, too.",
        words=("is_partition_field_write_in_file",),
    )
    columns: Names = option((), doc="Columns that are written, in this order.", words=("sink_columns",))
    name_expression: str = option(
        "",
        doc="What stands before its first ${…} begins the names of files.",
        words=("file_name_expression",),
    )
    extension: str = option("", doc="Ends the names of files.", words=("filename_extension",))
    most_rows: int | None = option(None, doc="Of a file.", unit="rows", words=("batch_size",), ge=1)
    delimiter: str = option("", doc="Between fields.", words=("field_delimiter",))
    row_delimiter: Literal["\n", ""] = option("\n", doc="Lines end with a line feed.")
    header: bool = option(
        default=False, doc="Whether files begin with names of columns.", words=("enable_header_write",)
    )
    encoding: str = option("UTF-8", doc="Of text, CSV and JSON.")
    quote_mode: Annotated[
        Literal["minimal", "all", "none"], BeforeValidator(lambda given: str(given).lower())
    ] = option("minimal", doc="Of CSV.", words=("csv_string_quote_mode",))
    date_format: str = option("", doc="Of dates in text and CSV.")
    timestamp_format: str = option("", doc="Of timestamps in text and CSV.", words=("datetime_format",))
    sheet_name: str = option("Sheet", doc="Of Excel.")
    sheet_max_rows: int = option(1_048_576, doc="Of Excel.", unit="rows", ge=2, le=1_048_576)
    xml_root_tag: str = option("RECORDS", doc="The outermost element.")
    xml_row_tag: str = option("RECORD", doc="The element of a record.")
    xml_use_attr_format: bool = option(default=False, doc="Whether columns are attributes.")
    schema_save_mode: Annotated[
        Literal["RECREATE_SCHEMA", "CREATE_SCHEMA_WHEN_NOT_EXIST", "IGNORE"], _UPPER
    ] = option("CREATE_SCHEMA_WHEN_NOT_EXIST", doc="Directories are made as they are needed.")
    data_save_mode: Annotated[Literal["APPEND_DATA", "DROP_DATA", "ERROR_WHEN_DATA_EXISTS"], _UPPER] = option(
        "APPEND_DATA", doc="What becomes of the rows that are there: DROP_DATA replaces them at the commit."
    )
    exports: ExportNames = option((), doc="What is kept beside the files: the log of a table, or lists.")
    iceberg: IcebergTable | None = option(None, doc="A table of Iceberg over the files.")

    @model_validator(mode="after")
    def _fits(self) -> FileWriting:
        codecs = _CODECS.get(self.format, ("none",))
        if self.codec and self.codec not in codecs:
            raise PydanticCustomError(
                "codec",
                "{format} takes the codecs {codecs}",
                {"format": self.format, "codecs": ", ".join(codecs)},
            )
        if not self.is_utf8 and self.format not in {"text", "csv", "json"}:
            raise PydanticCustomError("encoding", "{format} is always UTF-8", {"format": self.format})
        if self.header and self.format == "text":
            raise PydanticCustomError("header", "text has no header; take csv with field_delimiter")
        if self.format != "parquet" and ("delta" in self.exports or self.iceberg is not None):
            raise PydanticCustomError(
                "tables", "{format} is no table of Delta or Iceberg; take parquet", {"format": self.format}
            )
        return self

    @model_validator(mode="after")
    def _has_a_place(self) -> FileWriting:
        pieces = self.partition_directories.strip("/").split("/") if self.partition_directories else []
        if not all(_PARTITION_DIRECTORIES.fullmatch(piece) for piece in pieces):
            raise PydanticCustomError(
                "directories", "partition_dir_expression has to be ${k0}=${v0}/…, as Hive has it"
            )
        if self.name_expression and not re.search(r"\$\{(transactionId|uuid)\}", self.name_expression):
            raise PydanticCustomError(
                "names", "file_name_expression needs ${transactionId} or ${uuid}, or names would meet"
            )
        if self.schema_save_mode == "RECREATE_SCHEMA" and self.data_save_mode == "APPEND_DATA":
            raise PydanticCustomError(
                "modes", "RECREATE_SCHEMA would remove the rows that APPEND_DATA keeps; write DROP_DATA"
            )
        return self

    @property
    def is_utf8(self) -> bool:
        """Whether texts are in the charset that every format writes."""
        return self.encoding.upper() in {"UTF-8", "UTF8"}

    @property
    def is_of_lines(self) -> bool:
        """Whether Spark makes the lines: the encoder of JSON only writes UTF-8."""
        return self.format == "text" or (self.format == "json" and not self.is_utf8)


def laid_out(writing: FileWriting, frame: DataFrame) -> DataFrame:
    """The columns that are written, in their order; for text as one line."""
    if writing.columns:
        check_columns(frame, [*writing.columns, *writing.partition_by], "sink_columns")
        frame = frame.select(*map(quoted, writing.columns))
    check_columns(frame, writing.partition_by, "partition_by")
    if writing.format in {"csv", "excel", "xml"}:
        return frame.selectExpr(*_flat(writing, frame))
    if not writing.is_of_lines:
        return frame
    schema = arrow_schema(frame.schema)
    kept = [field for field in schema if writing.partition_in_file or field.name not in writing.partition_by]
    partitions = map(quoted, writing.partition_by)
    if writing.format == "json":
        record = f"struct({', '.join(quoted(field.name) for field in kept)})"
        return frame.selectExpr(f"to_json({record}, map('ignoreNullFields', 'false')) AS value", *partitions)
    fields = TextFields(
        delimiter=writing.delimiter or "\x01",
        date_format=writing.date_format,
        timestamp_format=writing.timestamp_format,
    )
    return frame.selectExpr(fields.line(kept), *partitions)


def _flat(writing: FileWriting, frame: DataFrame) -> list[str]:
    """Columns as flat formats have them: nested ones as JSON, and times in sheets without a zone."""
    found = []
    for name, kind in frame.dtypes:
        column = quoted(name)
        if kind.startswith(("map<", "array<", "struct<")):
            found.append(f"to_json({column}) AS {column}")
        elif kind == "binary":
            found.append(f"CAST({column} AS STRING) AS {column}")
        elif kind == "timestamp" and writing.format == "excel":
            found.append(f"CAST({column} AS TIMESTAMP_NTZ) AS {column}")
        else:
            found.append(column)
    return found


def address_of(writing: FileWriting, place: Place, table: str) -> str:
    """The base path of a table."""
    return place.address(writing.path.replace("${table_name}", table))


def file_sink(writing: FileWriting, place: Place, run: Run, table: str) -> Any:
    """The builder of the sink."""
    path = address_of(writing, place, table)
    if writing.format in {"parquet", "orc", "excel", "xml"}:
        builder = filesink.FileSink.for_bulk_format(path, _factory(writing))
    else:
        builder = filesink.FileSink.for_row_format(path, _encoder(writing))
    builder = builder.with_storage_options(**place.storage(run))
    if writing.most_rows:
        policy = filesink.RollingPolicy.on_checkpoint_rolling_policy(max_rows=writing.most_rows)
        builder = builder.with_rolling_policy(policy)
    prefix = re.split(r"\$\{", writing.name_expression, maxsplit=1)[0].rstrip("-_.")
    extension = writing.extension or ("json" if writing.format == "json" and writing.is_of_lines else "")
    if prefix or extension:
        suffix = f".{extension.lstrip('.')}" if extension else None
        names = filesink.OutputFileConfig(part_prefix=prefix or "part", part_suffix=suffix)
        builder = builder.with_output_file_config(names)
    for exporter in exporters(writing.exports, writing.iceberg, run, table):
        builder = builder.with_export(exporter)
    return builder.with_bucket_assigner(_assigner(writing))


def _assigner(writing: FileWriting) -> Any:
    if not writing.partition_by:
        return filesink.BucketAssigner.base_path_bucket_assigner()
    assigner = filesink.BucketAssigner.partition_bucket_assigner(*writing.partition_by)
    return (
        assigner.with_columns_in_file() if writing.partition_in_file and not writing.is_of_lines else assigner
    )


def _factory(writing: FileWriting) -> Any:
    compression: dict[str, Any] = {"compression": writing.codec} if writing.codec else {}
    match writing.format:
        case "parquet":
            return filesink.ParquetWriterFactory(**compression)
        case "orc":
            return filesink.OrcBulkWriterFactory(**compression)
        case "excel":
            return filesink.ExcelWriterFactory(
                sheet_name=writing.sheet_name, sheet_max_rows=writing.sheet_max_rows
            )
        case _:
            return filesink.XmlWriterFactory(
                root_tag=writing.xml_root_tag,
                row_tag=writing.xml_row_tag,
                layout="attributes" if writing.xml_use_attr_format else "elements",
            )


def _encoder(writing: FileWriting) -> Any:
    match writing.format:
        case "text" | "json" if writing.is_of_lines:
            return filesink.Encoder.simple_string_encoder(writing.encoding)
        case "json":
            return filesink.Encoder.json_lines()
        case "avro":
            codec: Any = _AVRO[writing.codec or "snappy"]
            return filesink.Encoder.avro(codec)
        case _:
            return filesink.Encoder.csv(
                writing.delimiter or ",",
                writing.header,
                quote_mode=writing.quote_mode,
                date_format=writing.date_format or None,
                timestamp_format=writing.timestamp_format or None,
                charset=writing.encoding,
            )
