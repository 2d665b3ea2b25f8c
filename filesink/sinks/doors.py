"""The doors of a sink: ``write``, ``start`` and ``foreach_batch``, for any ``filesink.api.Sink``.

How it is used:

    SparkSink(CountSink()).write(df)                    # a sink of your own

    class PostgresSink(SparkSink[…]):                   # one of ours
        def __init__(self, …) -> None:
            super().__init__(PostgresTiers(…), options=engine_options("db.table"))

Rules: nothing about a destination in here. ``FileSink`` has doors of its own, which know files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from filesink.api import Sink
from filesink.api.events import Listener, Listeners, check_listener
from filesink.arguments import checkpoint, choice, data_frame, instance_of, one_of
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions, OnReplayMismatch
from filesink.ledger.identity import EXCLUSIVE, OnNewQuery, append_sink_id, stream_sink_id
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import MicroBatch
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.spark.arguments import spark_trigger
from filesink.spark.elsewhere import SinkElsewhere
from filesink.spark.engine import SparkEngine
from filesink.spark.engine_options import EngineOptions
from filesink.spark.query import AtEnd, RunWatch, SinkQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkReport:
    """What one epoch has done.

    Attributes:
        epoch: its slot in the sink's ledger.
        rows: records that came in.
        batch_id: Spark's number of the micro-batch; ``None`` for a batch write or an epoch without input.
        already_committed: nothing was written, because an earlier call had committed this input.
        metrics: counters of the tasks, added up.
    """

    epoch: int
    rows: int
    batch_id: int | None = None
    already_committed: bool = False
    metrics: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(outcome: Outcome[Any]) -> SinkReport:
        """A user's view of an epoch's outcome."""
        return SinkReport(
            epoch=outcome.slot,
            rows=outcome.rows,
            batch_id=outcome.cause.batch_id if isinstance(outcome.cause, MicroBatch) else None,
            already_committed=outcome.replayed,
            metrics=outcome.metrics,
        )


class SparkSink(Generic[S, C, A]):
    """A sink that Spark writes into. Lives on the driver; the ``sink`` in it goes to the tasks.

    One of these takes one DataFrame, and one call per micro-batch.

    Args:
        sink: your own, or one of ``filesink.sinks``.
        options: how it is driven; see ``engine_options``.
    """

    _listeners: tuple[Listener, ...] = ()
    _watch: RunWatch | None = None  # a sink of ours may want to know when its queries begin and end

    def __init__(self, sink: Sink[S, C, A], *, options: EngineOptions | None = None) -> None:
        self._sink = instance_of(sink, Sink, name="sink")
        given = EngineOptions() if options is None else options
        self._engine = SparkEngine(sink, instance_of(given, EngineOptions, name="options"))

    def __reduce__(self) -> tuple[type[SinkElsewhere], tuple[()]]:
        return SinkElsewhere, ()  # a sink stays in its process

    def with_listener(self, listener: Listener) -> Self:
        """Have ``listener`` told how far each epoch is; call it before the first write. Returns this sink.

        What it raises is logged and fails nothing; see ``filesink.Listener``. Its events name no files:
        rows, times and offsets are those of any sink.

        Raises:
            ConfigError: ``BAD_VALUE``; it is nothing that can be called.
        """
        self._listeners = (*self._listeners, check_listener(listener))
        given = self._engine.options
        name = given.name or type(self._sink).__name__
        self._engine = SparkEngine(self._sink, replace(given, audience=Listeners(name, self._listeners)))
        return self

    def write(
        self,
        df: DataFrame,
        *,
        mode: Literal["append", "overwrite", "overwrite_partitions", "error_if_data_exists"] = "append",
        txn_id: str | None = None,
    ) -> SinkReport:
        """Write a batch DataFrame as one epoch; returns when it is committed.

        Args:
            df: not streaming; executed once, and once more if ``txn_id`` was written before.
            mode: one that the sink has; each has ``"append"``.
            txn_id: your name for this very data. A second call with the same name, also after a crash,
                compares number, columns and values of the rows; if they are equal it writes nothing and
                reports ``already_committed``.

        Raises:
            RepeatedTxnError: ``txn_id`` has stood for other data; nothing was written.
            FilesinkError: nothing was committed; or the epoch had been decided, and ``recover()``
                completes it.
        """
        chosen = choice(SaveMode, mode, "mode")
        return SinkReport.of(self._engine.write(data_frame(df, "write"), mode=chosen, txn_id=txn_id))

    def start(
        self,
        df: DataFrame,
        *,
        checkpoint_location: str | os.PathLike[str],
        query_name: str | None = None,
        at_end: Literal["publish", "keep"] = "publish",
        **trigger: Any,
    ) -> SinkQuery[SinkReport]:
        """Start a streaming query into this sink; returns a ``StreamingQuery``.

        Args:
            df: streaming.
            checkpoint_location: a directory for this query alone, kept across restarts.
            query_name: Spark's name of the query.
            at_end: what happens to what writers have kept for a later epoch when the query ends by itself:
                ``"publish"`` commits it, ``"keep"`` leaves it for the next run.
            **trigger: one of ``processing_time="10 seconds"``, ``available_now=True``, ``once=True``.

        Raises:
            FilesinkError: the query was not started. Later failures are in ``query.exception()``.
        """
        spark_trigger(trigger)  # else any name would do
        return self._engine.start(
            data_frame(df, "start"),
            checkpoint_location=checkpoint(checkpoint_location),
            query_name=query_name,
            at_end=choice(AtEnd, at_end, "at_end"),
            report=SinkReport.of,
            watch=self._watch,
            **trigger,
        )

    def foreach_batch(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch: ``df.writeStream.foreachBatch(sink.foreach_batch)``.

        Raises:
            FilesinkError: as ``write``. Let it end the query: its restart repeats the batch.
        """
        self._engine.foreach_batch(data_frame(df, "foreach_batch"), batch_id)

    def finish(self) -> SinkReport | None:
        """Commit what streams of this sink have kept for a later epoch; ``None`` if that is nothing.

        ``start`` does so by itself at the end of a query that ends by itself.

        Raises:
            ConfigError: ``NO_STREAM``; no stream has written with this object, and the sink has no uid.
        """
        outcome = self._engine.finish()
        return None if outcome is None else SinkReport.of(outcome)

    def recover(self) -> list[SinkReport]:
        """Complete what crashed drivers have decided. Needs no Spark, and no query may be running.

        A restart of the query does the same by itself.

        Raises:
            FilesinkError: an epoch could not be completed; it stays decided.
        """
        outcomes = [outcome for ledger in self._ledgers() for outcome in self._completed(ledger)]
        return [SinkReport.of(outcome) for outcome in outcomes]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._engine.options.name or type(self._sink).__name__}>"

    def _ledgers(self) -> list[Ledger]:
        """Those that this sink may have written: all of its directory, if it has no uid."""
        uid = self._sink.uid
        appends = self._sink.open_ledger(append_sink_id(uid))
        ids = [appends.sink_id, *appends.directory.neighbours()]
        if uid is not None:
            ids = [name for name in ids if name in {appends.sink_id, stream_sink_id(uid, ""), EXCLUSIVE}]
        return [self._sink.open_ledger(name).with_patience(self._engine.clock) for name in ids]

    def _completed(self, ledger: Ledger) -> list[Outcome[C]]:
        unfinished = ledger.history.unfinished()
        if not unfinished:
            return []
        ports = Ports(clock=self._engine.clock, ids=self._engine.ids, runner=SerialRunner())
        with closing(EpochLoop(self._sink, ledger, ports=ports, options=EpochOptions())) as loop:
            found = [loop.recover(record.slot) for record in unfinished]
        return [outcome for outcome in found if outcome is not None]


def engine_options(
    name: str,
    *,
    on_new_query: Literal["refuse", "append"] = "refuse",
    on_replay_mismatch: Literal["raise", "keep_first"] = "raise",
) -> EngineOptions:
    """How a sink is driven, in a user's words; ``name`` is for logs and Spark's jobs, and no secret.

    Args:
        name: what is written to.
        on_new_query: as ``FileSinkBuilder.on_new_query``.
        on_replay_mismatch: as ``FileSinkBuilder.on_replay_mismatch``.
    """
    one_of(on_new_query, ("refuse", "append"), name="on_new_query")
    epochs = EpochOptions(
        on_new_query=OnNewQuery(on_new_query),
        on_replay_mismatch=choice(OnReplayMismatch, on_replay_mismatch, "on_replay_mismatch"),
    )
    return EngineOptions(name=name, epochs=epochs)
