"""A schema for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import Site


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table with an id and a name."""
    return Site(postgres, tmp_path)
