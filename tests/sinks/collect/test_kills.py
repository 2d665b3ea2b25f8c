"""Drivers and clients that die at any call of their store: every row is taken once, in one order."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sinks.collect.forks import BATCHES, IN_TASK, TASKS, Run
from tests.sinks.collect.site import Site
from tests.sinks.forks import drivers

Drive = Callable[[Run], str]
FEW, MANY = 3, 300  # histories; in each a driver and a client die twice
ALL = BATCHES * TASKS * IN_TASK


@pytest.fixture(scope="module")
def drive() -> Iterator[Drive]:
    """Runs drivers and clients."""
    with drivers("tests.sinks.collect.forks") as driver:
        yield driver


def taken(directory: Path) -> list[int]:
    """What the client has kept."""
    with closing(sqlite3.connect(directory / "taken.db")) as database:
        return [one for (one,) in database.execute("SELECT id FROM taken ORDER BY rowid")]


def calls_of(drive: Drive, run: Run) -> int:
    """How many there are if nobody dies."""
    said = drive(run)
    assert said.startswith("done "), said
    return int(said.split()[1])


@pytest.mark.slow
@pytest.mark.parametrize("histories", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_every_row_is_taken_once(drive: Drive, tmp_path: Path, histories: int) -> None:
    """However often either side dies, and whoever goes on first."""
    seed = time.time_ns()
    print("seed", seed)  # noqa: T201 - shown if the test fails
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    whole = tmp_path / "whole"
    whole.mkdir()
    most = {role: calls_of(drive, Run(directory=str(whole), role=role)) for role in ("driver", "client")}
    died = 0
    for number in range(histories):
        directory = tmp_path / str(number)
        directory.mkdir()
        first = Run(directory=str(directory), role="driver", batches=1)
        drive(first)
        lives = ["driver", "client"] * 2
        chance.shuffle(lives)
        for role in lives:
            moment = {"die_at": chance.randrange(most[role]), "side": chance.choice(["before", "after"])}
            said = drive(replace(first, role=role, batches=chance.randint(1, BATCHES), **moment))
            assert said == "killed" or said.startswith("done"), said
            died += said == "killed"
        for role in ("driver", "client"):
            said = drive(Run(directory=str(directory), role=role))
            assert said.startswith("done"), said
        check(directory, drive)
    assert died


def check(directory: Path, drive: Drive) -> None:
    """Every row once, versions one after the other; and what was acknowledged is removed by the next end."""
    found = taken(directory)
    assert sorted(found) == list(range(ALL)), found
    assert [one // (TASKS * IN_TASK) for one in found] == sorted(one // (TASKS * IN_TASK) for one in found)
    assert drive(Run(directory=str(directory), role="driver")).startswith("done")
    assert Site(directory / "collected").files() == []
