"""``FileSource``: files back as DataFrames, of a sink's directory or of any other.

How it is used:

    source = FileSource.for_bulk_file_format(ParquetWriterFactory(), "/data/flights").build()
    df = source.read(spark)

    lines = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/in")
        .monitor_continuously("10 s")
        .with_state_location("/data/state/in")
        .build()
    )
    stream = lines.read_stream(spark)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from filesink.arguments import instance_of, not_built
from filesink.data_source.reading.native import native_read
from filesink.data_source.reading.planned import check_session, register_plan
from filesink.errors import ConfigError
from filesink.source.builder import SourceBuilder
from filesink.source.directories import root_of
from filesink.source.reading.plan import METADATA, RESCUED, BadRecords, Reading
from filesink.source.source_plan import Following, SourcePlan
from filesink.spark.input.s3a import SessionOptions
from formats.api import BulkWriterFactory, ReadableFormat
from formats.text.line_format import TextLineFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Path = str | os.PathLike[str]

_SQL = {"string": "STRING", "int64": "BIGINT"}


class StreamFormat:
    """Formats of records that follow one another, under PyFlink's name."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> ReadableFormat:
        """Lines of text, however they end, as one column ``value``."""
        return TextLineFormat(charset=charset_name)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileSourceBuilder(SourceBuilder):
    """Collects what a ``FileSource`` is made of. Immutable: every method returns a new builder."""

    def read(self, *_: object, **__: object) -> NoReturn:
        """Not here: ``build()`` makes the source that reads."""
        raise not_built("read", of="source")

    def read_stream(self, *_: object, **__: object) -> NoReturn:
        """Not here: ``build()`` makes the source that reads."""
        raise not_built("read_stream", of="source")

    def build(self) -> FileSource:
        """The source. Nothing is listed or opened before it is used."""
        return FileSource(self)

    def __repr__(self) -> str:
        return f"<FileSourceBuilder {self.label}>"


class FileSource:
    """Reads files into DataFrames. Made by ``for_record_stream_format`` or ``for_bulk_file_format``.

    Lives on the driver, and may be used for any number of reads.
    """

    def __init__(self, builder: FileSourceBuilder) -> None:
        self._builder = instance_of(builder, FileSourceBuilder, name="builder")

    @staticmethod
    def for_record_stream_format(stream_format: ReadableFormat, *paths: Path) -> FileSourceBuilder:
        """A source of records that follow one another.

        Args:
            stream_format: ``StreamFormat.text_line_format()``, or an encoder: ``Encoder.json_lines()``,
                ``.csv(…)``, ``.avro()``. Lines may be compressed, as the ending of a file says. A
                ``ReadableFormat`` of your own is one as well.
            *paths: directories, files or patterns, on any store or file system of fsspec.

        Raises:
            ConfigError: there is no path, or one that cannot be read.
        """
        given: object = stream_format
        if not isinstance(given, ReadableFormat) or isinstance(given, BulkWriterFactory):
            raise _no_format("for_record_stream_format", "StreamFormat.text_line_format()", stream_format)
        return _builder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkWriterFactory, *paths: Path) -> FileSourceBuilder:
        """A source of files with a footer, such as Parquet.

        Args:
            bulk_format: ``ParquetWriterFactory()``, ``OrcBulkWriterFactory()`` …
            *paths: see ``for_record_stream_format``.

        Raises:
            ConfigError: there is no path, or one that cannot be read.
        """
        if not isinstance(bulk_format, BulkWriterFactory):
            raise _no_format("for_bulk_file_format", "ParquetWriterFactory()", bulk_format)
        return _builder(bulk_format, paths)

    def read(self, spark: SparkSession) -> DataFrame:
        """What is there now, as a batch DataFrame.

        Of the directory of a sink it is the newest version, or that of ``as_of``: nothing is listed, and
        nothing is seen that is not of a complete epoch. Parquet and ORC are read by Spark's own reader, of
        the files that are there at this call, unless columns beside theirs are wanted or bad records are
        left out. All else is read in Python, of the files that are there when a query runs.

        Raises:
            SourceError, SchemaError: as they are, or inside of Spark's ``AnalysisException``, in its last
                line.
        """
        check_session(spark)
        self._builder.plan.check_batch()
        plan, schema = self._plan(spark).pinned(), self._schema()
        native = native_read(spark, plan, schema)
        if native is not None:
            return native
        reader = spark.read if schema is None else spark.read.schema(schema)
        return reader.format(register_plan(spark, plan)).load()

    def read_stream(self, spark: SparkSession) -> DataFrame:
        """Each file once, as a streaming DataFrame.

        Of the directory of a sink, its versions are followed: first what is there, then what each epoch adds.

        Raises:
            ConfigError: ``STATE_LOCATION``; a stream of any other directory needs ``with_state_location(…)``.
        """
        check_session(spark)
        plan = self._plan(spark)
        plan.check_stream()
        reader = spark.readStream.format(register_plan(spark, plan))
        schema = self._schema()
        return (reader if schema is None else reader.schema(schema)).load()

    def _plan(self, spark: SparkSession) -> SourcePlan:
        plan, options = self._builder.plan, self._builder.storage_options
        roots = tuple(replace(root, storage_options=options) for root in plan.roots)
        return replace(plan, roots=roots).on_stores(partial(_with_settings, spark))

    def _schema(self) -> Any:
        """The schema that was given, with the columns that are wanted beside the files' own."""
        schema, reading = self._builder.schema, self._builder.plan.reading
        if schema is None:
            return None
        added = {name: _SQL[str(METADATA[name])] for name in reading.metadata}
        if reading.bad_records is BadRecords.PERMISSIVE:
            added[RESCUED] = "STRING"
        if isinstance(schema, str):
            return ", ".join([schema, *(f"{name} {kind}" for name, kind in added.items())])
        for name, kind in added.items():
            schema = type(schema)([*schema.fields]).add(name, kind.lower())
        return schema

    def __repr__(self) -> str:
        return f"<FileSource {self._builder.label}>"


def _builder(code: ReadableFormat, paths: tuple[Path, ...]) -> FileSourceBuilder:
    if not paths:
        raise ConfigError("a source reads at least one path: give a directory", code="PATH_REQUIRED")
    plan = SourcePlan(
        roots=tuple(root_of(path, {}) for path in paths),
        reading=Reading(code=code),
        following=Following(is_static=True),
    )
    return FileSourceBuilder(plan=plan)


def _with_settings(spark: SparkSession, path: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a store: the user's, and below them the settings of the session."""
    found = SessionOptions(path, own)
    found.read(spark)
    return dict(found)


def _no_format(where: str, example: str, given: object) -> ConfigError:
    return ConfigError(
        f"{where} takes a format that reads, such as {example}, got {type(given).__name__}", code="BAD_VALUE"
    )
