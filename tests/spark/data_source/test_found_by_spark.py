"""``format("filesink")`` without ``register``: Spark finds the module that the wheel has for it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from filesink.data_source.source import FileSinkDataSource
from tests.spark import outside
from tests.spark.drivers import Driver
from tests.spark.wheel_site import source

HERE = source()


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_that_has_not_registered_it(tmp_path: Path) -> None:
    """It writes batches, streams and SQL, and reads them; and to register it then does no harm."""
    with Driver("found", tmp_path, log=tmp_path / "log") as program:
        program.wait_for("done")
    assert outside.parquet_ids(tmp_path / "out") == list(range(20))
    assert outside.parquet_ids(tmp_path / "copy") == list(range(20))


def test_what_spark_takes() -> None:
    """The source itself, under the name that Spark asks for."""
    assert runpy.run_path(str(HERE))["DefaultSource"] is FileSinkDataSource


def test_a_filesink_that_cannot_be_imported(tmp_path: Path) -> None:
    """Other sources are found all the same; who uses this one hears what is wrong."""
    (tmp_path / "filesink").mkdir()
    (tmp_path / "filesink" / "__init__.py").write_text("raise RuntimeError('half installed')")
    (tmp_path / HERE.name).write_bytes(HERE.read_bytes())
    program = "import pyspark_filesink as m; print(m.DefaultSource.name()); m.DefaultSource({})"
    found = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == "filesink\n"
    assert found.stderr.rstrip().endswith(
        "ImportError: filesink cannot be imported by the Python that Spark runs: RuntimeError: half installed"
    )
