"""Servers of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers import S3Server, moto, rclone
from tests.shared_classes import share_classes
from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.broker import running as running_kafka
from tests.sinks.postgres.server import TestServer, running
from tests.storage.azure.azurite import azurite
from tests.storage.gcs.emulator import fake_gcs_server
from tests.storage.hdfs.mini_hdfs import MiniHdfs, mini_hdfs


def pytest_runtest_setup(item: pytest.Item) -> None:
    """JVMs of tests start sooner."""
    if item.get_closest_marker("spark"):
        share_classes()


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests; each takes a bucket of its own."""
    with moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(scope="session")
def rclone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Another implementation, with other gaps."""
    root = tmp_path_factory.mktemp("rclone")
    with rclone(root, tmp_path_factory.mktemp("rclone-log")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHdfs]:
    """A real cluster; each test takes a directory of its own."""
    with mini_hdfs(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def azure_connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connection string of one server; each test takes a container of its own."""
    with azurite(tmp_path_factory.mktemp("azurite")) as connection:
        yield connection


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one emulator; each test takes a bucket of its own."""
    with fake_gcs_server(tmp_path_factory.mktemp("fake-gcs-server")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """One server of PostgreSQL; each test takes a schema of its own, and starts it again if it crashes it."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """One broker; each test takes topics of its own, and starts it again if it kills it."""
    with running_kafka() as broker:
        yield broker
