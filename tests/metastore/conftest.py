"""Fixtures of all metastores under test."""

from __future__ import annotations

import pytest

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
