"""``format("filesink")``: Spark runs the tasks and calls commit, instead of our engine.

What runs where, measured on Spark 4.3 (every process is another one, and none but tasks knows ids):

    driver    DataSource(options).writer()           once per batch write; pickled to tasks and commit
              DataSource(options).streamWriter()     once per micro-batch; pickled to tasks only
    task      write()                                TaskContext has query id, batch id, session's zone
    driver    DataSource(options)                    once per run of a stream, pickled to …
              … .streamWriter().commit()             once per micro-batch: knows batch id and messages
              … .streamWriter().abort()              after commit has failed, or a task; absent messages
                                                     are None

Rules:
1. commit has neither query id nor state, so messages carry the first, and the ledger is all there
   is of the second. Hence the smaller promise: every part is closed at each epoch, and a replay is
   recognised by query id, batch id and number of rows, since the offset log cannot be read here.
2. The slot that hidden names carry is read from the ledger by each task; see
   ``filesink.commit.external_epochs``.
3. Spark waits for commit to return before it calls abort, also when ``stop()`` interrupts the query.
4. Continuous processing hands no message to commit and only logs what commit raises: the query goes
   on and writes nothing. Neither writer can see the trigger on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource

from filesink.commit.replay import OnGap
from filesink.data_source.door_words import in_words_of_options
from filesink.data_source.hive_table import announcing
from filesink.data_source.options import (
    DataSourceOptions,
    check_batch_write,
    parse_options,
)
from filesink.data_source.reading.columns import spark_schema
from filesink.data_source.reading.options import check_batch, check_stream, parse_read_options
from filesink.data_source.reading.readers import BatchReader, Given, StreamReader
from filesink.data_source.save_modes import ModeOf
from filesink.data_source.write import DataSourceWrite
from filesink.data_source.writers import BatchWriter, StreamWriter
from filesink.errors import ConfigError
from filesink.ledger.identity import batch_write
from filesink.parts.file_format import check_crossing
from filesink.save_mode import SaveMode
from filesink.source.source_plan import SourcePlan
from filesink.spark.input.s3a import options_for
from filesink.spark.input.schema import arrow_schema
from filesink.system import SystemClock, SystemIds

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class FileSinkDataSource(DataSource):
    """The data source ``filesink``; see ``filesink.register``."""

    format_name: ClassVar[str] = "filesink"
    settings: ClassVar[Mapping[str, str]] = {}  # of S3, by ``register``

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._made_ms = SystemClock().now_ms()
        self._given = Given.SCHEMA

    @classmethod
    def name(cls) -> str:
        """What users give to ``format(…)``."""
        return cls.format_name

    def schema(self) -> StructType:
        """See ``DataSource.schema``; called on the driver by ``load``, if the user gives no schema."""
        self._given = Given.NOTHING
        return spark_schema(self.source_plan().schema())

    def reader(self, schema: StructType) -> BatchReader:
        """See ``DataSource.reader``; called on the driver once per execution of a query."""
        check_batch(self.options)
        return BatchReader(self.source_plan(), schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        """See ``DataSource.streamReader``; called on the driver twice per run of a query."""
        check_stream(self.options)
        return StreamReader(self.source_plan(), schema, given=self._given)

    def source_plan(self) -> SourcePlan:
        """What is read, and how."""
        return parse_read_options(self.options).on_stores(self._on_store)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:  # noqa: FBT001 - Spark's signature
        """See ``DataSource.writer``; called on the driver before the job starts."""
        with in_words_of_options():
            return self._writer(schema, overwrite=overwrite)

    def _writer(self, schema: StructType, *, overwrite: bool) -> BatchWriter:
        options = self._options()
        check_batch_write(self.options)
        chosen = ModeOf.SESSION if overwrite and options.overwrite_mode is None else ModeOf.OPTIONS
        mode = (options.overwrite_mode or SaveMode.OVERWRITE) if overwrite else SaveMode.APPEND
        sink_id, cause = batch_write(mode, options.builder.uid, options.txn_id, SystemIds())
        return BatchWriter(self.open_write(options, schema), cause=cause, sink_id=sink_id, chosen=chosen)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: FBT001, N802
        """See ``DataSource.streamWriter``; called on the driver twice per micro-batch."""
        with in_words_of_options():
            return self._stream_writer(schema, overwrite=overwrite)

    def _stream_writer(self, schema: StructType, *, overwrite: bool) -> StreamWriter:
        if overwrite:
            raise ConfigError(
                "output mode 'complete' writes rows again that were written before; only 'append' makes "
                "files that stay. Use .outputMode('append')",
                code="OUTPUT_MODE",
            )
        options = self._options()
        if options.txn_id:
            raise ConfigError(
                "option 'txnId' names the data of a batch write; a stream is known by its query and batch "
                "ids. Remove it; 'uid' gives a stream a stable name",
                code="CONFLICT",
            )
        if options.overwrite_mode is not None:
            raise ConfigError(
                "option 'partitionOverwriteMode' says what an overwrite replaces, and a stream only adds to "
                "what is there. Remove it",
                code="CONFLICT",
            )
        return StreamWriter(self.open_write(options, schema))

    def _options(self) -> DataSourceOptions:
        options = parse_options(self.options)
        on_store = self._on_store(options.builder.base_path, options.builder.storage_options)
        return replace(options, builder=options.builder.with_storage_options(**on_store))

    def _on_store(self, path: str, own: Mapping[str, Any]) -> dict[str, Any]:
        return options_for(path, self.settings, own)

    def open_write(self, options: DataSourceOptions, schema: StructType) -> DataSourceWrite:
        """Check everything that can be known before data is read."""
        sink, table = options.builder.tiers(), options.table
        columns = arrow_schema(schema)
        check_crossing(sink.plan.format, columns)  # all columns do
        announcing(sink, table).prepare(columns)
        epochs = replace(
            options.builder.epochs,
            on_gap=OnGap.REFUSE,  # every batch comes through here
            on_repeated_txn=options.on_repeated_txn,
        )
        return DataSourceWrite(
            sink=sink,
            table=table,
            schema=columns,
            epochs=epochs,
            time_zone=options.time_zone,
            by_clock=options.by_clock,
            made_ms=self._made_ms,
            base_path=options.builder.base_path,
        )
