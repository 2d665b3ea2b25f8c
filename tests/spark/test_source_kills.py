"""Readers that are killed and started again: what they copy is there once, and what they remove was read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark import inputs, outside
from tests.spark.drivers import Driver
from tests.spark.programs.copy_stream import sink_of
from tests.spark.programs.flights_stream import SINKS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 50


@pytest.mark.timeout(900)
def test_from_sink_to_source_to_sink(tmp_path: Path) -> None:
    """A stream writes while another reads what it has written, and each of them is killed on the way."""
    through_a_sink(tmp_path, files=12, kills=1)


@pytest.mark.nightly
@pytest.mark.timeout(8 * 3600)
def test_from_sink_to_source_to_sink_through_a_night(tmp_path: Path) -> None:
    """50,000 rows in 200 epochs, and a hundred kills of either side."""
    through_a_sink(tmp_path, files=1_000, kills=100)


@pytest.mark.nightly
@pytest.mark.timeout(8 * 3600)
@pytest.mark.parametrize(("after", "kills"), [("delete", 3), ("keep", 3), ("delete", 100)])
def test_files_that_come_are_copied_once(tmp_path: Path, after: str, kills: int) -> None:
    """No file goes before it was read, and in the end all have gone."""
    files = 7 * (kills + 1)
    copy = Killed("copy_stream", after, tmp_path / "source", tmp_path / "target", directory=tmp_path)
    for number in range(files):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
        if number % 7 == 6 and number // 7 < kills:
            copy.run_and_kill()
    copy.run()
    copy.run()  # has nothing to copy, and removes what the last run has read last
    expect(tmp_path / "target", files * ROWS, copy)
    assert len(outside.visible(tmp_path / "source")) == (files if after == "keep" else 0)


class Killed:
    """A program that is run, and killed at random moments: its workers, its JVM, or all of it."""

    def __init__(self, program: str, *arguments: object, directory: Path) -> None:
        self.seed = time.time_ns()
        self._moments = random.Random(self.seed)  # noqa: S311 - moments, not secrets
        self._driver = lambda: Driver(program, *arguments, log=directory / f"log-{program}")
        self._kills = 0

    def run_and_kill(self) -> None:
        """Start, and kill before or after the end of the work."""
        with self._driver() as driver:
            driver.wait_for("started")
            time.sleep(self._moments.uniform(0, 6))
            driver.kill_a_worker()
            time.sleep(self._moments.uniform(0, 3))
            driver.kill_jvm() if self._kills % 2 == 0 else driver.kill()
            self._kills += 1

    def run(self) -> None:
        """Run to the end of what is there."""
        with self._driver() as driver:
            driver.wait_for("done")
            assert driver.wait() == 0


def through_a_sink(directory: Path, *, files: int, kills: int) -> None:
    """Files into a sink, and what is visible there into another."""
    between, target = directory / "out", directory / "target"
    write = Killed("flights_stream", "compacted", directory, directory=directory)
    copy = Killed("copy_stream", "keep", between, target, directory=directory)
    steps: list[Callable[[], None]] = [write.run_and_kill, copy.run_and_kill] * kills
    added = 0
    for step in [*steps, write.run, copy.run]:
        for _ in range(-(-files // (len(steps) + 2))):
            if added < files:
                inputs.add_file(directory / "source", added, rows=ROWS)
                added += 1
        step()
    write.run()
    SINKS["compacted"](between).recover()
    copy.run()
    expect(target, files * ROWS, copy)


def expect(target: Path, rows: int, copy: Killed) -> None:
    """Every row once."""
    sink_of(target).recover()
    assert outside.parquet_ids(target) == list(range(rows)), f"seed {copy.seed}"
    assert outside.hidden(target) == []
