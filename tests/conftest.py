"""Settings and servers of all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers import S3Server, moto, rclone
from tests.storage.azurite import azurite
from tests.storage.mini_hdfs import MiniHdfs, mini_hdfs

# The first example of a test pays for imports, and machines differ: no test fails by the clock.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


def pytest_configure() -> None:
    """Java machines of tests live for seconds: compiling their code well takes longer than running it."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that several processes end at about the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


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
