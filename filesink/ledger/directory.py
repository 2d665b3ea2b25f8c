"""What stands in the directory of one ledger: its names, and nothing that is in the files.

    _filesink/<sink id>/<slot>.record | .complete | .mark     see ``filesink.ledger.ledger``

Rules:
1. A record at or below the newest mark is void; it is not listed.
2. Hidden names are those of files that are being put, or whose putting has died. Nobody reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

from filesink.naming import LEDGER_ROOT, sink_tag
from filesink.storage.api import Entry, Kind, Store

FileKind = Literal["record", "complete", "mark"]

#: How the name of an open chain begins, see rule 5 of ``filesink.ledger.ledger``.
APPENDS = "appends"
#: The ledger that holds a copy of each record of offline compaction, in the slots of another chain.
COMPACTION = "compaction"

_UNFINISHED = re.compile(r"\.([0-9]{12})\.(?:record|complete|mark)\.")
_SINK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FILE = re.compile(r"([0-9]{12})\.(record|complete|mark)")


@dataclass(frozen=True, slots=True)
class Listing:
    """The slots of one chain, as they were at one moment.

    Attributes:
        records: those with a record that is not void, ascending.
        complete: those whose epoch is done.
        marks: those up to which records are folded away, ascending.
    """

    records: tuple[int, ...]
    complete: frozenset[int]
    marks: tuple[int, ...]

    def folded_to(self) -> int:
        """The newest mark; -1 without one."""
        return self.marks[-1] if self.marks else -1

    def last_slot(self) -> int:
        """The newest slot that is decided; -1 for a new chain."""
        return max([self.folded_to(), *self.records[-1:]])

    def has_folded(self, slot: int) -> bool:
        """Whether ``slot`` is below the newest mark."""
        return slot <= self.folded_to()

    def unfinished(self) -> tuple[int, ...]:
        """Slots whose epoch is decided and not done, ascending."""
        return tuple(slot for slot in self.records if slot not in self.complete)

    def strays(self) -> tuple[int, ...]:
        """Slots that are said to be done and have no record, ascending."""
        known = frozenset(self.records)
        return tuple(
            sorted(slot for slot in self.complete if slot not in known and not self.has_folded(slot))
        )

    def settled(self) -> int:
        """The newest slot up to which every epoch is done."""
        unfinished = self.unfinished()
        last = self.records[-1] if self.records else -1
        return unfinished[0] - 1 if unfinished else last

    def missing(self) -> int | None:
        """The first slot without a record below one that has one."""
        first = self.marks[-1] + 1 if self.marks else 0
        return next(
            (slot for slot, found in zip(count(first), self.records, strict=False) if slot != found), None
        )


def ledger_ids(store: Store) -> list[str]:
    """Ids of all sinks that have a ledger below the base path of ``store``, in order.

    No sink has another name than ``identity`` gives: what lies in other directories decides nothing.
    """
    entries = store.list(LEDGER_ROOT)
    return sorted(entry.name for entry in entries if entry.kind is Kind.DIRECTORY and is_sink_id(entry.name))


def is_sink_id(name: str) -> bool:
    """Whether a ledger may have this name."""
    return _SINK_ID.fullmatch(name) is not None


def twins(store: Store, sink_id: str) -> list[str]:
    """Ids of other sinks with a ledger here whose files bear the same tag as those of ``sink_id``.

    No name tells the files of two such sinks apart.
    """
    tag = sink_tag(sink_id)
    return [other for other in ledger_ids(store) if other != sink_id and sink_tag(other) == tag]


class LedgerDirectory:
    """The directory of the chain of one sink. Every method looks at the store."""

    def __init__(self, store: Store, sink_id: str) -> None:
        self.sink_id = sink_id
        self.path = f"{LEDGER_ROOT}/{sink_id}"
        self._store = store

    @property
    def is_open(self) -> bool:
        """Whether records here need nothing of each other."""
        return self.sink_id == APPENDS or self.sink_id.startswith(f"{APPENDS}-")

    def path_of(self, slot: int, kind: FileKind) -> str:
        """Where the file of that kind stands, or would."""
        return f"{self.path}/{slot:012d}.{kind}"

    def listing(self) -> Listing:
        """The slots, by what stands in them."""
        entries = self._entries()
        marks = sorted(slot for _, slot, kind in entries if kind == "mark")
        mark = marks[-1] if marks else -1
        return Listing(
            records=tuple(sorted(slot for _, slot, kind in entries if kind == "record" and slot > mark)),
            complete=frozenset(slot for _, slot, kind in entries if kind == "complete"),
            marks=tuple(marks),
        )

    def folded(self, mark: int) -> list[str]:
        """Paths of everything up to ``mark``, but not of the mark itself."""
        return [
            f"{self.path}/{name}"
            for name, slot, kind in self._entries()
            if slot < mark or (slot == mark and kind != "mark")
        ]

    def unfinished(self) -> Iterator[tuple[str, int, Entry]]:
        """Path and slot of what crashes inside ``put_if_absent`` left, and of what is being put now."""
        for entry in self._store.list(self.path):
            if found := _UNFINISHED.match(entry.name):
                yield f"{self.path}/{entry.name}", int(found[1]), entry

    def is_there(self) -> bool:
        """Whether anything was ever put here."""
        return self.sink_id in ledger_ids(self._store)

    def neighbours(self) -> list[str]:
        """Ids of the other sinks that have a ledger below the same base path."""
        return [name for name in ledger_ids(self._store) if name != self.sink_id]

    def twins(self, sink_id: str) -> list[str]:
        """See ``twins``, of this module."""
        return twins(self._store, sink_id)

    def changed_ms(self) -> int:
        """When anything was put here last, by the store's clock, in milliseconds since 1970 UTC."""
        entries = self._store.list(self.path)
        return max((entry.mtime_ms for entry in entries), default=0)

    def sync(self) -> None:
        """Make durable which names stand here."""
        self._store.sync_directories([self.path])

    def _entries(self) -> list[tuple[str, int, str]]:
        found = ((entry.name, _FILE.fullmatch(entry.name)) for entry in self._store.list(self.path))
        return [(name, int(match[1]), match[2]) for name, match in found if match]
