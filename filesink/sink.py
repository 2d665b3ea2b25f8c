"""``FileSink`` and its one builder: the only place where the pieces are put together.

How it is used:

    sink = (
        FileSink.for_bulk_format("/data/flights", ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd", column="ts"))
        .with_uid("flights")
        .build()
    )
    sink.write(df)                                                            # a batch
    sink.start(stream, checkpoint_location="/data/cp", available_now=True)    # a stream
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BaseBucketAssigner
from filesink.buckets.named_partitions import Partition, buckets_named
from filesink.commit.checkpoints import check_checkpoint
from filesink.commit.layout_guard import OnOtherLayout
from filesink.commit.replay import EpochOptions, OnRepeatedTxn, OnReplayMismatch
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import CleanupError, ConfigError
from filesink.file_sink.report import EpochReport, RecoveryReport, SweepPlan, report_of
from filesink.file_sink.table_destination import assigner_of, find_table, format_of
from filesink.file_sink.tiers import FileTiers, Publishing, StoreAddress
from filesink.ledger.identity import OnNewQuery, check_uid
from filesink.metastore.announcements import Announced
from filesink.metastore.api import Metastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.method_arguments import checkpoint, choice, data_frame, instance_of, kind_of
from filesink.naming import OutputFileConfig
from filesink.operations.find_sinks import check_streamed, check_written
from filesink.operations.maintenance import Announce, Lost, Maintenance
from filesink.parts.bucket import Closed
from filesink.parts.closed_parts import Compaction, CompactStrategy, Waiting
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat, check_suffix
from filesink.parts.merging import SinkFiles
from filesink.parts.rolling import AnsweringPolicy, CheckpointRollingPolicy, RollingPolicy
from filesink.parts.writer import Plan
from filesink.save_mode import SaveMode
from filesink.spark.arguments import spark_trigger
from filesink.spark.catalog.columns import in_table_order
from filesink.spark.engine import EngineOptions, SparkEngine
from filesink.spark.input.s3a import SessionOptions
from filesink.spark.query import AtEnd, SinkQuery
from filesink.storage.base_path import check_base_path
from formats.api import BaseEncoder, BulkWriterFactory, RowEncoder
from formats.per_row import PerRowEncoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["append", "overwrite", "overwrite_partitions", "error_if_data_exists"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileSinkBuilder:
    """Collects what a ``FileSink`` is made of. Immutable: every ``with_…`` returns a new builder."""

    base_path: str
    format: FileFormat
    policy: RollingPolicy
    assigner: BaseBucketAssigner = field(default_factory=BucketAssigner.date_time_bucket_assigner)
    names: OutputFileConfig = field(default_factory=OutputFileConfig)
    uid: str | None = None
    check_interval_ms: int = 60_000
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    epochs: EpochOptions = field(default_factory=EpochOptions)
    dead_letters: DeadLetters | None = None
    compaction: Compaction | Waiting = Waiting.REFUSED
    partition_commit: PartitionCommit | None = None
    other_layout: OnOtherLayout = OnOtherLayout.REFUSE
    in_order: Callable[[], Callable[[DataFrame], DataFrame]] = lambda: lambda df: df

    def with_bucket_assigner(self, assigner: BaseBucketAssigner) -> FileSinkBuilder:
        """Choose the directory of each record; by default the hour of writing, as Flink does."""
        return replace(self, assigner=instance_of(assigner, BaseBucketAssigner, "with_bucket_assigner"))

    def with_rolling_policy(self, policy: RollingPolicy) -> FileSinkBuilder:
        """Choose when a part file is closed.

        Bulk formats take a ``CheckpointRollingPolicy`` only: their files end with every epoch.
        """
        instance_of(policy, RollingPolicy, "with_rolling_policy")
        if isinstance(self.format, BulkFormat) and not isinstance(policy, CheckpointRollingPolicy):
            raise ConfigError(
                f"{type(policy).__name__} may keep a part open across epochs, and a bulk format cannot be "
                "continued. "
                "Use RollingPolicy.on_checkpoint_rolling_policy(…), and compaction for larger files",
                code="CONFLICT",
            )
        return replace(self, policy=policy)

    def with_bucket_check_interval(self, interval: Duration) -> FileSinkBuilder:
        """Choose how often age and inactivity are looked at; ``int`` is milliseconds. Default 1 min."""
        return replace(self, check_interval_ms=parse_duration_ms(interval, name="bucket_check_interval"))

    def with_output_file_config(self, config: OutputFileConfig) -> FileSinkBuilder:
        """Choose prefix and suffix of the names of part files.

        ``build`` raises ``ConfigError`` (``CONFLICT``) if readers would take the suffix for that of
        another codec or format.
        """
        return replace(self, names=instance_of(config, OutputFileConfig, "with_output_file_config"))

    def enable_compact(self, strategy: CompactStrategy, compactor: Any) -> FileSinkBuilder:
        """Let small files wait, hidden, until ``strategy`` has ``compactor`` merge them.

        Args:
            strategy: ``compaction.FileCompactStrategy(…)``.
            compactor: one of ``compaction.FileCompactor``.

        Raises:
            ConfigError: ``COMPACTION``; it cannot merge files of this format.
        """
        if isinstance(strategy, type) or not callable(getattr(strategy, "stage", None)):
            raise ConfigError(
                "enable_compact takes a strategy, such as compaction.FileCompactStrategy(size_threshold="
                f"'128MiB'), got {kind_of(strategy)}",
                code="BAD_VALUE",
            )
        address = StoreAddress(base_path=self.base_path)
        strategy.stage(compactor, SinkFiles(open_store=address, format=self.format, names=self.names))
        return replace(self, compaction=Compaction(strategy=strategy, compactor=compactor))

    def disable_compact(self) -> FileSinkBuilder:
        """Publish as they are the files that an earlier sink, with compaction, has left waiting."""
        return replace(self, compaction=Waiting.PUBLISHED)

    def with_uid(self, uid: str) -> FileSinkBuilder:
        """Give the sink a stable name, so that it knows its own files under any checkpoint.

        1 to 100 letters, digits, ``.``, ``_`` and ``-``, the first one a letter or digit.
        """
        return replace(self, uid=check_uid(uid))

    def with_storage_options(self, **options: Any) -> FileSinkBuilder:
        """Give options to the store, as fsspec's ``storage_options``; never written anywhere.

        Without any, a path on S3 is reached by the session's own settings ``spark.hadoop.fs.s3a.*``.
        """
        return replace(self, storage_options={**self.storage_options, **options})

    def on_new_query(self, action: Literal["refuse", "append"]) -> FileSinkBuilder:
        """Say what happens when a query with another checkpoint arrives where one has written.

        ``"refuse"`` (default) raises ``IdentityError``: the query would read its source from the start
        and double the rows. ``"append"`` lets it write.
        """
        chosen = choice(OnNewQuery, action, "on_new_query")
        return replace(self, epochs=replace(self.epochs, on_new_query=chosen))

    def on_other_layout(self, action: Literal["refuse", "allow"]) -> FileSinkBuilder:
        """Say what happens to a write whose files do not go with those below the base path.

        They go together if they are of one format, end alike, lie in the same partition columns, and have
        one type, or one that another holds all values of, for each column; whoever has written them.
        ``"refuse"`` (default) raises ``SchemaError`` (``OTHER_LAYOUT``) before anything is visible;
        ``"allow"`` writes beside them, and leaves it at that: the next sink is refused as before.
        """
        return replace(self, other_layout=choice(OnOtherLayout, action, "on_other_layout"))

    def on_replay_mismatch(self, action: Literal["raise", "keep_first"]) -> FileSinkBuilder:
        """Say what happens when a committed micro-batch comes back with another number of rows.

        ``"raise"`` (default) raises ``ReplayMismatchError``; ``"keep_first"`` logs a warning and keeps
        what was committed, for queries that are knowingly not deterministic.
        """
        chosen = choice(OnReplayMismatch, action, "on_replay_mismatch")
        return replace(self, epochs=replace(self.epochs, on_replay_mismatch=chosen))

    def on_bad_record(self, action: Literal["fail"] | DeadLetters) -> FileSinkBuilder:
        """Say what happens to a record that has no bucket, or that the encoder of a row format cannot write.

        Such as one with 300 bytes in a partition column, or with text that the charset lacks. ``"fail"``
        (default) fails the epoch with a ``BucketError`` or an ``EncoderError`` that says where to look.
        ``DeadLetters()`` puts it, with the error, into Parquet files below ``_dead_letters``, published by
        the same epoch. What a bulk format cannot write fails the epoch all the same.
        """
        if action == "fail":
            return replace(self, dead_letters=None)
        return replace(self, dead_letters=instance_of(action, DeadLetters, "on_bad_record"))

    def with_partition_commit(self, commit: PartitionCommit) -> FileSinkBuilder:
        """Announce directories that got files: to a metastore, by success files, to a listener."""
        return replace(self, partition_commit=instance_of(commit, PartitionCommit, "with_partition_commit"))

    def tiers(self) -> FileTiers:
        """The sink as an engine drives it; for engines of your own."""
        check_suffix(self.format, self.names)
        commit = self.partition_commit
        plan = Plan(
            format=self.format,
            assigner=self.assigner,
            policy=AnsweringPolicy(self.policy),
            names=self.names,
            check_interval_ms=self.check_interval_ms,
            closed=Closed.HELD if isinstance(self.compaction, Compaction) else Closed.PENDING,
            on_bad_record=self.dead_letters,
            watermark_column=None if commit is None else commit.watermark_column,
            watermark_zone=None if commit is None else commit.watermark_zone,
        )
        return FileTiers(
            address=StoreAddress(
                base_path=self.base_path,
                storage_options=self.storage_options or SessionOptions(self.base_path),
            ),
            plan=plan,
            uid=self.uid,
            publishing=None if commit is None else Publishing(commit=commit, base_path=self.base_path),
            compaction=self.compaction,
            on_other_layout=self.other_layout,
        )

    def write(self, *_: object, **__: object) -> NoReturn:
        """Not here: ``build()`` makes the sink that writes."""
        raise _not_built("write")

    def start(self, *_: object, **__: object) -> NoReturn:
        """Not here: ``build()`` makes the sink that writes."""
        raise _not_built("start")

    def foreach_batch(self, *_: object, **__: object) -> NoReturn:
        """Not here: ``build()`` makes the sink that writes."""
        raise _not_built("foreach_batch")

    def __repr__(self) -> str:
        return f"<FileSinkBuilder {_told(self)}>"

    def build(self) -> FileSink:
        """The sink. Nothing is written or created before its first use."""
        if self.partition_commit is not None:
            self.partition_commit.check_buckets(self.assigner)
        return FileSink(self)


class FileSink:
    """Writes DataFrames into part files, each row exactly once, whatever crashes.

    Made by ``FileSink.for_row_format(…)`` or ``FileSink.for_bulk_format(…)`` and ``build()``. Lives on
    the driver. One sink takes one DataFrame, and one call per micro-batch.
    """

    def __init__(self, builder: FileSinkBuilder) -> None:
        given: object = builder
        if not isinstance(given, FileSinkBuilder):
            raise ConfigError(
                "a sink is made by FileSink.for_row_format(path, encoder), .for_bulk_format(path, factory) "
                f"or .for_hive_table(table, metastore=…), and then .build(); got {type(given).__name__}",
                code="BAD_VALUE",
            )
        self._builder = builder
        self._tiers = builder.tiers()
        options = EngineOptions(
            name=builder.base_path,
            told=lambda outcome: report_of(outcome).line(),
            epochs=builder.epochs,
            check_interval_ms=builder.check_interval_ms,
        )
        self._engine = SparkEngine(self._tiers, options)

    @staticmethod
    def for_row_format(
        base_path: str | os.PathLike[str], encoder: BaseEncoder | RowEncoder
    ) -> FileSinkBuilder:
        """A sink that appends records to part files, which may stay open across epochs.

        Args:
            base_path: a directory or a URI of any store, as in ``s3://bucket/trips``; made if missing.
            encoder: ``Encoder.simple_string_encoder()``, ``.json_lines()``, ``.csv()``, ``.avro()``, or
                your own.

        Raises:
            ConfigError: no store of ours takes the path.
        """
        _refuse_other_kind(encoder, BulkWriterFactory, "for_row_format", "for_bulk_format")
        if isinstance(encoder, RowEncoder):
            encoder = PerRowEncoder(encoder)
        return FileSinkBuilder(
            base_path=check_base_path(base_path),
            format=RowFormat(instance_of(encoder, BaseEncoder, "for_row_format")),
            policy=RollingPolicy.default_rolling_policy(),
        )

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> FileSinkBuilder:
        """A sink of files with a footer, such as Parquet, which are closed at every epoch.

        Args:
            base_path: a directory or a URI of any store, as in ``s3://bucket/trips``; made if missing.
            writer_factory: ``ParquetWriterFactory()``, any other of ``formats``, or your own.

        Raises:
            ConfigError: no store of ours takes the path.
        """
        _refuse_other_kind(writer_factory, (BaseEncoder, RowEncoder), "for_bulk_format", "for_row_format")
        return FileSinkBuilder(
            base_path=check_base_path(base_path),
            format=BulkFormat(instance_of(writer_factory, BulkWriterFactory, "for_bulk_format")),
            policy=RollingPolicy.on_checkpoint_rolling_policy(),
        )

    @staticmethod
    def for_hive_table(
        table: str, *, metastore: Metastore, on_new_columns: Literal["refuse", "add"] = "refuse"
    ) -> FileSinkBuilder:
        """A sink that writes into a table and announces its partitions with each epoch.

        Location, format and partition keys are the table's; columns are matched by name. Columns that
        the DataFrame lacks are null.

        Args:
            table: ``"database.table"``.
            metastore: ``HiveMetastore("thrift://…")``, ``SparkCatalog()`` or ``GlueCatalog()``.
            on_new_columns: what becomes of columns that the table lacks: ``"refuse"`` raises
                ``SchemaError``, ``"add"`` adds them to the table.

        Raises:
            MetastoreError: the metastore does not answer, or has no such table.
            ConfigError: ``TABLE_FORMAT``; there is no writer for the table's serde.
        """
        instance_of(metastore, Metastore, "for_hive_table")
        policy = MetastorePolicy(table, metastore, on_new_columns=on_new_columns)
        found = find_table(table, metastore)
        form = format_of(found)
        return FileSinkBuilder(
            base_path=check_base_path(found.location),
            format=form,
            policy=(
                RollingPolicy.default_rolling_policy()
                if isinstance(form, RowFormat)
                else RollingPolicy.on_checkpoint_rolling_policy()
            ),
            assigner=assigner_of(found),
            partition_commit=PartitionCommit(policies=[policy]),
            # As the table is then: an earlier write, or somebody else, may have added columns.
            in_order=lambda: partial(
                in_table_order, table=find_table(table, metastore), on_new_columns=on_new_columns
            ),
        )

    def write(
        self,
        df: DataFrame,
        *,
        mode: Mode = "append",
        txn_id: str | None = None,
        partitions: Iterable[Partition] | None = None,
        on_repeated_txn: Literal["raise", "skip", "replace"] = "raise",
    ) -> EpochReport:
        """Write a batch DataFrame; returns when its files are visible.

        Writes that append may run beside each other and beside streams, and so may overwrites of
        different partitions.

        Args:
            df: not streaming; executed once, and once more if ``txn_id`` was written before. It may read
                what it overwrites.
            mode: ``"append"`` leaves what is there alone. ``"overwrite"`` replaces every data file below
                the base path, ``"overwrite_partitions"`` those in the buckets that get data: the new
                files become visible first, then the old ones go, so that readers may see both for a
                moment, and never neither. ``"error_if_data_exists"`` writes only where there is none.
            txn_id: your name for this very data, below this path and under this uid. A second call with it,
                after a crash too, compares number, columns and values of the rows; if they are equal it
                writes nothing and reports ``already_committed``.
            partitions: with ``mode="overwrite_partitions"``, those that are replaced even if no row is for
                them, as ``[{"day": "2026-01-01"}]`` or bucket ids: a day without rows becomes empty.
            on_repeated_txn: what becomes of a ``txn_id`` that comes back with other data: ``"raise"``
                refuses it, ``"replace"`` replaces the files of the earlier write, ``"skip"`` keeps them and
                does not look at the data.

        Raises:
            RepeatedTxnError: see ``txn_id``; nothing was written.
            ConcurrentDriverError: ``PARTITION_CONFLICT``, another write has replaced some of the same
                partitions meanwhile; nothing became visible.
            CleanupError: everything is visible, but some replaced files could not be removed yet; raised by
                the first write that meets them, later ones try again.
            FilesinkError: nothing became visible, or, if the epoch had been decided, ``recover()``
                carries it through.
        """
        chosen = choice(SaveMode, mode, "mode")
        repeated = choice(OnRepeatedTxn, on_repeated_txn, "on_repeated_txn")
        self._read_settings(data_frame(df, "write"))
        ordered = self._builder.in_order()(df)
        emptied = buckets_named(partitions, self._builder.assigner, ordered.columns if partitions else ())
        if emptied and chosen is not SaveMode.OVERWRITE_PARTITIONS:
            raise ConfigError(
                f"partitions= goes with mode='overwrite_partitions', got mode={mode!r}", code="CONFLICT"
            )
        outcome = self._engine_for(emptied, repeated).write(ordered, mode=chosen, txn_id=txn_id)
        report = report_of(outcome)
        if outcome.newly_left:
            raise _not_removed(report)
        return report

    def _engine_for(
        self, emptied: frozenset[str], repeated: OnRepeatedTxn
    ) -> SparkEngine[HeldFile, Committable, Announced]:
        """The engine, or one for a single write that was asked for something of its own."""
        if not emptied and repeated is OnRepeatedTxn.RAISE:
            return self._engine
        epochs = replace(self._builder.epochs, on_repeated_txn=repeated)
        return SparkEngine(
            replace(self._tiers, emptied=emptied), replace(self._engine.options, epochs=epochs)
        )

    def start(
        self,
        df: DataFrame,
        *,
        checkpoint_location: str | os.PathLike[str],
        query_name: str | None = None,
        at_end: Literal["publish", "keep"] = "publish",
        **trigger: Any,
    ) -> SinkQuery[EpochReport]:
        """Start a streaming query into this sink; Spark's ``StreamingQuery`` comes back.

        With a trigger that ends by itself, the end closes every open part, and ``awaitTermination``
        waits for it. After ``query.stop()`` open parts stay hidden until the next start or ``finish()``.

        Args:
            df: streaming.
            checkpoint_location: a directory of this query's own, kept across restarts; not among the data
                below the base path.
            query_name: Spark's name of the query.
            at_end: what the end of a query that ends by itself does with open parts and with files that wait
                for compaction. ``"publish"`` makes all of them visible. ``"keep"`` leaves them for the
                next run, as of a job that is scheduled hourly, but for those whose time has come.
            **trigger: one of ``processing_time="10 seconds"``, ``available_now=True``, ``once=True``.

        Raises:
            FilesinkError: the query was not started. What fails later is in ``query.exception()``.
        """
        spark_trigger(trigger)  # else any name would do
        location = checkpoint(checkpoint_location)
        check_checkpoint(location, self._builder.base_path)
        self._read_settings(data_frame(df, "start"))
        return self._engine.start(
            self._builder.in_order()(df),
            checkpoint_location=location,
            query_name=query_name,
            at_end=choice(AtEnd, at_end, "at_end"),
            report=report_of,
            **trigger,
        )

    def foreach_batch(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch: ``df.writeStream.foreachBatch(sink.foreach_batch)``.

        Called once per micro-batch, by Spark's thread. Call ``finish()`` when the input has ended for good.

        Raises:
            FilesinkError: as ``write``. Let it end the query: its restart repeats the batch.
        """
        self._read_settings(data_frame(df, "foreach_batch"))
        self._engine.foreach_batch(self._in_order(df), batch_id)

    def finish(self) -> EpochReport | None:
        """Close everything that streams of this sink have left open; ``None`` if nothing was.

        Needs a Spark session, and no query of this sink at work elsewhere.

        Raises:
            ConfigError: ``NO_STREAM``; no stream has written with this object, and the sink has no uid.
                ``NO_SINK``; no stream has written to this path under this uid.
        """
        if self._tiers.uid is not None and not self._engine.has_streamed:
            check_streamed(self._address, self._tiers.uid)
        outcome = self._engine.finish()
        return None if outcome is None else report_of(outcome)

    def recover(
        self,
        *,
        lost: Literal["raise", "rewrite", "accept"] = "raise",
        announce: Literal["raise", "skip"] = "raise",
        checkpoint_location: str | os.PathLike[str] | None = None,
    ) -> RecoveryReport:
        """Carry through what crashed drivers have decided, and remove what they left behind.

        Needs no Spark, and no query may be running. A restart of the query does the same by itself.

        Args:
            lost: what to do if decided bytes are gone. ``"raise"``: raise ``StagedDataLost``.
                ``"rewrite"``: take the epoch back, so that the restarted query writes it again;
                needs ``checkpoint_location``, and is refused if Spark would not replay the batch.
                ``"accept"``: publish what is left and give up the rest; an epoch without input, which
                can be repeated from what it held, is taken back.
            announce: what to do with a partition that cannot be announced, as one that is registered at
                another location. ``"raise"``: raise what the policy raised; the epoch stays decided.
                ``"skip"``: go on without; each is tried once, and those that were not announced are in
                ``unannounced`` of the report.
            checkpoint_location: of the query, to know whether Spark will replay the batch.

        Raises:
            StagedDataLost: see ``lost``.
            MetastoreConflictError: see ``announce``.
            IdentityError: ``NO_REPLAY`` or ``WRONG_CHECKPOINT``; nothing was taken back.
            ConcurrentDriverError: a query is running.
            ConfigError: ``NO_SINK``; no sink has written to this path, or none with this uid. A program that
                comes here before its first write takes this code for «nothing to recover».
        """
        chosen, announced = choice(Lost, lost, "lost"), choice(Announce, announce, "announce")
        location = None if checkpoint_location is None else checkpoint(checkpoint_location)
        return self._maintenance(announced).recover(chosen, location)

    def plan_sweep(self, older_than: Duration = "7 days") -> SweepPlan:
        """What ``sweep`` would remove now.

        ``older_than``: when a sink without progress counts as dead; ``int`` is milliseconds.

        Raises:
            ConfigError: ``NO_SINK``; no sink has written to this path, or none with this uid.
        """
        age = parse_duration_ms(older_than, name="older_than")
        return self._maintenance().plan_sweep(age)

    def sweep(self, older_than: Duration = "7 days") -> SweepPlan:
        """Remove hidden files that nothing can refer to any more; returns what was removed.

        Every start does so for its own sink. This one looks at all sinks below the base path.

        Raises:
            ConfigError: as ``plan_sweep``.
        """
        age = parse_duration_ms(older_than, name="older_than")
        return self._maintenance().sweep(age)

    def __repr__(self) -> str:
        return f"<FileSink {_told(self._builder)}>"

    def _read_settings(self, df: DataFrame) -> None:
        """Without options of its own a sink goes by those of the session, as they are at this moment."""
        match self._tiers.address:
            case StoreAddress(storage_options=SessionOptions() as options):
                options.read(getattr(df, "sparkSession", None))
            case _:
                pass

    @cached_property
    def _in_order(self) -> Callable[[DataFrame], DataFrame]:
        """For all batches of a query, so that none waits for a metastore."""
        return self._builder.in_order()

    @property
    def _address(self) -> StoreAddress:
        address = self._tiers.address  # with options of the session, if it goes by those
        if isinstance(address, StoreAddress):
            return address
        built = self._builder
        return StoreAddress(base_path=built.base_path, storage_options=built.storage_options)

    def _maintenance(self, announce: Announce = Announce.RAISE) -> Maintenance:
        check_written(self._address, self._tiers.uid)
        return Maintenance(self._tiers, clock=self._engine.clock, ids=self._engine.ids, announce=announce)


