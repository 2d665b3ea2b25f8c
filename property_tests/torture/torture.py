"""The torture of one destination."""

from __future__ import annotations

import tempfile
from pathlib import Path

from property_tests.torture.destination import Destination, Server
from property_tests.torture.history import Chamber, histories
from property_tests.torture.nursery import nursery
from property_tests.torture.verdict import Verdict


def torture(
    destination: Destination, server: Server | None = None, *, kills: int, seed: int, first: int = 0
) -> Verdict:
    """Kill until so many are dead; see ``history``.

    Args:
        destination: what is tortured.
        server: that of ``destination.serving()``, or one like it.
        kills: of each kind of process that can be killed.
        seed: of all chance.
        first: the number of the first history.
    """
    print(f"torture of {type(destination).__name__}, seed {seed}")  # shown if a test fails
    with tempfile.TemporaryDirectory(prefix="filesink-torture-") as name, nursery(destination) as live:
        chamber = Chamber(destination=destination, server=server, directory=Path(name), live=live, seed=seed)
        return histories(chamber, kills=kills, first=first)
