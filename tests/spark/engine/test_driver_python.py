"""Which Python runs the tasks where nobody has said so."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from filesink.spark.input.driver_python import drivers_python
from tests.spark import outside
from tests.spark.drivers import Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_a_local_master_takes_the_python_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though python3 on PATH is another one that cannot run anything; other functions keep theirs."""
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 3\n")
    other.chmod(0o755)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", f"{other.parent}:{os.environ['PATH']}")
    with Driver("doors", tmp_path / "out", log=tmp_path / "log") as program:
        program.wait_for("done")
    assert outside.parquet_ids(tmp_path / "out" / "sink") == list(range(10))
    assert outside.parquet_ids(tmp_path / "out" / "source") == list(range(10))


def test_several_threads_make_functions_at_a_time(spark: SparkSession) -> None:
    """Each has the driver's Python until it is done, whoever else comes or goes; then all is as it was."""
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, "python3"
    first_is_inside, second_is_inside, first_has_left = Event(), Event(), Event()
    seen = []

    def second() -> None:
        first_is_inside.wait()
        with drivers_python(spark):
            second_is_inside.set()
            first_has_left.wait()
            seen.append(context.pythonExec)

    thread = Thread(target=second, daemon=True)
    thread.start()
    try:
        with drivers_python(spark):
            first_is_inside.set()
            second_is_inside.wait(timeout=0.5)  # which may not be before the first has left
        first_has_left.set()
        thread.join(timeout=30)
        assert (seen, context.pythonExec) == ([sys.executable], "python3")
    finally:
        context.pythonExec = before


def test_a_python_that_was_chosen_stays(spark: SparkSession) -> None:
    """Who sets PYSPARK_PYTHON has that one."""
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, "chosen"
    try:
        with drivers_python(spark):
            assert context.pythonExec == "chosen"
    finally:
        context.pythonExec = before