def _not_removed(report: EpochReport) -> CleanupError:
    shown = ", ".join(f"'{path}'" for path in report.not_removed[:3])
    return CleanupError(
        f"the write is complete, all of its {report.rows:,} rows are visible, and {len(report.not_removed)} "
        f"files that they replace could not be removed, such as {shown}: readers see old rows beside the new "
        "ones. The log has the reasons. Later overwrites try again; or remove them by hand. Do not repeat "
        "this write",
        code="NOT_REMOVED",
    )


def _refuse_other_kind(value: object, other: type | tuple[type, ...], where: str, right: str) -> None:
    """Raise if ``value`` is a format, and one for the other builder."""
    if isinstance(value, other):
        name = type(value).__name__
        raise ConfigError(
            f"{name} is no format for {where}: use FileSink.{right}(path, {name}(…))", code="BAD_VALUE"
        )


def _told(built: FileSinkBuilder) -> str:
    """What tells a sink from others, in a line without options, which may be secret."""
    form = built.format
    code = form.encoder if isinstance(form, RowFormat) else form.factory
    kinds = (type(one).__qualname__.lstrip("_") for one in (code, built.assigner, built.policy))
    return " ".join([repr(built.base_path), *([] if built.uid is None else [f"uid={built.uid!r}"]), *kinds])


def _not_built(method: str) -> ConfigError:
    return ConfigError(
        f"this is a builder, and {method}() is the sink's: call .build() first, as in "
        f"builder.build().{method}(…)",
        code="NOT_BUILT",
    )
