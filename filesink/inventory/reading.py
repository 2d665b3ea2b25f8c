"""What an inventory says now: the newest mark, its segments, and the entries above it.

Rules:
1. The directory is listed first, then files are read. One that is gone by then was folded away: list again.
2. Entries stand above a mark without a gap. One that stays is damage, and the version is named.
3. Entries count if the mark below them is still the newest when they were read: after a fold, one that came
   too late may stand where another one stood. Segments never change.
4. A mark is the newest if the next number is free. Where so much time has passed that the next one may have
   been removed again, a listing tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar

import pyarrow as pa

from filesink.errors import StateCorruptError
from filesink.inventory.entry import Entry
from filesink.inventory.mark import Mark, Segment
from filesink.inventory.names import (
    DIRECTORY,
    Listing,
    SegmentKind,
    entry_path,
    mark_path,
    segment_path,
)
from filesink.inventory.rows.segments import ADOPT_AGAIN, rows_of
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.storage.api import Store
from formats.arrow import pc

T = TypeVar("T")

_RETRIES: Final = 6  # three seconds: a fold takes less
_SURE_MS: Final = 600_000  # a mark that is removed was there for an hour, and sixteen have come after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What counted at one moment.

    Attributes:
        mark: the newest.
        data: its bytes.
        newest: the newest version.
        seen_ms: when this was looked up, or was found to hold still.
    """

    mark: Mark
    data: bytes
    newest: int
    seen_ms: int

    @property
    def entries(self) -> range:
        """Versions of the entries that count."""
        return range(self.mark.version + 1, self.newest + 1)


class Moved(Exception):  # noqa: N818 - no error, unless it stays so
    """Something was folded away while it was read. ``error`` is raised if that does not pass.

    ``number`` is that of the mark which was the newest.
    """

    def __init__(self, error: StateCorruptError, number: int = -1) -> None:
        super().__init__(error.message)
        self.error = error
        self.number = number


