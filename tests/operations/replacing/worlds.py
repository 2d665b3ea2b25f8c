"""Worlds in memory whose operations can be killed at each step of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from filesink.commit.outcome import Outcome
from filesink.ledger.identity import batch_write
from filesink.operations.maintenance import Lost
from filesink.ports import Ports
from filesink.save_mode import SaveMode
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.site import Site
from filesink.storage.faulty import Fault, Moment
from tests.fakes import World, micro_batch, records

DAY_MS = 86_400_000
START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z


class Killed(BaseException):
    """The program is gone."""


class Days(World):
    """One text file for each value, in directories by day; a micro-batch a day."""

    def write(self, *days: int, uid: str = "u") -> None:
        """A micro-batch for each day of January 2026, at its noon."""
        for day in days:
            self.clock.now = START_MS + (day - 1) * DAY_MS + DAY_MS // 2
            self.append(f"{day}", bucket=f"day=2026-01-{day:02}", uid=uid)

    def append(self, *values: str, bucket: str, uid: str = "u") -> None:
        """One micro-batch."""
        self.uid = uid
        head = self.ledger().head()
        number = 0 if head is None or head.record.last_batch is None else head.record.last_batch.batch_id + 1
        job = self.job(records(*values, bucket=bucket))
        self.driver().run(micro_batch(number, query_id=f"query-{uid}"), job)

    def overwrite(self, *values: str, bucket: str) -> None:
        """A batch write that replaces everything."""
        sink_id, cause = batch_write(SaveMode.OVERWRITE, "u", "", self.ids)
        self.driver(sink_id).run(cause, self.job(records(*values, bucket=bucket)))

    def directory(self) -> SinkDirectory:
        """As readers by versions see it."""
        return SinkDirectory(_site=Site(base_path="/base", store=self.store(), clock=self.clock))

    def live(self) -> list[str]:
        """Rows of the newest version, sorted."""
        contents = self.contents()
        paths = [file.path for file in self.directory().snapshot().files]
        return sorted(line for path in paths for line in contents[path].decode().splitlines())

    def recover(self) -> None:
        """What an operator does after a crash."""
        self.uid = None
        self.maintenance().recover(Lost.RAISE, None)
        self.uid = "u"

    def check(self) -> None:
        """Readers of directories see what readers by versions see, and nothing hidden is left."""
        assert self.rows() == self.live()
        assert self.hidden() == []


def written(*days: int) -> Days:
    """A world with these days, at the evening of the last."""
    world = Days(clock=replace_clock())
    world.write(*days)
    world.clock.now += DAY_MS // 4
    return world


def replace_clock():
    """A clock at the beginning of the year."""
    return replace(World().clock, now=START_MS)


def kills(make: Callable[[], Days], run: Callable[[Days], object]) -> Iterator[Days]:
    """The worlds that ``run`` leaves if it is killed before or after each of its operations on the store.

    The last one is that of a run which nobody kills.
    """
    for moment in Moment:
        for step in range(10_000):
            world, seen = make(), 0

            def fault(_operation: str, _path: str, *, step: int = step, moment: Moment = moment):
                nonlocal seen
                seen += 1
                return Fault(moment=moment, error=Killed()) if seen > step else None

            world.fault = fault
            try:
                run(world)
            except Killed:
                world.fault = lambda _operation, _path: None
                yield world
            else:
                world.fault = lambda _operation, _path: None
                yield world
                break


def ports(world: Days) -> Ports:
    """Of an operator's program."""
    return world.ports()


def removed(outcome: Outcome | None) -> int:
    """How many files an operation has removed."""
    return 0 if outcome is None else len(outcome.committables) - len(outcome.left)
