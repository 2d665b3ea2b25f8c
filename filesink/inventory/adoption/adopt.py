"""An inventory of what is there already: of files and ledgers, for a path that was written without one.

Also for one whose inventory is damaged, of which as much is kept as can be read. Rules:
1. First a mark stands that says so. Who completes an epoch from then on gives it a version; who had decided
   one before may not have seen the mark, and is waited for.
2. Then files are listed, and the ledgers asked which are complete. They are adopted at a version of their own,
   which an entry reserves; entries below are folded with them, so that no removal is forgotten.
3. What was said before is replaced. Nobody can ask for a version before the adoption.
4. Nothing but the inventory is written, and an adoption that was cut off is repeated from the start.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import pyarrow as pa

from filesink.errors import FilesinkError, StateError
from filesink.inventory import chains
from filesink.inventory.adoption.finished import at_version, finished_files
from filesink.inventory.adoption.remains import Remains, remains_of
from filesink.inventory.appending import first_mark
from filesink.inventory.entry import ADOPTED, Cause, Draft, Entry
from filesink.inventory.mark import Mark, MarkKind, digest
from filesink.inventory.names import entry_path, mark_path
from filesink.inventory.putting import SegmentPutter, Span, put
from filesink.inventory.rows import epochs as epoch_rows
from filesink.inventory.rows import files as file_rows
from filesink.inventory.rows.merging import without_past_files
from filesink.inventory.schemas import put_schema, schema_id
from filesink.inventory.sweeping import Sweeper
from filesink.ports import Clock, Ids
from filesink.retry import Backoff
from filesink.storage.api import Store
from formats.arrow import pc

log = logging.getLogger("filesink")

_LEVEL: Final = 3  # of the segments that are made; they are not merged before many others are
_TRIES: Final = 5


class Adoption:
    """Adopts one base path.

    Args:
        store: where it is.
        clock: dates the adoption, and waits.
        ids: name what is made.
    """

    def __init__(self, store: Store, *, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._segments = SegmentPutter(store, ids)

    def run(self) -> int:
        """The version at which everything that is there was adopted.

        Raises:
            StateError: ``AT_WORK``, an epoch was decided and does not become complete; ``CONCURRENT``,
                somebody else adopts or folds the same path all the time.
            StorageError, StateCorruptError: the store or a ledger cannot be read. Call again.
        """
        if remains_of(self._store, self._clock).number < 0:
            begun = first_mark(MarkKind.ADOPTING, now_ms=self._clock.now_ms(), base_id=self._ids.uuid())
            put(self._store, mark_path(0), begun.to_bytes())
        if remains_of(self._store, self._clock).is_begun:
            self._wait_for_epochs()
        for _ in range(_TRIES):
            version = self._try()
            if version is not None:
                self._sweep()
                return version
        raise StateError(
            "others have folded or adopted the inventory again and again meanwhile; call adopt() again",
            code="CONCURRENT",
        )

    def _wait_for_epochs(self) -> None:
        """See rule 1."""
        waiting = chains.at_work(self._store)
        backoff: Backoff | None = None
        while waiting := self._still_at_work(waiting):
            backoff = backoff or Backoff(self._clock)
            if not backoff.wait():
                raise StateError(
                    f"{min(waiting.values())} is decided and not complete: its driver is at work, or has died. "
                    "Nothing was adopted. Start its query again, or call recover(), then call adopt() again",
                    code="AT_WORK",
                )

    def _still_at_work(self, waiting: dict[str, str]) -> dict[str, str]:
        now = chains.at_work(self._store)
        entered = remains_of(self._store, self._clock).nonces()
        return {nonce: name for nonce, name in waiting.items() if nonce in now and nonce not in entered}

    def _try(self) -> int | None:
        """The version of the adoption; ``None`` if others came between."""
        columns = chains.newest_columns(self._store)
        if columns:
            put_schema(self._store, columns)
        found = finished_files(self._store)
        adopted = self._reserve(remains_of(self._store, self._clock), columns)
        now = remains_of(self._store, self._clock)
        if now.mark is not None and now.mark.version >= adopted.version:
            return None
        mark = self._mark(now, adopted, found)
        return adopted.version if put(self._store, mark_path(mark.number), mark.to_bytes()) else None

    def _reserve(self, remains: Remains, columns: bytes) -> Entry:
        """An entry of the adoption itself, at a version that nobody else can have."""
        now_ms = self._clock.now_ms()
        draft = Draft(
            sink="",
            slot=0,
            nonce=self._ids.uuid(),
            cause=Cause(kind=ADOPTED),
            decided_ms=now_ms,
            visible_ms=now_ms,
            rows=0,
            size=0,
            schema=schema_id(columns),
        )
        base_id = remains.base_id or self._ids.uuid()
        version = remains.newest + 1
        while True:
            entry = Entry(version=version, base_id=base_id, epoch=draft)
            if put(self._store, entry_path(version), entry.to_bytes()):
                return entry
            version += 1

    def _mark(self, remains: Remains, adopted: Entry, found: pa.Table) -> Mark:
        """The mark with which the adoption is done, whose segments are there."""
        version, number = adopted.version, remains.number + 1
        entries = [entry for entry in remains.entries if entry.version < version]
        first = entries[0].version if entries else version
        span = Span(number=number, first=first, last=version, level=_LEVEL)
        rows = file_rows.merged([at_version(found, version), file_rows.files_of(entries)])
        epochs = epoch_rows.table_of([*map(epoch_rows.row_of, entries), _row(adopted, found)])
        return Mark(
            number=number,
            previous=digest(remains.data),
            version=version,
            folded_ms=self._clock.now_ms(),
            base_id=adopted.base_id,
            kind=MarkKind.ADOPTED,
            horizon=version,
            segments=(
                *self._segments.put("epochs", [epochs], span, visible_ms=epoch_rows.latest(epochs)),
                *self._segments.put("files", without_past_files([rows], version), span),
            ),
        )

    def _sweep(self) -> None:
        try:
            Sweeper(self._store, self._clock).sweep()
        except FilesinkError as error:
            # What is left is named by nothing that counts, and goes with a later fold.
            log.warning("what the adoption has replaced was not removed: %s", error)


def _row(adopted: Entry, found: pa.Table) -> dict[str, Any]:
    """The epoch of the adoption, as segments have it: all that was found was added by it."""
    row = epoch_rows.row_of(adopted)
    totals = {name: pc.sum(found[name]).as_py() or 0 for name in ("rows", "size")}
    return {**row, **totals, "files": found.num_rows}
