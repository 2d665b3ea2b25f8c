"""Drivers that are killed and started again: every row once, for whoever looks, at every moment."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark import inputs, outside
from tests.spark.drivers import Driver
from tests.spark.programs.flights_stream import SINKS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 800
MANY = 15  # kills of each kind by night
SUFFIXES = {"parquet": ".parquet", "compacted": ".parquet", "text": ".txt"}
KINDS_AND_KILLS = [
    ("compacted", 1),
    *(pytest.param(kind, MANY, marks=pytest.mark.nightly) for kind in SUFFIXES),
]


@pytest.mark.timeout(600 + 120 * MANY)
@pytest.mark.parametrize(("kind", "kills"), KINDS_AND_KILLS)
def test_every_row_once_whatever_is_killed(kind: str, kills: int, tmp_path: Path) -> None:
    """Kills of workers, JVM and driver at random moments; a reader polls all the time.

    The reader never meets a file that is not whole or that changes, what was published before a kill
    is the same at the end, and nothing hidden is left.
    """
    seed = time.time_ns()
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    files = 4 * kills + 4  # so that each driver has something to publish before it is killed
    for number in range(files):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    base, log = tmp_path / "out", tmp_path / "log"
    base.mkdir()
    with Driver("poll_files", base, SUFFIXES[kind], log=log) as reader:
        published = run_and_kill(kind, tmp_path, moments, kills)
        seen = json.loads(reader.ask())
    assert seen["wrong"] == [], f"seed {seed}"
    assert seen["polls"] > 20
    SINKS[kind](base).recover()
    check_rows(kind, base, files * ROWS)
    assert published.items() <= outside.visible(base).items()
    assert seen["files"] == len(outside.visible(base))
    assert outside.hidden(base) == []


def run_and_kill(
    kind: str, directory: Path, moments: random.Random, kills: int
) -> dict[str, outside.Identity]:
    """Start, kill and start again; what was visible at some kill."""
    base, log = directory / "out", directory / "log"
    published: dict[str, outside.Identity] = {}
    drivers: list[Driver] = []
    try:
        for kill in range(kills):
            driver = Driver("flights_stream", kind, directory, log=log)
            drivers.append(driver)
            driver.wait_for("started")
            wait_for_progress(driver, base, more_than=len(published))
            driver.kill_a_worker()
            time.sleep(moments.uniform(0, 1))
            published |= outside.visible(base)
            # After the death of its JVM alone, the next driver starts beside a dying one.
            driver.kill_jvm() if kill % 2 == 0 else driver.kill()
        with Driver("flights_stream", kind, directory, log=log) as last:
            last.wait_for("done")
            assert last.wait() == 0
    finally:
        for driver in drivers:
            driver.__exit__()
    return published


def wait_for_progress(driver: Driver, base: Path, *, more_than: int) -> None:
    """Until this run has published something, or its end."""
    outside.eventually(lambda: not driver.runs or len(outside.visible(base)) > more_than, seconds=300)


def check_rows(kind: str, base: Path, rows: int) -> None:
    """Every row of the source is there once."""
    if kind != "text":
        assert outside.parquet_ids(base) == list(range(rows))
        return
    found = [line.split(",")[1] for line in outside.lines(base, ".txt")]
    assert sorted(found) == [f"{number:09}" for number in range(rows)]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Six small batches."""
    for number in range(6):
        inputs.add_file(tmp_path / "source", number, rows=50)
    return tmp_path


@pytest.mark.parametrize("step", ["commit", pytest.param("decide", marks=pytest.mark.nightly)])
def test_a_second_driver_beside_a_dying_one_doubles_nothing(directory: Path, step: str) -> None:
    """The JVM of the first is dead, its Python goes on after the second has done everything.

    Stopped before its epoch is decided, it finds that it lost; stopped half-way through publishing,
    it finds that all is done. Either way it changes nothing.
    """
    base, log = directory / "out", directory / "log"
    arguments = ("interrupted_stream", "flights", "block", step, directory)
    with Driver(*arguments, log=log) as first:
        first.wait_for("blocked")
        half_done = outside.visible(base)
        first.kill_jvm()
        with Driver(*arguments, log=log) as second:
            second.wait_for("done")
            assert second.wait() == 0
        before = outside.everything(base)
        assert first.runs
        (directory / "go-on").touch()
        assert first.wait() != 0
    assert outside.parquet_ids(base) == list(range(300))
    assert outside.visible(base) == {path: before[path] for path in outside.visible(base)}
    assert half_done.items() <= before.items()
    assert set(outside.everything(base)) <= set(before)
    assert outside.hidden(base) == []
