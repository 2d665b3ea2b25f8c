"""Readers that are killed and started again: what they copy is there once, and what they remove was read."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import filesink
from tests.spark import inputs, outside
from tests.spark.drivers import Driver
from tests.spark.programs.copy_stream import sink_of
from tests.spark.programs.flights_stream import SINKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 250  # of a file


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_reader_of_a_sink_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    """While the sink goes on; the next run of the reader has every row once."""
    between, target = tmp_path / "out", tmp_path / "target"
    sink = SINKS["parquet"](between)

    def write(numbers: range) -> None:
        for number in numbers:
            inputs.add_file(tmp_path / "source", number, rows=ROWS)
            sink.write(spark.read.schema(inputs.SCHEMA).parquet(f"{tmp_path}/source/{number:04}.parquet"))

    copy = Program("copy_stream", "sink", between, target, directory=tmp_path)
    moments = Moments()
    write(range(3))
    with copy.started() as reader:
        write(range(3, 5))
        moments.kill(reader)
    copy.run()
    expect(target, 5 * ROWS, moments)


@pytest.mark.nightly
@pytest.mark.timeout(8 * 3600)
def test_from_sink_to_source_to_sink_through_a_night(tmp_path: Path) -> None:
    """50,000 rows in 200 epochs of a sink that merges its files; each side is killed fifty times."""
    through_a_sink(tmp_path, files=200, rounds=50)


@pytest.mark.nightly
@pytest.mark.timeout(8 * 3600)
@pytest.mark.parametrize(("after", "kills"), [("delete", 3), ("keep", 3), ("delete", 100)])
def test_files_that_come_are_copied_once(tmp_path: Path, after: str, kills: int) -> None:
    """No file goes before it was read, and in the end all have gone."""
    files = 7 * (kills + 1)
    copy = Program("copy_stream", after, tmp_path / "source", tmp_path / "target", directory=tmp_path)
    moments = Moments()
    for number in range(files):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
        if number % 7 == 6 and number // 7 < kills:
            with copy.started() as driver:
                moments.kill(driver)
    copy.run()
    copy.run()  # has nothing to copy, and removes what the last run has read last
    expect(tmp_path / "target", files * ROWS, moments)
    assert len(outside.visible(tmp_path / "source")) == (files if after == "keep" else 0)


class Program:
    """One that is run again and again."""

    def __init__(self, name: str, *arguments: object, directory: Path) -> None:
        self._make = lambda: Driver(name, *arguments, log=directory / f"log-{name}")

    @contextmanager
    def started(self) -> Iterator[Driver]:
        """A run that has come to its query."""
        with self._make() as driver:
            driver.wait_for("started")
            yield driver

    def run(self) -> None:
        """Run to the end of what is there."""
        with self._make() as driver:
            driver.wait_for("done")
            assert driver.wait() == 0


class Moments:
    """When something is killed, and what: a worker, then the JVM alone, or the driver with its JVM."""

    def __init__(self) -> None:
        self.seed = time.time_ns()
        self._random = random.Random(self.seed)  # noqa: S311 - moments, not secrets
        self.kills = 0

    def in_any_order(self, drivers: list[Driver]) -> list[Driver]:
        """``drivers``, as they are to be killed."""
        return self._random.sample(drivers, len(drivers))

    def kill(self, driver: Driver) -> None:
        """Before or after the end of its work."""
        time.sleep(self._random.uniform(0, 6))
        driver.kill_a_worker()
        time.sleep(self._random.uniform(0, 2))
        driver.kill_jvm() if self.kills % 2 == 0 else driver.kill()
        self.kills += 1


def through_a_sink(directory: Path, *, files: int, rounds: int) -> None:
    """Files into a sink, an epoch for each, and what becomes visible there into another sink."""
    between, target = directory / "out", directory / "target"
    write = Program("flights_stream", "compacted", directory, directory=directory)
    copy = Program("copy_stream", "sink", between, target, directory=directory)
    moments = Moments()
    numbers = iter(range(files))
    for _ in range(rounds):
        for number in islice(numbers, files // (rounds + 1)):
            inputs.add_file(directory / "source", number, rows=ROWS)
        with write.started() as writer:
            outside.eventually(lambda: has_begun(between), seconds=300)
            with copy.started() as reader:
                for driver in moments.in_any_order([writer, reader]):
                    moments.kill(driver)
    for number in numbers:
        inputs.add_file(directory / "source", number, rows=ROWS)
    write.run()
    SINKS["compacted"](between).recover()
    copy.run()
    expect(target, files * ROWS, moments)
    kinds = Counter(epoch.kind for epoch in filesink.open(between).epochs())
    assert kinds["micro-batch"] == files
    print(f"{files * ROWS:,} rows, versions by kind {dict(kinds)}, {moments.kills} kills")  # noqa: T201 - figures


def has_begun(base: Path) -> bool:
    """Whether it is the directory of a sink; before, a reader takes it for any other."""
    return any((base / outside.LEDGER).glob("uid-*"))


def expect(target: Path, rows: int, moments: Moments) -> None:
    """Every row once."""
    sink_of(target).recover()
    assert outside.parquet_ids(target) == list(range(rows)), f"seed {moments.seed}"
    assert outside.hidden(target) == []
