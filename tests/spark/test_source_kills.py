"""Readers that are killed and started again: what they copy is there once, and what they remove was read."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.spark import inputs, outside
from tests.spark.drivers import Driver
from tests.spark.programs.copy_stream import sink_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 50


@pytest.mark.timeout(600)
def test_every_row_once_whatever_is_killed(tmp_path: Path) -> None:
    """Workers, JVM and driver die at random moments, while files come; no file goes before it was read."""
    copy_and_kill(tmp_path, "delete", files=14, kills=2)


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("after", ["keep", "delete"])
def test_every_row_once_through_a_night(tmp_path: Path, after: str) -> None:
    """A hundred kills."""
    copy_and_kill(tmp_path, after, files=500, kills=100)


def copy_and_kill(directory: Path, after: str, *, files: int, kills: int) -> None:
    """Copy ``files`` files, a part of which come between kills."""
    seed = time.time_ns()
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    source, target = directory / "source", directory / "target"
    per_run = files // (kills + 1)
    for kill in range(kills):
        for number in range(kill * per_run, (kill + 1) * per_run):
            inputs.add_file(source, number, rows=ROWS)
        with Driver("copy_stream", after, source, target, log=directory / "log") as driver:
            driver.wait_for("started")
            time.sleep(moments.uniform(0, 6))
            driver.kill_a_worker()
            time.sleep(moments.uniform(0, 3))
            driver.kill_jvm() if kill % 2 == 0 else driver.kill()
    for number in range(kills * per_run, files):
        inputs.add_file(source, number, rows=ROWS)
    for _ in range(2):  # the second has nothing to copy, and removes what the first has read last
        with Driver("copy_stream", after, source, target, log=directory / "log") as last:
            last.wait_for("done")
            assert last.wait() == 0
    sink_of(target).recover()
    assert outside.parquet_ids(target) == list(range(files * ROWS)), f"seed {seed}"
    assert len(outside.visible(source)) == (files if after == "keep" else 0)
