"""Fixtures of all metastores under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.hive_server import HiveServer, hive_server, why_not
from filesink.metastore.api import Metastore, Table
from tests.contracts.metastore_contract import MetastoreSite


@pytest.fixture
def metastore(site: MetastoreSite) -> Metastore:
    """A client of the metastore under test."""
    return site.metastore()


@pytest.fixture
def table(site: MetastoreSite) -> Table:
    """A table that exists."""
    fresh = site.fresh_table()
    client = site.metastore()
    client.create_table(fresh)
    client.close()
    return fresh


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """One real Hive metastore for all tests that need one."""
    if reason := why_not():
        pytest.skip(f"no Hive metastore: {reason}")
    with hive_server(tmp_path_factory.mktemp("hive")) as server:
        yield server
