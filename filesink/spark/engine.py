"""Spark drives a sink: batch writes, streams, and ``foreachBatch``. Knows the API, and no files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark import cloudpickle
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from filesink.api import Sink
from filesink.commit.outcome import Outcome
from filesink.commit.replay import OnGap, OnRepeatedTxn, superseded_meanwhile
from filesink.errors import ConfigError, RepeatedTxnError
from filesink.ledger.identity import batch_write, stream_sink_id, superseding
from filesink.ledger.record import BatchWrite
from filesink.ledger.transactions import find_write
from filesink.ports import Clock, Ids
from filesink.save_mode import SaveMode
from filesink.spark import arguments
from filesink.spark.arguments import check_frame, ends
from filesink.spark.engine_options import EngineOptions, name_of, open_loop
from filesink.spark.epoch_loops import EpochLoops
from filesink.spark.input.digest import Digested
from filesink.spark.input.job import SparkWriteJob, check_derived, not_picklable, with_derived
from filesink.spark.input.schema import arrow_schema, check_twins, time_zone_of
from filesink.spark.local_checkpoints import advise
from filesink.spark.query import AtEnd, End, RunWatch, SinkQuery
from filesink.spark.query_internals import QueryRun, RunIds, current_ids, is_wanted, open_run, start_query
from filesink.spark.recent_outcomes import RecentOutcomes, Reports
from filesink.spark.runner import is_stopped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


class SparkEngine(Generic[S, C, A]):
    """Runs the epochs of one sink with Spark. Lives on the driver; never pickled.

    Args:
        sink: any implementation of ``filesink.api.Sink``.
        options: see ``EngineOptions``.
    """

    def __init__(self, sink: Sink[S, C, A], options: EngineOptions | None = None) -> None:
        self.sink = sink
        self._options = options or EngineOptions()
        self._run: tuple[QueryRun, SparkWriteJob] | None = None  # with the job of the last batch
        self._streams: dict[str, SparkSession] = {}  # every stream of this process, also one that ended
        self._name = name_of(sink, self._options)
        self._outcomes: RecentOutcomes[C] = RecentOutcomes(
            partial(_line, self._name, self._options.told), after=self._options.after
        )
        self._loops = EpochLoops(
            partial(open_loop, sink, self._options),
            note=self._outcomes.append,
            interval=self._options.check_interval_ms / 1000,
        )

    @property
    def options(self) -> EngineOptions:
        """How the sink is driven."""
        return self._options

    @property
    def clock(self) -> Clock:
        """The driver's clock."""
        return self._options.clock

    @property
    def ids(self) -> Ids:
        """Where ids come from."""
        return self._options.ids

    @property
    def has_streamed(self) -> bool:
        """Whether a stream has been written by this object."""
        return bool(self._streams)

    def write(
        self, df: DataFrame, *, mode: SaveMode = SaveMode.APPEND, txn_id: str | None = None
    ) -> Outcome[C]:
        """Write a batch DataFrame as one epoch.

        Raises:
            ConfigError: the DataFrame is a stream, or ``mode`` or ``txn_id`` cannot be used.
            FilesinkError: if the epoch was decided before it failed, ``recover`` completes it; without a
                ``txn_id`` a second ``write`` would be a second epoch.
        """
        arguments.check_txn_id(txn_id)
        check_frame(df)
        if df.isStreaming:
            raise ConfigError("write() takes a batch DataFrame; use start() for a stream", code="STREAMING")
        arguments.check_mode(self.sink, mode)
        self.check(df)
        sink_id, cause = batch_write(mode, self.sink.uid, txn_id or "", self._options.ids)
        job = self._job(df, run_id="")
        if txn_id:
            job = replace(job, digested=Digested(self._options.compared))
        try:
            outcome = self._run_batch(sink_id, cause, job, df.sparkSession)
        except RepeatedTxnError:
            if self._options.epochs.on_repeated_txn is not OnRepeatedTxn.REPLACE:
                raise
            outcome = self._supersede(sink_id, cause, job, df.sparkSession)
        return self._outcomes.append(outcome)

    def _supersede(
        self, sink_id: str, cause: BatchWrite, job: SparkWriteJob, session: SparkSession
    ) -> Outcome[C]:
        """Write in the place of what the ``txn_id`` stands for."""
        ledger = self.sink.open_ledger(sink_id)
        earlier = find_write(cause, ledger)
        nonce = "" if earlier is None else earlier.nonce
        sink_id, newer = superseding(cause, nonce, self._options.ids)
        try:
            return self._run_batch(sink_id, newer, job, session)
        except RepeatedTxnError as error:
            standing = find_write(cause, ledger)
            if standing is None or standing.nonce == nonce:
                raise
            raise superseded_meanwhile(cause.txn_id) from error

    def _run_batch(
        self, sink_id: str, cause: BatchWrite, job: SparkWriteJob, session: SparkSession
    ) -> Outcome[C]:
        """Each write has its own loop: those of several threads run side by side, like those of processes."""
        loop = open_loop(self.sink, self._options, sink_id, session)
        try:
            return loop.run(cause, job)
        finally:
            loop.close()

    def start(
        self,
        df: DataFrame,
        *,
        checkpoint_location: str,
        query_name: str | None = None,
        at_end: AtEnd = AtEnd.PUBLISH,
        report: Callable[[Outcome[C]], Any] = lambda outcome: outcome,
        watch: RunWatch | None = None,
        **trigger: Any,
    ) -> SinkQuery[Any]:
        """Start a stream into the sink; see ``FileSink.start``. ``watch`` is told of its run."""
        arguments.check_stream(df, checkpoint_location, query_name)
        options = arguments.spark_trigger(trigger)
        arguments.check_end(at_end, trigger)
        self.check(df)
        advise(df.sparkSession, str(checkpoint_location))
        ended: Callable[[End], object] = (lambda _: None) if watch is None else watch.begins()
        try:
            query = self._begin(df, query_name, checkpoint=str(checkpoint_location), trigger=options)
        except Exception:  # an interrupt may come when Spark has started the query: then nobody is told
            ended(End.REFUSED)
            raise
        sink_id = stream_sink_id(self.sink.uid, query.id)
        self._join(sink_id, df.sparkSession, RunIds(query_id=query.id, run_id=query.runId))
        return SinkQuery(
            query,
            name=self._name,
            finish=partial(self._end, sink_id, at_end) if ends(trigger) else None,
            release=lambda: self._loops.release(sink_id),
            ended=ended,
            reports=lambda: Reports(report(outcome) for outcome in self._outcomes.latest()),
        )

    def _begin(
        self, df: DataFrame, name: str | None, *, checkpoint: str, trigger: Mapping[str, Any]
    ) -> StreamingQuery:
        refuse_gaps = partial(self._micro_batch, on_gap=OnGap.REFUSE)  # every batch of this query is ours
        stream = df.writeStream.foreachBatch(refuse_gaps).outputMode("append")
        if name is not None:
            stream = stream.queryName(name)
        return start_query(stream, checkpoint=checkpoint, trigger=trigger)

    def foreach_batch(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch; the function for ``writeStream.foreachBatch``."""
        self._micro_batch(df, batch_id, on_gap=OnGap.LOG)

    def _micro_batch(self, df: DataFrame, batch_id: int, *, on_gap: OnGap) -> None:
        check_frame(df)
        run, first_job = self._current_run(df)
        sink_id = stream_sink_id(self.sink.uid, run.ids.query_id)
        self._join(sink_id, df.sparkSession, run.ids)
        with self._loops.use(sink_id, df.sparkSession) as loop:
            cause, offsets = run.micro_batch(batch_id)
            wanted = partial(is_wanted, df.sparkSession, run.ids.query_id)
            job = replace(first_job, df=df, offsets=offsets, wanted=wanted)
            outcome = loop.run(cause, job, on_gap=on_gap)
        self._run = run, replace(first_job, rows_before=outcome.rows)
        self._outcomes.append(outcome)

    def finish(self) -> Outcome[C] | None:
        """Close everything that streams of this sink have left open; call it when input has ended.

        ``start`` does so by itself when its query ends by itself. ``None`` if nothing was open.
        """
        streams = set(self._streams)
        if self.sink.uid is not None:
            streams.add(stream_sink_id(self.sink.uid, ""))
        if not streams:
            raise ConfigError(
                "finish() knows no stream: this sink has no uid and has not run in this process. Give it the "
                "uid it was written with, or start its query again",
                code="NO_STREAM",
            )
        for sink_id in streams:
            self._loops.release(sink_id)  # of queries that have ended; others may have gone on since
        outcomes = [outcome for sink_id in sorted(streams) if (outcome := self._end(sink_id, AtEnd.PUBLISH))]
        return outcomes[-1] if outcomes else None

    def _end(self, sink_id: str, at_end: AtEnd) -> Outcome[C] | None:
        """Close everything that one stream has left open, or only what is due."""
        try:
            with self._loops.use(sink_id, self._session_of(sink_id)) as loop:
                outcome = loop.finish() if at_end is AtEnd.PUBLISH else loop.upkeep()
        finally:
            self._loops.release(sink_id)
        return None if outcome is None else self._outcomes.append(outcome)

    def check(self, df: DataFrame) -> None:
        """Raise what can be known to be wrong before data is read; see ``Sink.prepare``."""
        check_frame(df)
        try:
            cloudpickle.dumps(self.sink)  # type: ignore[no-untyped-call]
        except Exception as error:  # whatever a user's class raises when pickled; nothing has been written
            raise not_picklable(error) from error
        check_twins(df)
        schema = self._schema(df)
        check_derived(df, self.sink.derived_columns())
        self.sink.prepare(schema)

    def _schema(self, df: DataFrame) -> pa.Schema:
        schema = with_derived(df, self.sink.derived_columns()).schema
        return arrow_schema(schema, time_zone=time_zone_of(df.sparkSession))

    def _current_run(self, df: DataFrame) -> tuple[QueryRun, SparkWriteJob]:
        ids = current_ids(df)
        last = self._run  # read once: the thread of another query may set it meanwhile
        known = last if last is not None and last[0].ids == ids else None
        # The user's function may hand on other columns with each batch.
        if known is None or df.schema != known[1].df.schema:
            run = open_run(df, ids) if known is None else known[0]  # refuses before the base path is made
            self.check(df)
            known = self._run = run, self._job(df, run_id=ids.run_id)
        return known

    def _job(self, df: DataFrame, *, run_id: str) -> SparkWriteJob:
        session = df.sparkSession
        return SparkWriteJob(
            name=self._name,
            df=df,
            schema=arrow_schema(df.schema, time_zone=time_zone_of(session)),
            derived=self.sink.derived_columns(),
            projection=self.sink.projection(self._schema(df)),
            run_id=run_id,
            time_zone=time_zone_of(session),
            speculation=session.conf.get("spark.speculation", "false") == "true",
        )

    def _join(self, sink_id: str, session: SparkSession, ids: RunIds) -> None:
        """Enter a chain for a run; while the run lasts, upkeep looks after open parts, data or not."""
        self._streams[sink_id] = session
        self._loops.begin(sink_id, ids)
        if self.sink.state_codec is not None:
            self._loops.watch(sink_id, session, ids.query_id)

    def _session_of(self, sink_id: str) -> SparkSession:
        """The session of a stream; the active one if that is not known or was stopped."""
        known = self._streams.get(sink_id)
        if known is not None and not is_stopped(known):
            return known
        try:
            return SparkSession.active()
        except PySparkRuntimeError as error:
            if known is None:
                raise ConfigError(
                    "finish() needs a Spark session, since what it closes may take a job; make one with "
                    "SparkSession.builder.getOrCreate()",
                    code="NO_SESSION",
                ) from error
            return known  # its settings can still be read, and most streams are finished without a job


def _line(name: str, told: Callable[[Outcome[Any]], str], outcome: Outcome[Any]) -> str:
    return f"{name}: {told(outcome)}"
