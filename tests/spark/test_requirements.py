"""What a driver and its workers must be for a sink to run in them. Needs no Spark that runs."""

from __future__ import annotations

import pyspark
import pytest

from filesink.errors import ConfigError, VersionError
from filesink.spark import job
from filesink.spark.engine import SparkEngine
from tests.fakes import World

NO_FILESINK = "ModuleNotFoundError: No module named 'filesink'"


@pytest.mark.parametrize("version", ["3.5.9", "4.0.9"])
def test_an_older_spark_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Before anything is written, and by its numbers."""
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(VersionError) as raised:
        SparkEngine(World().tiers()).check(object())  # type: ignore[arg-type]
    assert raised.value.code == "SPARK_VERSION"


@pytest.mark.parametrize("version", ["4.1.0", "4.10.0.dev1", "10.0.0"])
def test_a_frame_of_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """In every Spark that is new enough: its server would run the sink where it does not exist."""
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(ConfigError) as raised:
        SparkEngine(World().tiers()).check(object())  # type: ignore[arg-type]
    assert raised.value.code == "SPARK_CONNECT"


def test_workers_of_another_python_are_told_from_other_failures() -> None:
    """What to set is said only where it helps."""
    found = job._other_python(RuntimeError(NO_FILESINK))
    assert found is not None
    assert found.code == "WORKER_PYTHON"
    assert job._other_python(RuntimeError(NO_FILESINK.replace("filesink", "numpy"))) is None
