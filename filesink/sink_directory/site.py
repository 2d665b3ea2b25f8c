"""Where a directory of sinks is, and how its parts read it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from filesink.inventory.reading import Reader
from filesink.inventory.schemas import read_schema
from filesink.inventory.snapshots import Snapshots
from filesink.ledger.layouts import Layouts
from filesink.ports import Clock
from filesink.storage.api import Store


@dataclass(frozen=True, kw_only=True)
class Site:
    """One base path.

    Attributes:
        base_path: in its one spelling.
        store: of that path.
        clock: waits before something is looked at again.
    """

    base_path: str
    store: Store = field(repr=False)
    clock: Clock = field(repr=False)
    _schemas: dict[str, pa.Schema] = field(default_factory=dict, repr=False)

    def snapshots(self) -> Snapshots:
        """What the inventory says."""
        return Snapshots(Reader(self.store, self.clock), self.base_path)

    def schema(self, name: str) -> pa.Schema:
        """The columns with the id ``name``, see ``filesink.inventory.schemas``. They never change."""
        if name not in self._schemas:
            self._schemas[name] = read_schema(self.store, name)
        return self._schemas[name]

    def layouts(self) -> list[pa.Schema]:
        """The columns in all files that were ever written, of each layout that counts; maybe of none."""
        return [layout.columns for layout in Layouts(self.store).read().layouts]
