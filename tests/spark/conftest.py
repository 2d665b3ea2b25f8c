"""One Spark session for every test that needs one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session: two threads, two attempts of a task, no UI, UTC, two shuffle partitions."""
    with pytest.MonkeyPatch.context() as environment:
        # Else the workers are whatever python3 is first in PATH.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        from tests.spark import wheel_site

        places = [*wheel_site.site(tmp_path_factory.mktemp("found")), os.environ.get("PYTHONPATH", "")]
        environment.setenv("PYTHONPATH", os.pathsep.join(places))
        session = _start(tmp_path_factory.mktemp("warehouse"))
        yield session
        session.stop()


def _start(warehouse: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    from tests.spark.sessions import SETTINGS

    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("filesink-tests")
        .config(map=SETTINGS)
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
