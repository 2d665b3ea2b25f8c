"""Drivers, tasks and brokers that die at any step: readers of what is committed see each row once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.sinks.forks import drivers
from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.forks import BATCHES, IN_BATCH, Run
from tests.sinks.kafka.site import Site

Drive = Callable[[Run], str]
DRIVERS, BROKERS = 80, 30  # that die in a night, for each kind; with a driver dies the next one, too
_NIGHTLY = [pytest.mark.nightly, pytest.mark.timeout(600 + 60 * DRIVERS)]
#: How many bytes a transaction has: all files of an epoch go with one, or each with its own.
KINDS = {"an epoch at once": 1 << 20, "file by file": 1}
SIDES = ("before", "after", "during")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drive() -> Iterator[Drive]:
    """Runs drivers."""
    with drivers("tests.sinks.kafka.forks") as driver:
        yield driver


def run_of(site: Site, kind: str, **changes: Any) -> Run:
    """A driver of the site's sink."""
    run = Run(
        servers=site.broker.servers,
        topic=site.name,
        markers=site.markers,
        directory=str(site.directory),
        transaction_bytes=KINDS[kind],
    )
    return replace(run, **changes)


def fresh(site: Site) -> Site:
    """Another topic, with another ledger."""
    own = site.beside(directory=site.directory / f"{random.random()}")  # noqa: S311 - a name
    own.directory.mkdir()
    return own


def check(site: Site, kind: str, drive: Drive) -> None:
    """Every row is there once, and after one more epoch nothing is left of any attempt."""
    assert site.ids_there() == list(range(BATCHES * IN_BATCH))
    said = drive(run_of(site, kind, batches=BATCHES + 1))
    assert said.startswith("done"), said
    assert site.ids_there() == list(range((BATCHES + 1) * IN_BATCH))
    assert {message.value().decode() for message in site.read()} == {f"v{one}" for one in site.ids_there()}
    assert site.staged() == []


def moments(site: Site, kind: str, drive: Drive, kills: int) -> Iterator[dict[str, Any]]:
    """When somebody dies."""
    said = drive(run_of(fresh(site), kind))
    assert said.startswith("done "), said
    steps, seed = int(said.split()[1]), time.time_ns()
    print("seed", seed, "steps", steps)  # noqa: T201 - shown if the test fails
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    for _ in range(kills):
        at = chance.randrange(steps)
        yield {"die_at": at, "side": chance.choice(SIDES), "delay": chance.random() ** 2 / 20}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kills", [1, pytest.param(DRIVERS, marks=_NIGHTLY)])
def test_a_driver_dies(site: Site, drive: Drive, kind: str, kills: int) -> None:
    """At any step, of a task or its own, and the next one at another. Its successor has other partitions."""
    for moment in moments(site, kind, drive, kills):
        own = fresh(site)
        drive(run_of(own, kind, **moment))
        drive(run_of(own, kind, **moment | {"die_at": moment["die_at"] // 2, "tasks": 3}))
        said = drive(run_of(own, kind, tasks=1))
        assert said.startswith("done"), (said, moment)
        check(own, kind, drive)


@pytest.mark.parametrize(
    ("kind", "kills"),
    [("file by file", 1), *(pytest.param(kind, BROKERS, marks=_NIGHTLY) for kind in KINDS)],
)
def test_a_broker_dies(site: Site, drive: Drive, kind: str, kills: int) -> None:
    """At any step. The driver goes on when the broker is back, or fails and is started again."""
    broker: Broker = site.broker
    for moment in moments(site, kind, drive, kills):
        own = fresh(site)
        reborn = threading.Thread(target=broker.start_when_dead)
        reborn.start()
        said = drive(run_of(own, kind, **moment, broker=broker.pid))
        reborn.join()
        if not said.startswith("done"):
            said = drive(run_of(own, kind, tasks=3))
        assert said.startswith("done"), (said, moment)
        check(own, kind, drive)
