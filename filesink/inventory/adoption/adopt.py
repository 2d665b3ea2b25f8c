"""Makes an inventory of existing files and ledgers, for a path that was written without one.

Also for a path whose inventory is damaged: what can be read of it is kept. Rules:
1. First comes a mark that says so. A driver that completes an epoch from then on gives it a version. A driver
   that had decided one before may not have seen the mark, so the adoption waits for it.
2. Then files are listed, and ledgers asked which are complete. They are adopted at a version of their own,
   which an entry reserves; entries below are folded with them, so that no removal is forgotten. An epoch that
   has a version and is not complete yet keeps both, its version and its files.
3. Nobody may fold meanwhile: the mark of the adoption comes after the one that was read before the listing.
4. Everything else that was said is replaced. Nobody can ask for a version before the adoption.
5. A file that was visible before the listing, and is not there, is lost, unless an epoch says that it has
   removed it: it is not named any more.
6. Nothing but the inventory is written, and an adoption that was cut off is repeated from the start.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from filesink.errors import FilesinkError, StateError
from filesink.inventory import chains
from filesink.inventory.adoption.finished import Finished, at_version, finished
from filesink.inventory.adoption.remains import Remains, paths_of, remains_of
from filesink.inventory.entry import ADOPTED, Cause, Draft, Entry
from filesink.inventory.mark import Mark, MarkKind, digest, first_mark
from filesink.inventory.names import entry_path, mark_path
from filesink.inventory.putting import SegmentPutter, Span, put
from filesink.inventory.reading import Reader
from filesink.inventory.rows import epochs as epoch_rows
from filesink.inventory.rows import files as file_rows
from filesink.inventory.rows.merging import without_past_files
from filesink.inventory.schemas import put_schema, schema_id
from filesink.inventory.snapshots import Snapshots
from filesink.inventory.sweeping import Sweeper
from filesink.ports import Clock, Ids
from filesink.retry import Backoff
from filesink.storage.api import Store
from formats.arrow import pc

log = logging.getLogger("filesink")

_LEVEL: Final = 3  # of the segments that are made; they are not merged before many others are
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionPlan:
    """What an adoption would change. Paths are sorted.

    Attributes:
        files: how many files would be live.
        added: those that are not live now; all if the inventory cannot be read.
        gone: files that are live now and would not be: they are lost, or no record has them there.
        elsewhere: files that are there and would not be live, since they were written to another directory:
            they were copied, or moved.
    """

    files: int
    added: Sequence[str]
    gone: Sequence[str]
    elsewhere: Sequence[str]


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
                somebody else adopts or folds the same path all the time; ``DOUBLED``, a file is there twice,
                and nobody tells which is the copy.
            StorageError, StateCorruptError: the store or a ledger cannot be read. Call again.
        """
        if self._remains().number < 0:
            begun = first_mark(MarkKind.ADOPTING, now_ms=self._clock.now_ms(), base_id=self._ids.uuid())
            put(self._store, mark_path(0), begun.to_bytes())
        for _ in range(_TRIES):
            version = self._try()
            if version is not None:
                self._sweep()
                return version
        raise StateError(
            "others have folded or adopted the inventory again and again meanwhile; call adopt() again",
            code="CONCURRENT",
        )

    def plan(self) -> AdoptionPlan:
        """What ``run`` would change now. Touches nothing; raises as ``run``, but for ``AT_WORK``."""
        before = self._remains()
        known = self._at_work(before)
        found = self._finished(before, known)
        removed = {path for entry in before.entries for path in entry.epoch.removed}
        after = (found.paths() - removed) | (before.added() - set(self._lost(before, found, known)))
        try:
            rows = Snapshots(Reader(self._store, self._clock), "").files_at(None).rows
            now = set(map(str, rows["path"].to_pylist()))
        except StateError:  # there is none, or it is damaged: that is what adoption is for
            now = set()
        return AdoptionPlan(
            files=len(after),
            added=sorted(after - now),
            gone=sorted(now - after),
            elsewhere=found.elsewhere,
        )

    def _try(self) -> int | None:
        """The version of the adoption; ``None`` if others came between."""
        before = self._remains()
        self._wait_for_epochs(before)
        known = self._at_work(before)
        found = self._finished(before, known)
        lost = self._lost(before, found, known)
        adopted = self._reserve(before, self._columns())
        now = self._remains()
        if now.number != before.number:
            return None
        if found.elsewhere:
            log.warning(
                "'%s' and %d other files are not adopted: they were written to another directory, and "
                "copied or moved since. filesink fsck tells more",
                found.elsewhere[0],
                len(found.elsewhere) - 1,
            )
        mark = self._mark(now, adopted, found.table(self._store), known=known, lost=lost)
        return adopted.version if put(self._store, mark_path(mark.number), mark.to_bytes()) else None

    def _at_work(self, before: Remains) -> dict[str, chains.AtWork]:
        """Epochs at work whose versions must not be forgotten, by their nonces."""
        entered = before.nonces()
        return {nonce: one for nonce, one in chains.at_work(self._store).items() if nonce in entered}

    def _finished(self, before: Remains, known: Mapping[str, chains.AtWork]) -> Finished:
        return finished(
            self._store,
            {path for one in known.values() for path in one.paths},
            gone={path for one in known.values() for path in one.replaced},
            known=paths_of(before, Reader(self._store, self._clock)),
        )

    def _lost(self, before: Remains, found: Finished, known: Mapping[str, chains.AtWork]) -> list[str]:
        """See rule 5; paths that segments tell are found, or are forgotten anyway."""
        busy = {path for one in known.values() for path in one.paths}
        missing = sorted(before.added() - busy - found.paths())
        entries = self._store.runner.run(self._store.find, missing)
        return [path for path, entry in zip(missing, entries, strict=True) if entry is None]

    def _remains(self) -> Remains:
        return remains_of(self._store, self._clock)

    def _wait_for_epochs(self, before: Remains) -> None:
        """Until none is at work that may become complete without a version, or has one that nobody knows."""
        if before.is_whole and not before.is_begun:
            return
        first = self._without_version()
        backoff: Backoff | None = None
        while waiting := {nonce: one for nonce, one in self._without_version().items() if nonce in first}:
            backoff = backoff or Backoff(self._clock)
            if backoff.wait():
                continue
            if before.is_begun:
                raise _at_work(waiting)
            # If its driver is dead, the one that completes it gives it a version after the adoption's.
            log.warning("%s. It was not waited for any longer", _at_work(waiting).message)
            return

    def _without_version(self) -> dict[str, chains.AtWork]:
        """Epochs at work, by their nonces."""
        found = chains.at_work(self._store)
        known = self._remains().nonces()
        return {nonce: one for nonce, one in found.items() if nonce not in known}

    def _columns(self) -> bytes:
        """The newest columns that a record tells, which can be found by their id now."""
        columns = chains.newest_columns(self._store)
        if columns:
            put_schema(self._store, columns)
        return columns

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

    def _mark(
        self,
        remains: Remains,
        adopted: Entry,
        found: pa.Table,
        *,
        known: Collection[str],
        lost: Collection[str],
    ) -> Mark:
        """The mark with which the adoption is done, whose segments are there.

        ``known``: nonces of epochs at work whose versions must not be forgotten. ``lost``: see rule 5.
        """
        version, number = adopted.version, remains.number + 1
        entries = [entry for entry in remains.entries if entry.version < version]
        span = Span(number=number, first=1, last=version, level=_LEVEL)
        rows = file_rows.merged([at_version(found, version), file_rows.files_of(entries)])
        is_lost = pc.is_in(rows["path"], value_set=pa.array(lost, pa.string()))
        rows = rows.filter(pc.invert(pc.and_(is_lost, pc.is_null(rows["removed"]))))
        new = epoch_rows.table_of([*map(epoch_rows.row_of, entries), _row(adopted, found)])
        old = remains.epochs.filter(pc.is_in(remains.epochs["nonce"], value_set=pa.array(known, pa.string())))
        epochs = epoch_rows.in_order([old, new])
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


def _at_work(waiting: Mapping[str, chains.AtWork]) -> StateError:
    return StateError(
        f"{min(one.name for one in waiting.values())} is decided and not complete: its driver is at work, or "
        "has died. Start its query again, or call recover(), then call adopt() again",
        code="AT_WORK",
    )


def _row(adopted: Entry, found: pa.Table) -> dict[str, Any]:
    """The epoch of the adoption, as segments have it: all that was found was added by it."""
    row = epoch_rows.row_of(adopted)
    totals = {name: pc.sum(found[name]).as_py() or 0 for name in ("rows", "size")}
    return {**row, **totals, "files": found.num_rows}
