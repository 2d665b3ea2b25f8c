"""The session's catalog as a metastore, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.hive_server import HiveServer

SUITE = Path(__file__).with_name("spark_catalog_suite.py")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_the_suite_of_the_sessions_catalog(hive: HiveServer, tmp_path: Path) -> None:
    """The contract, and tables that Spark SQL reads; see ``spark_catalog_suite``."""
    environment = {
        **os.environ,
        "FILESINK_TEST_METASTORE": hive.uri,
        "FILESINK_TEST_WAREHOUSE": str(hive.warehouse),
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--basetemp={tmp_path}/t",
            str(SUITE),
        ],
        cwd=SUITE.parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
