"""What a driver and its workers must be for a sink to run in them. Needs no Spark that runs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Self

import pyspark
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, DataFrame, SparkSession

from filesink.data_source.register import register
from filesink.data_source.source import FileSinkDataSource
from filesink.errors import ConfigError, EncoderError, VersionError
from filesink.spark.engine import SparkEngine
from filesink.spark.input import job
from tests.fakes import World


class Remote(DataFrame):
    """A DataFrame of Spark Connect, which has no DataFrame in Java."""

    def __new__(cls) -> Self:
        """As it comes, without a server."""
        return object.__new__(cls)

    def __getattr__(self, name: str) -> Column:
        """What is not there."""
        raise AttributeError(name)


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
        SparkEngine(World().tiers()).check(Remote())
    assert raised.value.code == "SPARK_CONNECT"


def test_workers_of_another_python_are_told_from_other_failures() -> None:
    """What to set is said only where it helps."""
    found = job._other_python(RuntimeError(NO_FILESINK))
    assert found is not None
    assert found.code == "WORKER_PYTHON"
    assert job._other_python(RuntimeError(NO_FILESINK.replace("filesink", "numpy"))) is None


TASK = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\nKeyError: 1\n"
AFTER = {
    "nothing": "",
    "a line end": "\n",
    "another error": "\n\nThe above exception was the direct cause of the following exception:\n\nKeyError\n",
    "frames of Java": "\n\n\tat org.apache.spark.api.python.X.y(X.scala:1)\n",
    "Spark's own state": "\n SQLSTATE: 39000 SQLSTATE: XXKST\n=== Streaming Query ===\n",
}


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize(
    "message", ["one line.", "first\nsecond", "first\n\nafter a blank line", "at [a] b: c"]
)
def test_the_error_of_a_task_is_found_in_spark_s_text(message: str, after: str) -> None:
    """Kind, code and the whole message, of the last one if there are several."""
    earlier = "filesink.errors.StorageError: [IO] an earlier one\n\nDuring handling of the above exception\n"
    found = job.typed(RuntimeError(f"{TASK}{earlier}filesink.errors.EncoderError: [MINE] {message}{after}"))
    assert isinstance(found, EncoderError)
    assert (found.code, found.message) == ("MINE", message)


def test_what_is_not_ours_is_found_nowhere() -> None:
    """Nor is what only looks like an error of ours."""
    assert job.typed(RuntimeError(TASK)) is None
    assert job.typed(RuntimeError("filesink.errors.annotations: [X] y")) is None


def test_finish_without_a_session_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sink could have been finished is known, so it is the session that is missing."""

    def none() -> SparkSession:
        raise PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})

    monkeypatch.setattr(SparkSession, "active", none)
    with pytest.raises(ConfigError) as raised:
        SparkEngine(replace(World().tiers(), uid="flights")).finish()
    assert raised.value.code == "NO_SESSION"


class RemoteSession:
    """A session of Spark Connect: neither a classic one nor with a context, and it registers data sources."""

    def __init__(self) -> None:
        self.registered: list[type] = []
        self.conf = SimpleNamespace(set=lambda *_: None, get=lambda _: "UTC")
        self.dataSource = SimpleNamespace(register=self.registered.append)


RemoteSession.__module__ = "pyspark.sql.connect.session"


def test_the_data_source_is_registered_over_spark_connect() -> None:
    """Only the engine needs a driver of the same machine; ``format("filesink")`` does not."""
    session = RemoteSession()
    register(session)  # type: ignore[arg-type]
    assert session.registered == [FileSinkDataSource]
