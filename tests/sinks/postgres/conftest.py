"""One server for all tests of a process, and a schema for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sinks.postgres.server import TestServer, running
from tests.sinks.postgres.site import Site


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """A server; tests that crash it start it again."""
    with running() as server:
        yield server


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table with an id and a name."""
    return Site(postgres, tmp_path)
