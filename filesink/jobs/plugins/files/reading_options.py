"""Options of a source of files."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from filesink.jobs.model.options import Names, Options, option
from filesink.jobs.model.schema import Schema
from filesink.jobs.plugins.files.archives import Archive

Format = Literal["text", "csv", "json", "parquet", "orc", "excel", "xml", "avro"]
_OF_SINKS = "it says how files are written, and this one reads"
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
ArchiveOption = Annotated[Archive | Literal["none"], BeforeValidator(_lower)]


class FileReading(Options):
    """What a source of files is told beside where they lie."""

    refused = {"null_format": "an empty field is null"}
    harmless = {"null_format": ("",)}
    without_effect = {
        "row_delimiter": "lines end with \\n, \\r\\n or \\r",
        "partition_dir_expression": _OF_SINKS,
        "is_partition_field_write_in_file": _OF_SINKS,
        "file_name_expression": _OF_SINKS,
        "filename_time_format": _OF_SINKS,
        "is_enable_transaction": _OF_SINKS,
        "csv_use_header_line": "skip_header_row_number = 1 says it",
        "time_format": "a time of day is read as text",
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
    archive: ArchiveOption = option(
        "none", doc="What kind of archives hold the files.", words=("archive_compress_codec",)
    )
    date_format: str = option("", doc="Of dates in text.")
    timestamp_format: str = option("", doc="Of timestamps in text.", words=("datetime_format",))
    xml_row_tag: str = option("RECORD", doc="The element of a record.")
    xml_use_attr_format: bool = option(default=False, doc="Whether columns are attributes.")

    @model_validator(mode="after")
    def _fits(self) -> FileReading:
        is_empty = self.schema_ is not None and self.format == "json"  # of an empty directory
        if self.format in _NEED_SCHEMA and not self.has_columns and not is_empty:
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
