"""A driver that is killed anywhere between writing a file and noting that its epoch was told."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from filesink import FeedEntry, FunctionNotification, SinkDirectory
from filesink.exports.api import ExportPlan
from filesink.exports.following import Exports
from filesink.exports.notifications.notification import Notification
from filesink.sink_directory.site import Site
from filesink.storage.faulty import Fault, Moment, perform
from tests.exports.receivers import HurriedClock, first_of_each
from tests.fakes import World, micro_batch, records

BATCHES = 2

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The driver dies."""


@dataclass
class Stream:
    """A query whose epochs are told of, and that is started again until it is through.

    ``moment``: of the one call at which it dies, counted from all calls of stores and of the receiver.
    """

    die_at: int
    moment: Moment
    calls: itertools.count[int] = field(default_factory=itertools.count)
    deaths: int = 0
    told: list[FeedEntry] = field(default_factory=list)
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.world.clock.now = 1_700_000_000_000
        self.world.store().prepare()
        self.world.fault = self._plan

    def _plan(self, _operation: str, _path: str) -> Fault | None:
        if next(self.calls) != self.die_at:
            return None
        self.deaths += 1
        return Fault(moment=self.moment, error=Killed())

    def _take(self, entry: FeedEntry) -> None:
        files = self.world.files.files
        assert all(file.path in files for file in entry.added)  # never before they are visible
        perform(self._plan, ("send", str(entry.version)), lambda: self.told.append(entry))

    def directory(self) -> SinkDirectory:
        """As a driver opens it."""
        return SinkDirectory(_site=Site(base_path="/base", store=self.world.store(), clock=self.world.clock))

    def run(self) -> None:
        """From the first batch that Spark has not noted as done."""
        done = 0
        while done < BATCHES:
            try:
                driver = self.world.driver()
                exports = Exports(
                    ExportPlan(exporters=(FunctionNotification(self._take, name="f"),)),
                    open_directory=self.directory,
                    ports=self.world.ports(),
                )
                while done < BATCHES:
                    driver.run(micro_batch(done), self.world.job(records(f"row-{done}")))
                    exports.run()
                    done += 1
            except Killed:
                pass


@pytest.mark.parametrize("moment", Moment)
def test_none_is_missed(monkeypatch: pytest.MonkeyPatch, moment: Moment) -> None:
    """At each call, before or after its effect: each epoch was told, in order, under one id."""
    monkeypatch.setattr(Notification, "clock", HurriedClock(now=1_700_000_000_000))
    twice = 0
    for at in itertools.count():
        stream = Stream(die_at=at, moment=moment)
        stream.run()
        stream.world.fault = lambda _operation, _path: None
        whole = [entry.id for entry in stream.directory().follow()]
        assert len(whole) == BATCHES
        assert first_of_each([entry.id for entry in stream.told]) == whole, at
        assert len(stream.told) <= BATCHES + 1
        twice += len(stream.told) > BATCHES
        if not stream.deaths:
            break
    assert at > 60
    assert twice > 0
