"""Several senders of one epoch: each its share, under a name of its own; and whatever becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

from filesink import ConcurrentDriverError, ConfigError, IdentityError, KafkaCluster
from filesink.ports import SerialRunner
from filesink.sinks.kafka import checks
from filesink.sinks.kafka.checks import shares_of
from filesink.sinks.kafka.committables import StagedFile, transactional_id
from filesink.sinks.kafka.sender import Sender, SendInTask
from filesink.system import ThreadRunner
from tests.sinks.kafka import site as sites
from tests.sinks.kafka.site import Site, decided, rows

T = TypeVar("T")
R = TypeVar("R")


def files(task: int, *sizes: int) -> tuple[StagedFile, ...]:
    """The files of a task."""
    places: list[Any] = [f"staged/{task}-{number}" for number in range(len(sizes))]
    return tuple(
        StagedFile(staged=place, rows=size, bytes=size) for place, size in zip(places, sizes, strict=True)
    )


def test_shares_are_of_whole_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, with about as many bytes each."""
    monkeypatch.setattr(checks, "_SHARE", 10)
    tasks = [files(0, 5, 5), files(1, 30), files(2, 20), files(3, 10, 9)]
    assert shares_of(tasks, 2) == [files(1, 30) + files(0, 5, 5), files(2, 20) + files(3, 10, 9)]
    assert set(shares_of(tasks, 9)) == set(tasks)
    assert shares_of(tasks, 1) == [sum(tasks, ())]
    assert shares_of([files(0, 9), files(1, 9)], 2) == [files(0, 9) + files(1, 9)]  # too little for two


@pytest.mark.parametrize("senders", [0, 65, True, "2", 1.0, None])
def test_numbers_that_are_none(senders: Any) -> None:
    """1 to 64."""
    with pytest.raises(ConfigError, match="senders must be a number from 1 to 64"):
        KafkaCluster("kafka:9092", senders=senders)


def test_names_of_shares() -> None:
    """The first share has the name of the whole, so that the number of senders can be changed."""
    names = [transactional_id("uid-u", "t", share) for share in range(3)]
    assert names[1:] == [f"{names[0]}-1", f"{names[0]}-2"]


@pytest.fixture
def shared(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with three senders, and work for all of them."""
    monkeypatch.setattr(checks, "_SHARE", 1)
    site.options["senders"] = 3
    return site


class Notes:
    """Runs shares in threads; before, ``trouble`` may do anything."""

    def __init__(self, trouble: Callable[[list[Any]], object] = len) -> None:
        self.shares: list[int] = []
        self._trouble = trouble

    def __call__(self) -> Notes:
        return self

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        work = [*items]
        self._trouble(work)
        self.shares.append(len(work))
        return ThreadRunner().run(function, work)


def by_driver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names under which the driver itself sends."""
    names: list[str] = []
    send = Sender.send

    def noted(self: Sender, epoch: Any) -> None:
        names.append(epoch.name)
        send(self, epoch)

    monkeypatch.setattr(Sender, "send", noted)
    monkeypatch.setattr(SendInTask, "__call__", lambda self, share: send(
        Sender(self.cluster, self.directory, clock=sites.SystemClock()), share
    ))  # fmt: skip
    return names


@pytest.mark.slow
def test_tasks_send(shared: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """All shares; an epoch of one task is sent by the driver, whose session a task has ended meanwhile."""
    shared.tasks, names = Notes(), by_driver(monkeypatch)
    driver = shared.driver()
    shared.tiers().prepare(sites.SCHEMA)
    for number, batches in enumerate([[rows(1)], [rows(2), rows(3), rows(4), rows(5)], [rows(6)]]):
        driver.run(sites.micro_batch(number), shared.job(*batches))
    assert shared.tasks.shares == [3]
    assert len(names) == 2
    assert shared.ids_there() == [1, 2, 3, 4, 5, 6]
    assert shared.staged() == []


@pytest.mark.slow
def test_an_epoch_of_which_some_is_sent(shared: Site) -> None:
    """Whoever comes next sends the rest, without tasks too, and with another number of senders."""
    decided(shared, rows(1), rows(2), rows(3))
    shares = sites.shares_of(shared)
    Sender(shared.cluster(), shared.tiers().ledger, clock=shared.clock).send(shares[1])
    shared.options["senders"] = 1
    shared.driver().recover()
    assert shared.ids_there() == [1, 2, 3]
    assert shared.staged() == []


@pytest.mark.slow
def test_tasks_that_fail(shared: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The driver sends what they have not sent, and says why."""

    def half(shares: list[Any]) -> None:
        SendInTask(shared.cluster(), shared.tiers().ledger)(shares[0])
        raise ValueError("a value of a row")

    shared.tasks = Notes(half)
    with caplog.at_level(logging.WARNING, "filesink.kafka"):
        shared.run(0, rows(1), rows(2), rows(3))
    assert shared.ids_there() == [1, 2, 3]
    assert "ValueError" in caplog.text
    assert "a value of a row" not in caplog.text


@pytest.mark.slow
def test_tasks_that_are_fenced_off(shared: Site) -> None:
    """Another driver has gone on: this one does not fence it off in turn."""

    def fenced(shares: list[Any]) -> None:
        del shares
        raise ConcurrentDriverError("fenced", code="KAFKA_FENCED")

    shared.tasks = Notes(fenced)
    with pytest.raises(ConcurrentDriverError):
        shared.run(0, rows(1), rows(2))
    assert shared.ids_there() == []
    shared.tasks = SerialRunner
    shared.driver().recover()
    assert shared.ids_there() == [1, 2]


@pytest.mark.slow
def test_a_ledger_that_was_begun_anew(shared: Site) -> None:
    """Is refused before anything is decided, whichever share was sent."""
    decided(shared, rows(1), rows(2), rows(3))
    Sender(shared.cluster(), shared.tiers().ledger, clock=shared.clock).send(sites.shares_of(shared)[2])
    shared.directory = shared.directory / "anew"
    with pytest.raises(IdentityError) as error:
        shared.run(0, rows(4))
    assert error.value.code == "KAFKA_EPOCH"
