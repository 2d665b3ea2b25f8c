"""The torture as a test: a few kills for each change, hundreds by night."""

from __future__ import annotations

import time

import pytest

from property_tests.torture.destination import Destination, Server
from property_tests.torture.torture import torture

FEW, MANY = 1, 300  # of drivers, tasks, servers and clients each
_HOURS = 3

few_and_many = pytest.mark.parametrize(
    "kills",
    [FEW, pytest.param(MANY, marks=[pytest.mark.nightly, pytest.mark.timeout(_HOURS * 3600)])],
)


def survives(destination: Destination, server: Server | None = None, *, kills: int) -> None:
    """Fail if a promise was broken; ``torture`` has printed the seed."""
    verdict = torture(destination, server, kills=kills, seed=time.time_ns())
    assert verdict.wrong == ()
    assert verdict.lost == 0
