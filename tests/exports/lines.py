"""A path with files that are not Parquet."""

from __future__ import annotations

from pathlib import Path

from filesink.ledger.record import BatchWrite
from filesink.storage.address import StoreAddress
from tests.fakes import World, records


def lines(base: Path) -> Path:
    """One epoch of text."""
    world = World(open_store=StoreAddress(base_path=str(base)))
    world.store().prepare()
    world.driver().run(BatchWrite(), world.job(records("1")))
    return base
