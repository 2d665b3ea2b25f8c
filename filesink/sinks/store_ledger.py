"""Where the ledger of a sink lies that has no base path, and a base for such sinks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.api import Sink
from filesink.arguments import instance_of
from filesink.errors import ConfigError, InternalError
from filesink.ledger.ledger import Ledger
from filesink.storage.api import Store
from filesink.storage.base_path import spelling
from filesink.storage.open import open_store

if TYPE_CHECKING:
    import pyarrow as pa

S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")


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
    def at(place: str | os.PathLike[str] | StoreLedger | None) -> StoreLedger:
        """What a user has given as ``ledger=``: a path, or one of these.

        Raises:
            ConfigError: ``PATH_REQUIRED``; nothing was given.
        """
        if place is None or (isinstance(place, str) and not place.strip()):
            raise ConfigError(
                "ledger is required: a directory of this sink alone, kept across restarts, where it notes "
                "what is committed",
                code="PATH_REQUIRED",
            )
        return place if isinstance(place, StoreLedger) else StoreLedger(place)

    def prepare(self) -> None:
        """Make the directory, and refuse a store that cannot decide; for ``Sink.prepare``."""
        self.open_store().prepare()

    def open(self, sink_id: str) -> Ledger:
        """The chain of ``sink_id``; for ``Sink.open_ledger``."""
        return Ledger(self.open_store(), sink_id)

    def open_store(self) -> Store:
        """The store of the directory, for a sink that keeps more there; made anew for each process."""
        return open_store(self.path, self.storage_options)


@dataclass(frozen=True, kw_only=True)
class LedgerSink(Sink[S, C, A]):
    """A sink that keeps its ledger in a directory of its own. Derive from it; tasks get no ``ledger``.

    Args:
        ledger: the directory; its path will do.
        uid: the sink's stable name; needed if a stream may get another checkpoint.
    """

    ledger: StoreLedger | None
    uid: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ledger", StoreLedger.at(self.ledger))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ledger": None}

    def prepare(self, schema: pa.Schema) -> None:
        """See ``Sink.prepare``."""
        del schema
        self._directory.prepare()

    def open_ledger(self, sink_id: str) -> Ledger:
        """See ``Sink.open_ledger``."""
        return self._directory.open(sink_id)

    @property
    def _directory(self) -> StoreLedger:
        if self.ledger is None:
            raise InternalError("a task has no ledger; please report this", code="NO_LEDGER")
        return self.ledger
