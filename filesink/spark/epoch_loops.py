"""The epoch loops of this driver, one for each chain it writes to, and the upkeep timers beside its streams.

Rules:
1. A chain has one loop here: two would take each other for rival drivers. The loop is kept as long as
   somebody uses it or a timer may. It must not be kept longer: others may write to the chain meanwhile, and
   the loop would go on from an old head.
2. A timer belongs to one query. Two queries may meet in the chain of one uid, if only until the second is
   refused, and the end of one is not the end of the other.
3. Timers hold the loops weakly: if a sink is made for each batch, it and its thread end with the batch.
4. Nobody says when a query with ``foreachBatch`` has ended. So the loop and timer of a run are dropped when
   the next run begins: others may have written in between, or their session may have been stopped.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ref

from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.spark.query import UpkeepTimer
from filesink.spark.query_internals import RunIds, is_active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


class EpochLoops(Generic[S, C, A]):
    """The loops and timers of one sink, by sink id.

    Args:
        open_loop: makes the loop of a chain. Must not refer to whoever holds this object, see rule 3.
        note: called with the outcome of every upkeep that closed something.
        interval: how often upkeep looks, in seconds.
    """

    def __init__(
        self,
        open_loop: Callable[[str, SparkSession], EpochLoop[S, C, A]],
        *,
        note: Callable[[Outcome[C]], object],
        interval: float,
    ) -> None:
        self._open_loop = open_loop
        self._note = note
        self._interval = interval
        self._lock = threading.Lock()
        self._loops: dict[str, EpochLoop[S, C, A]] = {}
        self._at_work: Counter[str] = Counter()
        self._timers: dict[tuple[str, str], UpkeepTimer] = {}  # by sink id and query id
        self._beginning = threading.Lock()  # taken before the other one; no timer's thread takes it
        self._runs: dict[tuple[str, str], str] = {}  # run ids, by sink id and query id

    @contextmanager
    def use(self, sink_id: str, session: SparkSession) -> Iterator[EpochLoop[S, C, A]]:
        """The loop of a chain. It stays open during the ``with`` block, and afterwards until ``release``."""
        with self._lock:
            if sink_id not in self._loops:
                self._loops[sink_id] = self._open_loop(sink_id, session)
            loop = self._loops[sink_id]
            self._at_work[sink_id] += 1
        try:
            yield loop
        finally:
            with self._lock:
                self._at_work[sink_id] -= 1

    def begin(self, sink_id: str, ids: RunIds) -> None:
        """Drop the loop and the timer that earlier runs of a query have left; see rule 4.

        Call it before each use by a query. All but the first call of a run do nothing.
        """
        key = sink_id, ids.query_id
        with self._beginning:  # whoever else comes with this run waits until the chain can be used
            if self._runs.get(key) == ids.run_id:
                return
            with self._lock:
                stale = self._timers.pop(key, None)  # asks for the query, not for the run: seems needed
            if stale is not None:
                stale.stop()
            self.release(sink_id)
            self._runs[key] = ids.run_id

    def watch(self, sink_id: str, session: SparkSession, query_id: str) -> None:
        """Have upkeep look after open parts for as long as the query runs, with or without data."""
        with self._lock:
            timer = self._timers.get((sink_id, query_id))
            if timer is None or not timer.alive:
                self._timers[sink_id, query_id] = self._timer(sink_id, session, query_id)

    def release(self, sink_id: str) -> None:
        """Close the loop of a chain, unless somebody uses it or a running query has a timer for it.

        Call it when a write or a query has ended. The next use opens the chain again.
        """
        with self._lock:
            ended = [key for key, timer in self._timers.items() if key[0] == sink_id and not timer.needed]
            timers = [self._timers.pop(key) for key in ended]
        for timer in timers:  # without the lock, which an upkeep at work may be waiting for
            timer.stop()
        with self._lock:
            if self._at_work[sink_id] or any(key[0] == sink_id for key in self._timers):
                return
            loop = self._loops.pop(sink_id, None)
        if loop is not None:
            loop.close()

    def _timer(self, sink_id: str, session: SparkSession, query_id: str) -> UpkeepTimer:
        weak = ref(self)

        def upkeep() -> None:
            if (loops := weak()) is not None:
                loops._upkeep(sink_id, session)  # noqa: SLF001 - our own

        return UpkeepTimer(
            upkeep=upkeep,
            is_active=lambda: weak() is not None and is_active(session, query_id),
            interval=self._interval,
            sink_id=sink_id,
        )

    def _upkeep(self, sink_id: str, session: SparkSession) -> None:
        with self.use(sink_id, session) as loop:
            outcome = loop.upkeep()
        if outcome is not None:
            self._note(outcome)
