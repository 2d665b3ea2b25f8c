"""What was seen of a path at one look: chains, inventory, listing. Values only.

A *draft* of a finding is its code, path and detail: the base path is added at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from filesink.ledger.directory import Listing
from filesink.ledger.record import EpochRecord
from filesink.ledger.sweep import Hidden
from filesink.parts.committables import Committable
from filesink.storage.api import Entry


class Draft(NamedTuple):
    """What is wrong; see ``Finding``."""

    code: str
    path: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenChain:
    """One chain.

    Attributes:
        sink_id: its name.
        is_open: see ``LedgerDirectory``.
        listing: its slots.
        records: those that can be read, by slot.
        unfinished: those that are decided and not done.
        undone: slots that a later record takes back.
        done_unpublished: slots that are done although their files never became visible.
        left: what the newest complete epoch could not remove.
        puts: hidden files in its directory.
        is_whole: whether nothing of it is damaged.
    """

    sink_id: str
    is_open: bool
    listing: Listing
    records: Mapping[int, EpochRecord]
    unfinished: frozenset[int]
    undone: frozenset[int]
    done_unpublished: frozenset[int]
    left: tuple[Committable, ...]
    puts: tuple[Hidden, ...]
    is_whole: bool

    def newest(self) -> EpochRecord | None:
        """The newest record, if it can be read."""
        return self.records.get(self.listing.records[-1]) if self.listing.records else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenInventory:
    """An inventory that is whole.

    Attributes:
        version: the newest.
        horizon: the oldest version whose files are known.
        files: rows of ``inventory.rows.files``, one for each path, also of those that are gone.
        epochs: rows of ``inventory.rows.epochs``.
    """

    version: int
    horizon: int
    files: pa.Table
    epochs: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFiles:
    """A listing of everything.

    Attributes:
        visible: what readers see, by path; links are among them.
        hidden: files of ours that they do not see.
        directories: all that were listed.
    """

    visible: Mapping[str, Entry]
    hidden: Sequence[Hidden]
    directories: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All of it.

    Attributes:
        chains: looked at first.
        inventory: then; ``None`` if it is not whole, or there is none.
        files: then.
        decided: the newest slot of each chain when all files were listed, so that none is of a later one.
    """

    chains: Sequence[SeenChain]
    inventory: SeenInventory | None
    files: SeenFiles
    decided: Mapping[str, int]
