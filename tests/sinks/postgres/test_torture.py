"""Drivers, tasks and servers that die between any two exchanges: every row once, and nothing left."""

from __future__ import annotations

import pytest

from property_tests.torture.destinations.postgres import PostgresRows
from property_tests.torture.kills import few_and_many, survives
from tests.sinks.postgres.server import TestServer


@few_and_many
@pytest.mark.slow
def test_every_row_once_whoever_dies(postgres: TestServer, kills: int) -> None:
    """Staged, rehearsed, prepared and with keys."""
    survives(PostgresRows(), postgres, kills=kills)
