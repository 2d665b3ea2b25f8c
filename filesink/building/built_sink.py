"""What ``build()`` makes: writes batches and streams, and is looked after by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from filesink.arguments import checkpoint, choice, data_frame
from filesink.buckets.named_partitions import Partition, buckets_named
from filesink.buckets.table_assigner import TableBucketAssigner
from filesink.building.builder import SinkBuilder
from filesink.commit.checkpoints import check_checkpoint
from filesink.commit.replay import OnRepeatedTxn
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from filesink.exports.following import exports_of
from filesink.file_sink.complete_writes import not_removed, warn_of_gone
from filesink.file_sink.report import EpochReport, RecoveryReport, SweepPlan, report_of
from filesink.file_sink.waiting_files import check_nothing_waits
from filesink.ledger.identity import stream_sink_id
from filesink.metastore.announcements import Announced
from filesink.operations.find_sinks import check_streamed, check_written
from filesink.operations.maintenance import Announce, Lost, Maintenance
from filesink.operations.replacing.regular import retaining
from filesink.parts.committables import Committable, HeldFile
from filesink.save_mode import SaveMode
from filesink.spark.arguments import on_repeated, spark_trigger
from filesink.spark.elsewhere import SinkElsewhere
from filesink.spark.engine import SparkEngine
from filesink.spark.engine_options import EngineOptions
from filesink.spark.input.s3a import SessionOptions
from filesink.spark.input.schema import arrow_schema, time_zone_of
from filesink.spark.query import AtEnd, SinkQuery
from filesink.storage.address import StoreAddress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["append", "overwrite", "overwrite_partitions", "error_if_data_exists"]


class BuiltSink:
    """Writes, and recovers what was written; ``FileSink`` adds the ways to make one.

    Args:
        builder: what the sink is made of.
    """

    def __init__(self, builder: SinkBuilder) -> None:
        self._builder = builder
        self._tiers = builder.tiers()
        assigner = builder.assigner
        tables = assigner.path if isinstance(assigner, TableBucketAssigner) else None
        self._report = partial(report_of, tables=tables)
        audience = builder.audience()
        self._exports = exports_of(builder.exports, self._address, audience=audience)
        # Retention first: exports have what it drops, too.
        after = retaining(builder.retention, self._tiers, self._exports.after, audience)
        options = EngineOptions(
            name=builder.base_path,
            told=lambda outcome: report_of(outcome).line(),
            epochs=builder.epoch_options(self._tiers),
            check_interval_ms=builder.check_interval_ms,
            audience=audience,
            after=after,
        )
        self._engine = SparkEngine(self._tiers, options)

    def __reduce__(self) -> tuple[type[SinkElsewhere], tuple[()]]:
        return SinkElsewhere, ()  # a sink stays in its process

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

        Appending writes may run beside each other and beside streams; so may overwrites of different
        partitions.

        Args:
            df: not streaming; executed once, and once more if ``txn_id`` was written before. It may read
                the files that it overwrites.
            mode: ``"append"`` leaves existing files alone. ``"overwrite"`` replaces every data file below
                the base path, ``"overwrite_partitions"`` those in the buckets that get data: first the new
                files become visible, then the old ones are removed, so readers may see both for a
                moment, but never neither. ``"error_if_data_exists"`` writes only if there is no data yet.
            txn_id: your name for this very data, below this path and under this uid. A second call with the
                same name, also after a crash, compares number, columns and values of the rows; if they are
                equal it writes nothing and reports ``already_committed``.
            partitions: with ``mode="overwrite_partitions"``, the partitions to replace, as
                ``[{"day": "2026-01-01"}]`` or bucket ids: a day without rows becomes empty, and rows of any
                other day are refused. Without it, those that get rows are replaced.
            on_repeated_txn: what happens if a ``txn_id`` comes back with other data: ``"raise"``
                refuses it, ``"replace"`` replaces the files of the earlier write, ``"skip"`` keeps them and
                does not look at the data.

        Raises:
            RepeatedTxnError: see ``txn_id``; nothing was written.
            DataError: ``OTHER_PARTITION``, rows outside of ``partitions``; nothing became visible.
            ConcurrentDriverError: ``PARTITION_CONFLICT``, another write has replaced some of the same
                partitions meanwhile; nothing became visible.
            CleanupError: everything is visible, but some replaced files could not be removed yet; raised by
                the first write that meets them, later ones try again.
            FilesinkError: nothing became visible, or the epoch was decided and ``recover()`` completes it.
        """
        chosen = choice(SaveMode, mode, "mode")
        repeated = on_repeated(on_repeated_txn, txn_id)
        self._read_settings(data_frame(df, "write"))
        ordered = self._builder.in_order()(df)
        emptied = self._emptied(partitions, ordered, chosen)
        outcome = self._engine_for(emptied, repeated).write(ordered, mode=chosen, txn_id=txn_id)
        report = self._report(outcome)
        if outcome.newly_left:
            raise not_removed(report)
        if report.already_committed:
            warn_of_gone(report, self._address(), txn_id=txn_id, base_path=self._builder.base_path)
        return report

    def _emptied(
        self, partitions: Iterable[Partition] | None, ordered: DataFrame, mode: SaveMode
    ) -> frozenset[str]:
        if partitions is None:
            return frozenset()
        zone = time_zone_of(ordered.sparkSession)
        emptied = buckets_named(partitions, self._builder.assigner, arrow_schema(ordered.schema), zone=zone)
        if emptied and mode is not SaveMode.OVERWRITE_PARTITIONS:
            raise ConfigError(
                f"partitions= goes with mode='overwrite_partitions', got mode={mode.value!r}", code="CONFLICT"
            )
        return emptied

    def _engine_for(
        self, emptied: frozenset[str], repeated: OnRepeatedTxn
    ) -> SparkEngine[HeldFile, Committable, Announced]:
        """The engine, or another one for a write with options of its own."""
        if not emptied and repeated is OnRepeatedTxn.RAISE:
            return self._engine
        epochs = replace(self._builder.epochs, on_repeated_txn=repeated)
        options = replace(self._engine.options, epochs=epochs, compared="\n".join(sorted(emptied)))
        return SparkEngine(replace(self._tiers, emptied=emptied), options)

    def start(
        self,
        df: DataFrame,
        *,
        checkpoint_location: str | os.PathLike[str],
        query_name: str | None = None,
        at_end: Literal["publish", "keep"] = "publish",
        **trigger: Any,
    ) -> SinkQuery[EpochReport]:
        """Start a streaming query that writes to this sink; returns a ``StreamingQuery``.

        If the trigger ends by itself, its end closes every open part, and ``awaitTermination`` waits
        for that. After ``query.stop()`` open parts stay hidden until the next start or ``finish()``.

        Args:
            df: streaming.
            checkpoint_location: a directory for this query alone, kept across restarts; must not be among
                the data below the base path.
            query_name: Spark's name of the query.
            at_end: what happens to open parts, and to files that wait for compaction, when the query ends
                by itself, as it does with ``available_now`` or ``once``. ``"publish"`` makes all of them
                visible. ``"keep"`` publishes those that are due and leaves the others for the next run, say
                of a job that is scheduled hourly.
            **trigger: one of ``processing_time="10 seconds"``, ``available_now=True``, ``once=True``.

        Raises:
            FilesinkError: the query was not started. Later failures are in ``query.exception()``.
        """
        spark_trigger(trigger)  # else any name would do
        location = checkpoint(checkpoint_location)
        check_checkpoint(location, self._builder.base_path)
        self._read_settings(data_frame(df, "start"))
        if self._tiers.uid is not None:
            check_nothing_waits(self._tiers, stream_sink_id(self._tiers.uid, ""))
        return self._engine.start(
            self._builder.in_order()(df),
            checkpoint_location=location,
            query_name=query_name,
            at_end=choice(AtEnd, at_end, "at_end"),
            report=self._report,
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
        """Close everything that streams of this sink have left open; ``None`` if nothing was open.

        Needs a Spark session, and no query of this sink at work elsewhere.

        Raises:
            ConfigError: ``NO_STREAM``; no stream has written with this object, and the sink has no uid.
                ``NO_SINK``; no stream has written to this path under this uid.
        """
        if self._tiers.uid is not None and not self._engine.has_streamed:
            check_streamed(self._address, self._tiers.uid)
        outcome = self._engine.finish()
        return None if outcome is None else self._report(outcome)

    def recover(
        self,
        *,
        lost: Literal["raise", "rewrite", "accept"] = "raise",
        announce: Literal["raise", "skip"] = "raise",
        checkpoint_location: str | os.PathLike[str] | None = None,
    ) -> RecoveryReport:
        """Complete what crashed drivers have decided, and remove what they left behind.

        Needs no Spark, and no query may be running. A restart of the query does the same by itself.

        Args:
            lost: what to do if decided bytes are gone. ``"raise"``: raise ``StagedDataLost``.
                ``"rewrite"``: take the epoch back, so that the restarted query writes it again;
                needs ``checkpoint_location``, and is refused if Spark would not replay the batch.
                ``"accept"``: publish what is left and give up the rest; an epoch without input is taken
                back, since it can be repeated from what it held.
            announce: what to do with a partition that cannot be announced, such as one that is registered
                at another location. ``"raise"``: raise what the policy raised; the epoch stays decided.
                ``"skip"``: go on without it. Each is tried once; ``unannounced`` of the report lists the
                failed ones.
            checkpoint_location: that of the query; it tells whether Spark will replay the batch.

        Raises:
            StagedDataLost: see ``lost``.
            MetastoreConflictError: see ``announce``.
            IdentityError: ``NO_REPLAY`` or ``WRONG_CHECKPOINT``; nothing was taken back.
            ConcurrentDriverError: a query is running.
            ConfigError: ``NO_SINK``; no sink has written to this path, or none with this uid. Before a
                program's first write this code means that there is nothing to recover.
        """
        chosen, announced = choice(Lost, lost, "lost"), choice(Announce, announce, "announce")
        location = None if checkpoint_location is None else checkpoint(checkpoint_location)
        report = self._maintenance(announced).recover(chosen, location)
        self._exports.run()
        return report

    def plan_sweep(self, older_than: Duration = "7 days") -> SweepPlan:
        """What ``sweep`` would remove now.

        ``older_than``: a sink without progress for that long counts as dead; ``int`` is milliseconds.

        Raises:
            ConfigError: ``NO_SINK``; no sink has written to this path, or none with this uid.
        """
        return self._maintenance().plan_sweep(parse_duration_ms(older_than, name="older_than"))

    def sweep(self, older_than: Duration = "7 days") -> SweepPlan:
        """Remove hidden files that nothing can refer to any more; returns what was removed.

        Every start does so for its own sink. This method looks at all sinks below the base path. It also
        removes what overwrites have replaced and is still there, unless ``with_reader_grace`` keeps it.

        Raises:
            ConfigError: as ``plan_sweep``.
        """
        return self._maintenance().sweep(parse_duration_ms(older_than, name="older_than"))

    def __repr__(self) -> str:
        return f"<FileSink {self._builder.label}>"

    def _read_settings(self, df: DataFrame) -> None:
        """A sink without storage options takes the current ones of the session."""
        options = self._address.storage_options
        if isinstance(options, SessionOptions):
            options.read(getattr(df, "sparkSession", None))

    @cached_property
    def _in_order(self) -> Callable[[DataFrame], DataFrame]:
        """Looked up once for all batches of a query, so that none waits for a metastore."""
        return self._builder.in_order()

    @property
    def _address(self) -> StoreAddress:
        address = self._tiers.address  # with the session's options, if it takes those
        if isinstance(address, StoreAddress):
            return address
        built = self._builder
        return StoreAddress(base_path=built.base_path, storage_options=built.storage_options)

    def _maintenance(self, announce: Announce = Announce.RAISE) -> Maintenance:
        check_written(self._address, self._tiers.uid)
        engine, heard = self._engine, self._engine.options.audience
        return Maintenance(self._tiers, clock=engine.clock, ids=engine.ids, announce=announce, audience=heard)
