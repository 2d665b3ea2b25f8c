"""Drivers and servers that die between any two exchanges: every row once, and nothing left."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sinks.forks import drivers
from tests.sinks.postgres.forks import BATCHES, IN_BATCH, Run
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import DDL, Site

Drive = Callable[[Run], str]
FEW, MANY = 1, 60  # kills of each test and kind; there are twelve of these
KILLS = pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "staged": (DDL, {}),
    "guarded": (DDL + ", CHECK (id >= 0)", {}),
    "prepared": (DDL, {"commit": "prepared"}),
    "keys": ("id bigint PRIMARY KEY, name text", {"keys": ["id"]}),
    "newest": ("id bigint PRIMARY KEY, name text", {"keys": ["id"], "newest_by": "name"}),
    "changes": (
        "id bigint PRIMARY KEY, name text",
        {"keys": ["id"], "row_kind": "kind", "newest_by": "at", "on_schema_change": "apply"},
    ),
}


@pytest.fixture(scope="module")
def drive() -> Iterator[Drive]:
    """Runs drivers."""
    with drivers("tests.sinks.postgres.forks") as driver:
        yield driver


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, postgres: TestServer, tmp_path: Path) -> Site:
    """A table of each kind."""
    ddl, options = KINDS[request.param]
    return Site(postgres, tmp_path, ddl=ddl, options=options)


def run_of(site: Site, **changes: Any) -> Run:
    """A driver of the site's sink."""
    table = f"{site.schema}.{site.table}"
    run = Run(conninfo=site.conninfo, table=table, directory=str(site.directory), options=site.options)
    return replace(run, **changes)


def fresh(site: Site) -> Site:
    """Another table of the same kind, with another ledger."""
    own = site.beside(directory=site.directory / f"{random.random()}")  # noqa: S311 - a name
    own.directory.mkdir()
    return own


def exchanges_of(site: Site, drive: Drive) -> int:
    """How many there are if nobody dies."""
    said = drive(run_of(fresh(site)))
    assert said.startswith("done "), said
    return int(said.split()[1])


def check(site: Site, drive: Drive) -> None:
    """Every row is there once, and after one more epoch nothing is left of any attempt."""
    assert site.ids_there() == list(range(BATCHES * IN_BATCH))
    assert drive(run_of(site, batches=BATCHES + 1)).startswith("done")
    assert site.ids_there() == list(range((BATCHES + 1) * IN_BATCH))
    assert {name for (name,) in site.do("SELECT name FROM {t}")} == {f"n{one}" for one in site.ids_there()}
    assert site.leftovers() == []
    parts = 1 if site.options.get("commit") != "prepared" else None
    found = site.do("SELECT slot, count(*) FROM {s}.filesink_epochs GROUP BY slot ORDER BY slot")
    assert [slot for slot, _ in found] == list(range(BATCHES + 1))
    assert parts is None or {count for _, count in found} == {parts}


def moments(site: Site, drive: Drive, kills: int) -> list[tuple[int, str]]:
    """When somebody dies: at random, or at every moment if there are fewer."""
    every = [(at, side) for at in range(exchanges_of(site, drive)) for side in ("before", "after")]
    seed = time.time_ns()
    print("seed", seed)  # noqa: T201 - shown if the test fails
    return every if kills >= len(every) else random.Random(seed).sample(every, kills)  # noqa: S311


@KILLS
def test_a_driver_dies(site: Site, drive: Drive, kills: int) -> None:
    """At any exchange, and the next one at any other. Its successor has other partitions."""
    moments_of_two = moments(site, drive, kills)
    for at, side in moments_of_two:
        own = fresh(site)
        again = random.choice(moments_of_two)[0]  # noqa: S311
        assert drive(run_of(own, die_at=at, side=side)) == "killed"
        drive(run_of(own, die_at=again, side=side, tasks=3))
        said = drive(run_of(own, tasks=1))
        assert said.startswith("done"), (said, at, side, again)
        check(own, drive)


@KILLS
def test_a_server_dies(site: Site, drive: Drive, kills: int) -> None:
    """At any exchange. The driver goes on when the server is back, or fails and is started again."""
    for at, side in moments(site, drive, kills):
        own = fresh(site)
        reborn = threading.Thread(target=own.server.start_when_dead)
        reborn.start()
        said = drive(run_of(own, die_at=at, side=side, postmaster=own.server.pid))
        reborn.join()
        if not said.startswith("done"):
            said = drive(run_of(own, tasks=3))
        assert said.startswith("done"), (said, at, side)
        check(own, drive)
