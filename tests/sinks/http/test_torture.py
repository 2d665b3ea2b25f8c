"""Drivers, tasks and services that die at any request: nothing is lost, and what comes twice has one key."""

from __future__ import annotations

import pytest

from property_tests.torture.destinations.http import HttpRequests
from property_tests.torture.kills import few_and_many, survives


@few_and_many
@pytest.mark.slow
def test_every_row_under_one_key_whoever_dies(kills: int) -> None:
    """Whether an epoch waits for its answers or keeps what is not sent."""
    destination = HttpRequests()
    with destination.serving() as service:
        survives(destination, service, kills=kills)
