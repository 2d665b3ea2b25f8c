"""Where the ledger of a sink lies that has no base path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from filesink.arguments import instance_of
from filesink.ledger.ledger import Ledger
from filesink.storage.api import Store
from filesink.storage.base_path import spelling
from filesink.storage.open import open_store


@dataclass(frozen=True, slots=True)
class StoreLedger:
    """A directory for the ledgers of one sink, in any store; only the driver opens it.

    Args:
        path: of this sink alone, kept across restarts: without it nobody knows what is committed.
        storage_options: as ``FileSink``'s ``with_storage_options``; never written anywhere.

    Raises:
        ConfigError: no store of ours takes the path.
    """

    path: str | os.PathLike[str]
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", spelling(self.path))
        instance_of(self.storage_options, Mapping, name="storage_options")

    @staticmethod
    def at(place: str | os.PathLike[str] | StoreLedger) -> StoreLedger:
        """What a user has given as ``ledger=``: a path, or one of these."""
        return place if isinstance(place, StoreLedger) else StoreLedger(place)

    def prepare(self) -> None:
        """Make the directory, and refuse a store that cannot decide; for ``Sink.prepare``."""
        self._open().prepare()

    def open(self, sink_id: str) -> Ledger:
        """The chain of ``sink_id``; for ``Sink.open_ledger``."""
        return Ledger(self._open(), sink_id)

    def _open(self) -> Store:
        return open_store(self.path, self.storage_options)
