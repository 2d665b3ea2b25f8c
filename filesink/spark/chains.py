"""The chains that this driver works in, and the timers beside the streams that write to them.

Rules:
1. There is one loop for a chain: two would take each other for rival drivers. It is kept for as long as
   anybody works in it or a timer may, and no longer: it would go on from a head that others have left behind.
2. A timer is one query's. Two queries may meet in the chain of one uid, if only until the second is refused,
   and the end of one is not that of the other.
3. Timers hold the chains weakly. A sink that is made for each batch goes with the batch, and its thread soon.
4. Nobody says when a query with ``foreachBatch`` has ended. So what a run leaves goes when the next begins:
   others may have gone on in between, and the session of loop and timer may have been stopped.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ref

from filesink.commit.epoch import EpochLoop, Outcome
from filesink.spark.query import UpkeepTimer
from filesink.spark.streams import RunIds, is_active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


class Chains(Generic[S, C, A]):
    """The loops and timers of one sink, by sink id.

    Args:
        open_loop: makes the loop of a chain. Must not hold what holds the chains, see rule 3.
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
        """The loop of a chain, which stays open meanwhile; and afterwards, until ``release``."""
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
        """Let go of what earlier runs of a query have left of a chain; see rule 4.

        Call it before each use by a query. All but the first call of a run do nothing.
        """
        key = sink_id, ids.query_id
        with self._beginning:  # whoever else comes with this run waits until the chain can be used
            if self._runs.get(key) == ids.run_id:
                return
            with self._lock:
                stale = self._timers.pop(key, None)  # seems needed: it asks for the query, not for the run
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
        """Let go of a chain, unless somebody works in it or a query that runs has a timer for it.

        Call it when a write or a query has ended. Whoever needs the chain again reads it again.
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
            if (chains := weak()) is not None:
                chains._upkeep(sink_id, session)  # noqa: SLF001 - our own

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
