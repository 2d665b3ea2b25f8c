"""Folding: entries become segments, and several segments one, so that no reader has many files to read.

Rules:
1. A fold is a mark, created if absent over the one that was read. Of two at once one wins, and what the other
   has made is swept.
2. What tells only of versions before the horizon is left out where segments become one, see ``rows.merging``.
   The horizon moves with epochs that are old enough to be forgotten, the oldest first.
3. Nothing is deleted before the mark that makes it needless is durable.
4. Nobody folds over a path that is being adopted, but who adopts it.
5. The time in a mark is later than the one at which the mark before it came, however long its driver slept in
   between. Who removes marks by their age relies on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from filesink.inventory.entry import Entry
from filesink.inventory.levels import Plan, plan
from filesink.inventory.mark import Mark, MarkKind, Segment, digest
from filesink.inventory.names import mark_path
from filesink.inventory.putting import SegmentPutter, Span, put
from filesink.inventory.reading import Look, Moved, Reader
from filesink.inventory.rows.epochs import epochs_of, in_order, latest, without_old
from filesink.inventory.rows.files import files_of
from filesink.inventory.rows.merging import merge, without_past, without_past_files
from filesink.inventory.sweeping import Sweeper
from filesink.ports import Clock, Ids
from filesink.storage.api import Store

HISTORY_MS: Final = 30 * 86_400_000


class Folder:
    """Folds the inventory of one base path.

    Args:
        store: where it lives.
        clock: says what is old.
        ids: name segments.
        history_ms: how long epochs, and files that are removed, are remembered.
    """

    def __init__(self, store: Store, *, clock: Clock, ids: Ids, history_ms: int) -> None:
        self._store = store
        self._clock = clock
        self._history_ms = history_ms
        self._reader = Reader(store, clock)
        self._sweeper = Sweeper(store, clock)
        self._segments = SegmentPutter(store, ids)

    def fold(self) -> Look | None:
        """Fold what is above the newest mark, then sweep; ``None`` if there is nothing, or others do it.

        Raises:
            StateCorruptError: what is to be folded is damaged.
            StorageError: not done, or not known whether.
        """
        look = self._reader.look()
        if look is None or look.mark.kind is MarkKind.ADOPTING or not look.entries:
            return None
        now_ms = self._clock.now_ms()  # see rule 5
        try:
            mark = self._next(look, now_ms)
        except Moved:
            return None
        data = mark.to_bytes()
        if not put(self._store, mark_path(mark.number), data):
            return None
        self._sweeper.sweep()
        return Look(mark=mark, data=data, newest=mark.version, seen_ms=now_ms)

    def _next(self, look: Look, now_ms: int) -> Mark:
        """The mark after that of ``look``, whose segments are there."""
        number, entries = look.mark.number + 1, self._reader.entries(look)
        epochs, horizon = self._epochs(look.mark, entries, now_ms - self._history_ms)
        return Mark(
            number=number,
            previous=digest(look.data),
            version=look.newest,
            folded_ms=now_ms,
            base_id=look.mark.base_id,
            kind=MarkKind.FOLD,
            horizon=horizon,
            segments=(*epochs, *self._files(look.mark, entries, horizon)),
        )

    def _epochs(self, mark: Mark, entries: Sequence[Entry], before_ms: int) -> tuple[Sequence[Segment], int]:
        """The segments of epochs, but for what was visible before ``before_ms``; and the horizon."""
        segments, horizon = list(mark.of_kind("epochs")), mark.horizon
        while segments and segments[0].visible_ms < before_ms:
            horizon = max(horizon, segments.pop(0).last + 1)
        new = epochs_of(entries)
        span = Span(number=mark.number + 1, first=mark.version + 1, last=entries[-1].version)
        segments += self._segments.put("epochs", [new], span, visible_ms=latest(new))
        found = plan(segments)
        if found is None:
            return segments, horizon
        rows = in_order([rows for piece in self._reader.rows(found.merged) for rows in piece])
        if found.has_oldest:
            rows, horizon = without_old(rows, before_ms, horizon=horizon, kept_from=mark.version + 1)
        made = self._segments.put("epochs", [rows], _span(mark, found), visible_ms=latest(rows))
        return (*found.kept, *made), horizon

    def _files(self, mark: Mark, entries: Sequence[Entry], horizon: int) -> Sequence[Segment]:
        """The segments of files, but for what tells of versions before ``horizon`` only."""
        span = Span(number=mark.number + 1, first=mark.version + 1, last=entries[-1].version)
        segments = [*mark.of_kind("files"), *self._segments.put("files", [files_of(entries)], span)]
        found = plan(segments)
        if found is None:
            return segments
        rows = merge(self._reader.rows(found.merged))
        if found.has_oldest:
            rows = without_past(list(rows), horizon, lambda: chain(*self._reader.rows(found.kept)))
        else:
            rows = without_past_files(rows, horizon)
        return (*found.kept, *self._segments.put("files", rows, _span(mark, found)))


def _span(mark: Mark, found: Plan) -> Span:
    return Span(
        number=mark.number + 1,
        level=found.level + 1,
        first=min(segment.first for segment in found.merged),
        last=max(segment.last for segment in found.merged),
    )
