"""``CollectSink``: the rows of a query for a client in any process, behind the doors of Spark.

How it is used:

    sink = CollectSink("/data/collected")
    sink.start(stream, checkpoint_location="/data/cp")          # here
    for row in CollectSink("/data/collected").results():        # or elsewhere, without Spark
        print(row)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from filesink.arguments import choice, data_frame, instance_of
from filesink.durations import Duration, has_passed, parse_duration_ms
from filesink.errors import ConfigError
from filesink.ledger.nearby import nothing_at
from filesink.metastore.announcements import Announced
from filesink.naming import LEDGER_ROOT
from filesink.parts.committables import Committable, HeldFile
from filesink.ports import Clock
from filesink.sinks.collect.marks import Marks, Run
from filesink.sinks.collect.position import CollectPosition
from filesink.sinks.collect.results import Acknowledge, CollectResults, Delivery, Taking, beginning
from filesink.sinks.collect.stages import Room
from filesink.sinks.collect.stored import Stored
from filesink.sinks.collect.tiers import tiers
from filesink.sinks.doors import SinkReport, SparkSink, engine_options
from filesink.spark.query import End
from filesink.storage.address import StoreAddress
from filesink.storage.api import Store
from filesink.storage.base_path import check_base_path
from filesink.storage.retrying import RetryingStore
from filesink.system import SystemClock, SystemIds
from formats import FormatError
from formats.sizes import parse_size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOOK: Final = 0.1  # seconds between two looks for a sink that has not begun


class CollectSink(SparkSink[HeldFile, Committable, Announced]):
    """Keeps the rows of a query for one client, each exactly once, whatever crashes on either side.

    The client may live in any process that sees the path; it needs no Spark. A path has one stream at a time.

    Args:
        path: a directory or a URI of any store, of this sink alone; made if missing.
        max_buffered_bytes: an epoch begins when fewer bytes wait for the client, and then writes all it has.
        client_timeout: how long an epoch waits for a client that acknowledges nothing; then the query fails.
        delivery: ``"exactly_once"``: a client gets rows when their epoch is complete. ``"at_least_once"``: as
            soon as a task has written them, in pieces as Spark hands them to it, and all rows of the attempt
            once more if it fails; so may rows that no epoch has, if the query would compute others then.
            For streams, and for clients that ask for it as well; others get each row once.
        storage_options: as ``FileSink``'s ``with_storage_options``; never written anywhere.
        on_new_query: as ``FileSinkBuilder.on_new_query``.

    Raises:
        ConfigError: an argument cannot be used.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_buffered_bytes: int | str = "1GiB",
        client_timeout: Duration = "10 min",
        delivery: Literal["exactly_once", "at_least_once"] = "exactly_once",
        storage_options: Mapping[str, Any] | None = None,
        on_new_query: Literal["refuse", "append"] = "refuse",
    ) -> None:
        options = {} if storage_options is None else storage_options
        self._address = StoreAddress(
            base_path=check_base_path(path),
            storage_options=instance_of(options, Mapping, name="storage_options"),
        )
        room = Room(
            most=_size(max_buffered_bytes),
            patience_ms=parse_duration_ms(client_timeout, name="client_timeout"),
        )
        base = self._address.base_path
        self._delivery = choice(Delivery, delivery, "delivery")
        self._runs = self._watch = _Runs(self._marks)
        self._foreach: Callable[[End], object] | None = None  # ends the run of a bare foreachBatch
        super().__init__(
            tiers(self._address, room, base_path=base, delivery=self._delivery),
            options=engine_options(base, on_new_query=on_new_query),
        )

    def foreach_batch(self, df: DataFrame, batch_id: int) -> None:
        """See ``SparkSink.foreach_batch``. Call ``finish()`` at the end, or clients wait for more."""
        data_frame(df, "foreach_batch")
        if self._foreach is None:
            self._address().prepare()
            self._foreach = self._runs.begins()
        super().foreach_batch(df, batch_id)

    def finish(self) -> SinkReport | None:
        """Remove what clients have acknowledged since the last epoch; ``None`` if that is nothing.

        After ``foreach_batch`` it also tells clients that the query is over.
        """
        report = super().finish()
        if self._foreach is not None:
            self._foreach(End.ENDED)
            self._foreach = None
        return report

    def results(
        self,
        after: CollectPosition | str | None = None,
        *,
        wait: bool | Duration = True,
        acknowledge: Literal["asked", "read"] = "asked",
    ) -> CollectResults:
        """The rows behind a position, in one order, as an iterator; from any process that sees the path.

        Args:
            after: a position that results have had: everything before it is acknowledged herewith, and will
                be removed. ``None`` goes on behind what was acknowledged last. Positions are of complete
                epochs: with ``delivery="at_least_once"`` rows that came before theirs come again.
            wait: ``True``: the iterator ends when the query is over, and all is read. ``False``: it ends at
                the newest row. A duration: also if nothing new comes for so long; ``int`` is milliseconds.
                Only with a duration does the call itself wait for a sink that has not begun, as long as that.
            acknowledge: ``"asked"``: only by ``after``, and by ``acknowledge()`` of the results. ``"read"``:
                also whenever iteration looks for later versions, all that was handed out by then; for a
                client that keeps no position. If it dies, its next one gets the last rows again.

        Raises:
            ConfigError: ``NO_SINK``, nobody has written to the path or started to, within ``wait``;
                ``NO_POSITION``, ``after``
                is beyond the end of its version; or an argument cannot be used.
            StateError: ``POSITION_GONE``; rows behind ``after`` were acknowledged already.
            IdentityError: ``OTHER_INVENTORY``; ``after`` is no position of this path.
            StateCorruptError: ``GAP``; ``after`` is beyond the newest version.
        """
        taking = Taking(
            wait_ms=_wait_ms(wait),
            acknowledge=choice(Acknowledge, acknowledge, "acknowledge"),
            delivery=self._delivery,
        )
        position = None if after is None else CollectPosition.of(after)
        clock = SystemClock()
        store = RetryingStore(self._address(), clock)
        if not _has_begun(store, clock, taking.wait_ms or 0):
            raise nothing_at(self._address, advice="Start the query first, or pass its path")
        stored = Stored(store, clock, self._address.base_path)
        begin = beginning(stored, Marks(store), position)
        found = CollectResults(store, stored, clock, after=begin, taking=taking)
        if position is not None:
            found.acknowledge()
        return found

    def _marks(self) -> Marks:
        return Marks(RetryingStore(self._address(), SystemClock()))


class _Runs:
    """Tells clients of the runs of a query; see ``RunWatch``."""

    def __init__(self, open_marks: Callable[[], Marks]) -> None:
        self._open_marks = open_marks

    def begins(self) -> Callable[[End], object]:
        """See ``RunWatch.begins``."""
        marks, run = self._open_marks(), SystemIds().uuid()
        return partial(_end, marks, marks.begin(run), run)


def _end(marks: Marks, number: int, run: str, how: End) -> None:
    marks.end(number, Run(how.value), run)


def _has_begun(store: Store, clock: Clock, wait_ms: int) -> bool:
    """Whether anybody has written here or started to, at most ``wait_ms`` from now."""
    since = clock.now_ms()
    while not store.list(LEDGER_ROOT):
        if has_passed(since, clock.now_ms(), wait_ms):
            return False
        clock.sleep(_LOOK)
    return True


def _size(given: int | str) -> int:
    try:
        return parse_size(given, name="max_buffered_bytes")
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error


def _wait_ms(wait: Duration) -> int | None:  # of which True and False are two
    if isinstance(wait, bool):
        return None if wait else 0
    return parse_duration_ms(wait, name="wait")
