"""One server of Spark Connect for all tests that need one; ``spark`` is a session on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.drivers import Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'pyspark[connect]'")
    directory = tmp_path_factory.mktemp("connect")
    with Driver("connect_server", directory, log=directory / "log") as server:
        yield f"sc://127.0.0.1:{server.told('port')}"


@pytest.fixture(scope="session")
def spark(connect_server: str) -> Iterator[SparkSession]:
    """A session of a client, beside the classic one that other tests of the process may have."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.remote(connect_server).create()
    yield session  # type: ignore[misc] # Spark's two kinds of session have no class in common
    session.stop()