class Reader:
    """Looks at the inventory of one base path. Every method looks at the store.

    Args:
        store: where it lives.
        clock: waits before something is looked at again.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self._clock = clock

    def look(self) -> Look | None:
        """What counts now; ``None`` if there is no inventory.

        Raises:
            StateCorruptError: it is damaged; the message names the file.
        """
        return self._patiently(self._look)

    def steady(self, ask: Callable[[Look, list[Entry]], T], *, after: int = 0) -> T | None:
        """What ``ask`` makes of what counts now, and of all entries of it above version ``after``.

        Asked again if a segment is gone when it comes to read it. ``None`` and errors as in ``look``.
        """

        def once() -> T | None:
            look = self._look()
            if look is None:
                return None
            entries = self.entries(look, after=after)
            if not self.is_newest(look):
                raise Moved(_vanished(mark_path(look.mark.number)), look.mark.number)
            return ask(look, entries)

        return self._patiently(once)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """What ``ask`` returns, asked again as long as marks come, and then for a while."""
        backoff: Backoff | None = None
        number = -1
        while True:
            try:
                return ask()
            except Moved as moved:
                if backoff is None or moved.number > number:
                    backoff = Backoff(self._clock, retries=_RETRIES)
                number = moved.number
                if not backoff.wait():
                    raise moved.error from None

    def is_newest(self, look: Look) -> bool:
        """Whether no mark has come after that of ``look``; see rule 4."""
        if self.store.read(mark_path(look.mark.number + 1)) is not None:
            return False
        is_recent = 0 <= self._clock.now_ms() - look.seen_ms < _SURE_MS
        return is_recent or self.listing().marks[-1:] == (look.mark.number,)

    def listing(self) -> Listing:
        """Everything that stands in the directory."""
        return Listing.of(self.store.list(DIRECTORY))

    def _look(self) -> Look | None:
        now_ms = self._clock.now_ms()
        listing = self.listing()
        if not listing.marks:
            if listing.entries or listing.segments:
                raise Moved(_damaged(mark_path(0), "is missing", code="NO_MARK"))
            return None
        number = listing.marks[-1]
        data = self.store.read(mark_path(number))
        if data is None:
            raise Moved(_vanished(mark_path(number)), number)
        mark = Mark.from_bytes(data, where=mark_path(number))
        above = [version for version in listing.entries if version > mark.version]
        for expected, version in zip(count(mark.version + 1), above, strict=False):
            if version != expected:
                error = _damaged(entry_path(expected), f"is missing, and version {version} is there")
                raise Moved(error, number)
        if not above:
            _check_top(listing, number)
        newest = above[-1] if above else mark.version
        return Look(mark=mark, data=data, newest=newest, seen_ms=now_ms)

    def entries(self, look: Look, *, after: int = 0) -> list[Entry]:
        """The entries of ``look`` above version ``after``, if they were not folded meanwhile: see rule 3.

        Raises:
            Moved: one has gone.
            StateCorruptError: one is damaged, or not that of its name.
        """
        versions = range(max(after, look.mark.version) + 1, look.newest + 1)
        found = self.store.runner.run(self.entry, versions)
        for version, entry in zip(versions, found, strict=True):
            if entry is None:
                raise Moved(_vanished(entry_path(version)), look.mark.number)
            if entry.base_id != look.mark.base_id:
                raise _foreign(entry_path(version))
        return [entry for entry in found if entry is not None]

    def entry(self, version: int) -> Entry | None:
        """What stands at ``version``; ``None`` if nothing does."""
        path = entry_path(version)
        data = self.store.read(path)
        if data is None:
            return None
        entry = Entry.from_bytes(data, where=path)
        if entry.version != version:
            raise _foreign(path)
        return entry

    def pieces(self, look: Look, kind: SegmentKind, *, after: int = 0) -> list[Iterator[pa.Table]]:
        """``rows`` of the segments of ``kind`` that have any above version ``after``, the oldest first."""
        return self.rows([segment for segment in look.mark.of_kind(kind) if segment.last > after])

    def rows(self, segments: Sequence[Segment]) -> list[Iterator[pa.Table]]:
        """The rows of each of ``segments``, some at a time.

        Raises:
            Moved: one has gone.
            StateCorruptError: one is damaged; raised when its rows are asked for.
        """
        found = self.store.runner.run(self._bytes, segments)
        return [rows_of(data, segment) for data, segment in zip(found, segments, strict=True)]

    def _bytes(self, segment: Segment) -> bytes:
        data = self.store.read(segment_path(segment.name))
        if data is None:
            error = _damaged(segment_path(segment.name), "is missing", code="VANISHED")
            raise Moved(error)
        return data

    def version_of(self, look: Look, nonce: str, *, after: int) -> int | None:
        """The version above ``after`` of the epoch with this nonce, if it is in segments."""
        for piece in reversed(self.pieces(look, "epochs", after=after)):
            for rows in piece:
                found = rows.filter(pc.equal(rows["nonce"], nonce))["version"]
                if len(found):
                    return int(found[0].as_py())
        return None

    def added_at(self, look: Look, paths: Sequence[str]) -> int | None:
        """The version that has added one of ``paths``, by the segments; ``None`` if none has."""
        wanted = pa.array(paths, pa.string())
        for piece in self.pieces(look, "files"):
            for rows in piece:
                found = rows.filter(pc.is_in(rows["path"], value_set=wanted))["added"].drop_null()
                if len(found):
                    return int(found[0].as_py())
        return None


def _check_top(listing: Listing, number: int) -> None:
    """Raise ``Moved`` if a newer mark is missing: its segments exist, but no entry is above ``number``."""
    if listing.segments and listing.segments[-1][0] > number:
        newest, name = listing.segments[-1]
        raise Moved(_damaged(mark_path(newest), f"is missing, for which {name} was made"), number)


def _damaged(path: str, what: str, *, code: str = "GAP") -> StateCorruptError:
    return StateCorruptError(f"{path} {what}; {ADOPT_AGAIN}", code=code)


def _vanished(path: str) -> StateCorruptError:
    return StateCorruptError(
        f"{path} vanished while it was being read, again and again; are others at work?", code="VANISHED"
    )


def _foreign(path: str) -> StateCorruptError:
    return StateCorruptError(
        f"{path} is an entry of another version or another inventory: it was copied here; {ADOPT_AGAIN}",
        code="FOREIGN",
    )
