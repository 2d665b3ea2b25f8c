"""The cluster in which workers and drivers die does what it says, and leaves nothing running."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of the demo as the demo does."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return lambda name: importlib.import_module(f"cluster.{name}")


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_every_flight_is_there_once_whoever_dies(tmp_path: Path) -> None:
    """Three times: with filesink installed, as an archive and S3, as an artifact. All processes end."""
    pytest.importorskip("moto", reason="moto is not installed")
    command = [sys.executable, str(EXAMPLES / "cluster_demo.py"), "--output", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("in the midst of a task") == 3
    assert done.stdout.count("SIGKILL for the driver") == 3
    assert done.stdout.count("finds 0 rows too many and misses 0 of 336,776") == 3
    assert [process for process in psutil.process_iter(["cmdline"]) if names(process, tmp_path)] == []


def names(process: psutil.Process, directory: Path) -> bool:
    """Whether it was started with something below the directory."""
    return any(str(directory) in argument for argument in process.info["cmdline"] or ())


def test_the_reader_tells_what_is_there_twice_and_what_is_missing(tmp_path: Path, part) -> None:
    """And it overlooks hidden files."""
    readers, flights = part("readers"), importlib.import_module("flights")
    schema = pa.schema(list(flights.TYPES.items()))
    source = pa.table(
        {
            field.name: pa.array([1, 2, 3]).cast(field.type, safe=False)
            if not pa.types.is_string(field.type)
            else pa.array(["a", "b", "c"])
            for field in schema
        },
        schema=schema,
    )
    (tmp_path / "2013-01").mkdir()
    pq.write_table(
        pa.concat_tables([source.slice(0, 2), source.slice(1, 1)]), tmp_path / "2013-01" / "x.parquet"
    )
    pq.write_table(source, tmp_path / "2013-01" / ".y.parquet")
    found = readers.rows_in_directory(tmp_path)
    assert found.num_rows == 3
    assert readers.differences(found, source) == (1, 1)
    assert readers.differences(source, source) == (0, 0)


def test_a_python_without_filesink_finds_it_in_the_zip_file(tmp_path: Path, part) -> None:
    """It has all that filesink needs, and not filesink."""
    packing = part("packing")
    python, packed = packing.python_without_filesink(tmp_path / "python"), packing.zip_file(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def imported(path: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(python),
            "-c",
            "import filesink; print(filesink.ParquetWriterFactory, filesink.__file__)",
        ]
        given = {**environment, "PYTHONPATH": path}
        return subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)  # noqa: S603 - our own

    assert "No module named 'filesink'" in imported("").stderr
    assert str(packed / "filesink") in imported(str(packed)).stdout


def test_a_process_dies_with_all_below_it(part) -> None:
    """As an executor does with its worker."""
    standalone = part("standalone")
    parent = subprocess.Popen(["/bin/sh", "-c", "sleep 300 & wait"])
    with contextlib.ExitStack() as stack:
        stack.callback(parent.kill)
        standalone.wait_until(lambda: len(standalone.tree(parent.pid)) == 2, what="the child")
        child = psutil.Process(standalone.tree(parent.pid)[1])
        assert standalone.kill_tree(parent) == 2
        deadline = time.monotonic() + 30
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.05)
