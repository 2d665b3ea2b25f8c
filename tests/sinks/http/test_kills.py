"""Drivers and services that die at any request: nothing is lost, and what comes twice has one key."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sinks.forks import drivers
from tests.sinks.http.forks import BATCHES, IN_TASK, TASKS, Run
from tests.sinks.http.mortal import Mortal, mortal

Drive = Callable[[Run], str]
FEW, MANY = 2, 80  # deaths of each test and kind; there are four of these
KILLS = pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
KINDS: dict[str, dict[str, Any]] = {"waits": {}, "keeps": {"at_commit": "keep"}}
REQUESTS = BATCHES * TASKS * (IN_TASK // 3 + 1)

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("kind", KINDS)]


@pytest.fixture(scope="module")
def drive() -> Iterator[Drive]:
    """Runs drivers."""
    with drivers("tests.sinks.http.forks") as driver:
        yield driver


def moments(kills: int) -> Iterator[tuple[int, str]]:
    """When somebody dies."""
    seed = time.time_ns()
    print("seed", seed)  # noqa: T201 - shown if the test fails
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    for _ in range(kills):
        yield chance.randrange(REQUESTS), chance.choice(["before", "after"])


def check(service: Mortal) -> None:
    """Every record has arrived, under one key."""
    keys: defaultdict[int, set[str]] = defaultdict(set)
    for key, ids in service.taken():
        for one in ids:
            keys[one].add(key)
    assert sorted(keys) == list(range(BATCHES * TASKS * IN_TASK))
    assert [one for one, found in keys.items() if len(found) > 1] == []


@KILLS
def test_a_driver_dies(drive: Drive, tmp_path: Path, kind: str, kills: int) -> None:
    """At any request, and the next one at any other."""
    for number, (at, side) in enumerate(moments(kills)):
        directory = tmp_path / str(number)
        directory.mkdir()
        with mortal(directory) as service:
            run = Run(url=service.url, directory=str(directory), sending=KINDS[kind])
            for die_at in (at, (at * 7 + 3) % REQUESTS):
                drive(replace(run, die_at=die_at, side=side))
            assert drive(run).startswith("done"), (at, side)
            check(service)
            before = len(service.taken())
            assert drive(run).startswith("done")
            assert len(service.taken()) == before


@KILLS
def test_a_service_dies(drive: Drive, tmp_path: Path, kind: str, kills: int) -> None:
    """At any request. The driver goes on when it is back, or fails and is started again."""
    for number, (at, side) in enumerate(moments(kills)):
        directory = tmp_path / str(number)
        directory.mkdir()
        with mortal(directory) as service:
            service.stop()
            service.start(at, side)
            reborn = threading.Thread(target=service.start_when_dead)
            reborn.start()
            run = Run(url=service.url, directory=str(directory), sending=KINDS[kind])
            said = drive(run)
            reborn.join()
            assert said.startswith("done") or drive(run).startswith("done"), (at, side, said)
            check(service)
