"""How an engine drives a sink, and the epoch loops that it opens that way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from filesink.api import Sink
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.ports import Audience, Clock, Ids, Ports, Who
from filesink.spark.runner import SparkRunner
from filesink.system import SystemClock, SystemIds, this_driver

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


def _told(outcome: Outcome[Any]) -> str:
    return f"epoch {outcome.slot}: {outcome.rows:,} rows, {len(outcome.committables)} committables"


def _as_it_is(outcome: Outcome[Any]) -> Outcome[Any]:
    return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How a sink is driven.

    Attributes:
        name: how logs and Spark's jobs call the sink; ``""`` for the name of its class.
        told: the text of an outcome in the log.
        check_interval_ms: how often upkeep looks, in milliseconds.
        audience: who is told of epochs, if anybody.
        after: called after each epoch, replays too, when it is complete and its chain free for the next one;
            returns the outcome, with more in it if need be. What it raises goes to the caller of the epoch.
        compared: what a repeated ``txn_id`` is compared by beside its data, as text.
    """

    name: str = ""
    told: Callable[[Outcome[Any]], str] = _told
    epochs: EpochOptions = field(default_factory=EpochOptions)
    check_interval_ms: int = 60_000
    compared: str = ""
    audience: Audience | None = None
    after: Callable[[Outcome[Any]], Outcome[Any]] = _as_it_is
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)


def name_of(sink: Sink[S, C, A], options: EngineOptions) -> str:
    """How logs and Spark's jobs call the sink."""
    return f"filesink {options.name or type(sink).__name__}"


def _who(session: SparkSession) -> Who:
    return this_driver(session.conf.get("spark.app.id", None) or "")


def open_loop(
    sink: Sink[S, C, A], options: EngineOptions, sink_id: str, session: SparkSession
) -> EpochLoop[S, C, A]:
    """The loop of one chain of ``sink``; it keeps as many batches as Spark does, or more."""
    keep = int(session.conf.get("spark.sql.streaming.minBatchesToRetain", "100") or "100")
    runner = SparkRunner(session, name_of(sink, options))
    return EpochLoop(
        sink,
        sink.open_ledger(sink_id),
        ports=Ports(
            clock=options.clock,
            ids=options.ids,
            runner=runner,
            who=_who(session),
            audience=options.audience,
        ),
        options=replace(options.epochs, keep_batches=max(options.epochs.keep_batches, keep)),
    )
