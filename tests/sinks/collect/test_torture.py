"""Drivers, tasks and clients that die at any call of their store: every row is taken once, in one order."""

from __future__ import annotations

import pytest

from property_tests.torture.destinations.collected import Collected
from property_tests.torture.kills import few_and_many, survives


@few_and_many
@pytest.mark.slow
def test_every_row_is_taken_once_whoever_dies(kills: int) -> None:
    """However often either side dies, and whoever goes on first."""
    survives(Collected(), kills=kills)
