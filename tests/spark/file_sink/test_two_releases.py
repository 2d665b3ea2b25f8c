"""Drivers of two releases on one sink: the older one refuses what it cannot read; no row is lost or doubled.

The older release comes out of this repository's history, so the tests are skipped where there is none. Each
driver is a process with a Spark of its own (``release_driver.py``), and stays up between the turns: the older
one still knows the ledger as it was before the newer one came.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import filesink

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
PROGRAM = Path(__file__).with_name("release_driver.py")
PACKAGES = ("filesink", "formats", "compaction")
#: The last commit with records of version 4. Version 2 and 3, which were never released, know no claims: they
#: write again what today's code has written under a ``txn_id``.
RELEASES = ("af03bf1a~1",)
TODAY = str(Path(str(filesink.__file__)).parents[1])
REFUSED = "StateVersionError"


class Driver:
    """A driver of the release in ``packages``, below ``directory``."""

    def __init__(self, packages: str, directory: Path, log: io.TextIOBase) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, str(PROGRAM), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=directory,  # Spark's workers look there first, and shall find no packages
            env={**os.environ, "PYTHONPATH": packages, "PYSPARK_PYTHON": sys.executable},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def does(self, line: str) -> str:
        """``done``, the name of an error, or nothing from a process that has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it, and wait for its Spark."""
        self._process.communicate()


@pytest.fixture(name="older", params=RELEASES)
def _older(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The packages of an older release."""
    here = Path(__file__).parent
    top = subprocess.run(
        ["git", "rev-parse", "--show-toplevel"],  # noqa: S607 - that of the developer
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    command = ["git", "archive", request.param, *PACKAGES]
    found = subprocess.run(command, cwd=top.stdout.strip() or here, capture_output=True, check=False)  # noqa: S603
    if found.returncode:
        pytest.skip("there is no history with the older release")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(tmp_path / "older", filter="data")
    return str(tmp_path / "older")


@pytest.fixture(name="start")
def _start(tmp_path: Path) -> Iterator[object]:
    """Starts drivers in one directory, and ends them all."""
    (tmp_path / "sink").mkdir()
    with ExitStack() as stack:
        log = stack.enter_context((tmp_path / "log").open("w"))

        def start(packages: str) -> Driver:
            driver = Driver(packages, tmp_path / "sink", log)
            stack.callback(driver.close)
            return driver

        yield start


def rows(directory: Path) -> list[str]:
    """What readers see, by the names of files alone."""
    return sorted(line for file in (directory / "base").rglob("part-*") for line in file.read_text().split())


def test_an_older_driver_is_refused_and_spoils_nothing(older, start, tmp_path):
    """It wrote first, is still up when the newer one writes, and when that one dies between its two steps."""
    sink = tmp_path / "sink"
    old, new = start(older), start(TODAY)
    assert old.does("stream 1 2") == "done"
    assert old.does("batch a 3") == "done"
    assert rows(sink) == ["1", "2", "3"]

    assert new.does("batch a 3") == "done"  # known from the older release: not written again
    assert new.does("stream 4") == "done"
    assert new.does("batch b 5") == "done"
    assert rows(sink) == ["1", "2", "3", "4", "5"]

    # Its input is there, and its ledger has gone on without it.
    answers = [old.does(line) for line in ("stream 6", "batch a 3", "batch b 5", "recover")]
    after = rows(sink)
    assert {*answers} <= {"done", REFUSED}
    assert answers[0] == REFUSED or "6" in after
    assert [row for row in after if row != "6"] == ["1", "2", "3", "4", "5"]

    assert new.does("stream") == "done"
    assert rows(sink) == ["1", "2", "3", "4", "5", "6"]
    new.does("die")
    assert new.does("stream 7") == ""  # decided, and not visible
    answers = [old.does(line) for line in ("stream", "recover")]
    assert {*answers} <= {"done", REFUSED}
    assert start(TODAY).does("stream 8") == "done"
    assert rows(sink) == ["1", "2", "3", "4", "5", "6", "7", "8"]


def test_an_older_driver_overwrites_beside_no_operation_that_it_cannot_read(older, start, tmp_path):
    """Operations have records of a newer version, in the chain of writes that replace files."""
    sink = tmp_path / "sink"
    old, new = start(older), start(TODAY)
    assert old.does("overwrite 1 2") == "done"
    assert new.does("overwrite 3 4") == "done"
    assert rows(sink) == ["3", "4"]
    assert new.does("retain") == "done"
    kept = rows(sink)
    assert old.does("overwrite 5") == REFUSED
    assert rows(sink) == kept
    assert new.does("overwrite 6") == "done"
    assert rows(sink) == ["6"]
