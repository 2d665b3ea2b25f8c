"""The log of the files that a source has found: numbered from 0 on, in segments that are created if absent.

    _filesink/_found/source             whose log it is
    _filesink/_found/<…>.found          a segment, see ``filesink.source.discovery.segment``

Rules:
1. A file has one number for ever, and numbers have no gap. So two numbers are all that an offset needs to
   say, and a range of them means the same files at every replay.
2. A segment is appended by creating, if absent, the one that begins where the log ends. Who finds it taken
   reads it and starts again with what is then still new.
3. Many small segments are made one, which is durable before they are removed. Whatever lies inside of a
   merged segment is void, whenever it was put: a driver that was given up long ago may find its number free
   again, and looks, after it has put a segment, whether that number was merged.
4. The log is read once, by ``open``. In memory are 16 bytes a path, and one segment.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Final

from filesink.errors import ConfigError, StateCorruptError, StorageError
from filesink.framing import check_field, frame, from_json, to_json, unframe
from filesink.naming import LEDGER_ROOT
from filesink.ports import Ids
from filesink.source.discovery.known_paths import KnownPaths
from filesink.source.discovery.segment import Segment, SegmentName
from filesink.source.files import SourceFile
from filesink.storage.api import PutResult, Store

#: Where the log lies below its state location.
DIRECTORY: Final = f"{LEDGER_ROOT}/_found"
_SOURCE: Final = f"{DIRECTORY}/source"
_VERSION: Final = 1
_TRIES: Final = 10  # to read while another process merges
_UNFINISHED = re.compile(r"\.(?P<name>.+\.found)\.put\.[0-9a-f-]+")
log = logging.getLogger("filesink")


class DiscoveryLog:
    """The log of one source. One driver at a time appends; others that do are told apart by rule 2.

    Args:
        store: of the state location; ``prepare`` was called.
        ids: makes nonces.
        merge_at: how many small segments are made one.
        largest: number of files, from which on a merged segment is left alone.
    """

    def __init__(self, store: Store, *, ids: Ids, merge_at: int = 64, largest: int = 10_000) -> None:
        self._store = store
        self._ids = ids
        self._merge_at = merge_at
        self._largest = largest
        self._ends: dict[SegmentName, int] = {}  # of the segments that were there at the last look
        self._cached: Segment | None = None
        self.known = KnownPaths()
        self.size = 0
        self.id = ""

    def open(self, roots: Sequence[str]) -> None:
        """Begin the log of a source that reads ``roots``, or read the one that is there.

        Raises:
            ConfigError: ``STATE_LOCATION``; it is that of a source of other paths.
            StateCorruptError, StateVersionError: the log cannot be read; they name the file.
        """
        value = {"id": self._ids.uuid(), "roots": list(roots)}
        data = self._store.read(_SOURCE)
        if data is None:
            self._store.put_if_absent(_SOURCE, frame("source", _VERSION, to_json(value)))
            data = self._store.read(_SOURCE)  # somebody else's, if he was faster
        self.id, known = _source_from(data or b"")
        if sorted(known) != sorted(roots):
            raise ConfigError(
                f"this state location is that of a source of {_shown(known)}, and this one reads "
                f"{_shown(roots)}: give each source a state location of its own",
                code="STATE_LOCATION",
            )
        self.refresh()

    def refresh(self) -> None:
        """Take in what was appended since the last look, by whomever."""
        self._look()
        while (segment := self._segment_at(self.size)) is not None:
            self._take(segment)

    def append(self, files: Sequence[SourceFile]) -> bool:
        """Give ``files``, none of which is known, the next numbers; false if others took them.

        Then the log is refreshed: some of ``files`` may be known now.
        """
        segment = Segment(first=self.size, files=files, nonce=self._ids.uuid())
        name = SegmentName(segment.first)
        if self._is_ours(name, segment):
            self._look()
            if _covering(self._ends, segment.first) in {None, name}:  # else rule 3
                self._take(segment)
                self._merge()
                return True
        self.refresh()
        return False

    def files(self, start: int, end: int) -> Iterator[SourceFile]:
        """The files with numbers from ``start`` to before ``end``, of which the log must have as many.

        Raises:
            StateCorruptError: ``GAP``; the log is shorter than an offset says, or has a hole.
        """
        while start < end:
            segment = self._segment_at(start)
            if segment is None:
                raise _gap(start)
            yield from segment.files[start - segment.first : end - segment.first]
            start = segment.end

    def _is_ours(self, name: SegmentName, segment: Segment) -> bool:
        path = _path(name)
        try:
            result = self._store.put_if_absent(path, segment.to_bytes())
        except StorageError:
            data = self._store.read(path)  # a lost reply looks like a failure
            if data is None:
                raise
            self._store.sync_directories([DIRECTORY])
        else:
            if result is PutResult.CREATED:
                return True
            data = self._store.read(path)
        return data is not None and Segment.from_bytes(data, where=path).nonce == segment.nonce

    def _take(self, segment: Segment) -> None:
        """Know what ``segment`` has beyond the end of the log."""
        self.known.add(file.path for file in segment.files[self.size - segment.first :])
        self.size = segment.end
        self._cached = segment
        if SegmentName(segment.first) in self._ends:
            self._ends[SegmentName(segment.first)] = segment.end

    def _look(self) -> None:
        names = (SegmentName.parse(entry.name) for entry in self._store.list(DIRECTORY))
        self._ends = {name: self._ends.get(name, name.end or 0) for name in names if name is not None}

    def _segment_at(self, number: int) -> Segment | None:
        """The segment that has the file with this number; ``None`` at the end of the log."""
        if self._cached is not None and self._cached.first <= number < self._cached.end:
            return self._cached
        for _ in range(_TRIES):
            name = _covering(self._ends, number)
            if name is None and number >= self.size and not any(name.first > number for name in self._ends):
                return None
            data = None if name is None else self._store.read(_path(name))
            if name is not None and data is not None:
                self._cached = Segment.from_bytes(data, where=_path(name))
                self._ends[name] = self._cached.end
                return self._cached
            self._look()  # it was merged meanwhile
        raise _gap(number)

    def _merge(self) -> None:
        """Make one segment of several, where many are small. What is not done is tried after the next."""
        small = [name for name, end in self._ends.items() if name.end is None and self._is_small(name, end)]
        if len(small) < self._merge_at:
            return
        try:
            for start, end in self._groups(min(name.first for name in small)):
                self._replace(start, end)
        except StorageError as error:  # all that was found is in the segments that are there
            log.warning("the log of found files could not be tidied up, which is tried again: %s", error)

    def _is_small(self, name: SegmentName, end: int) -> bool:
        return end - name.first < self._largest

    def _groups(self, number: int) -> Iterator[tuple[int, int]]:
        """Ranges to be made one segment each, from the file ``number`` on, or from a little before."""
        for name, end in self._ends.items():
            if name.end == number and self._is_small(name, end):  # the last one that was merged
                number = name.first
        start, members = number, 0
        while (segment := self._segment_at(number)) is not None:
            number, members = segment.end, members + 1
            if number - start >= self._largest or number == self.size:
                if members > 1:
                    yield start, number
                start, members = number, 0

    def _replace(self, start: int, end: int) -> None:
        segment = Segment(first=start, files=[*self.files(start, end)], nonce=self._ids.uuid())
        name = SegmentName(start, end)
        self._store.put_if_absent(_path(name), segment.to_bytes())
        for entry in self._store.list(DIRECTORY):
            path = f"{DIRECTORY}/{entry.name}"
            found = SegmentName.parse(entry.name)
            unfinished = _UNFINISHED.fullmatch(entry.name)
            if found is not None and found != name and _is_inside(found, start, end):
                self._store.delete(path)
            elif unfinished and _is_inside(SegmentName.parse(unfinished["name"]), start, end):
                self._store.discard(path)
        self._look()


def _is_inside(name: SegmentName | None, start: int, end: int) -> bool:
    """Whether a merged segment of this range makes another one void; see rule 3."""
    return name is not None and start <= name.first < end and (name.end or 0) <= end


def _covering(ends: dict[SegmentName, int], number: int) -> SegmentName | None:
    """The segment to read for a file: a merged one if there is one, and of those the longest."""
    merged = [name for name, end in ends.items() if name.end is not None and name.first <= number < end]
    if merged:
        return max(merged, key=lambda name: (ends[name] - name.first, name.first))
    inside = [name for name, end in ends.items() if name.end is None and name.first < number < end]
    exact = SegmentName(number)
    return exact if exact in ends else next(iter(inside), None)


def _source_from(data: bytes) -> tuple[str, list[str]]:
    _, payload = unframe("source", _VERSION, data, where=_SOURCE)
    try:
        value = from_json(payload, where=_SOURCE)
        check_field("id", value["id"], str)
        for root in value["roots"]:
            check_field("roots", root, str)
        return value["id"], value["roots"]
    except (KeyError, TypeError) as error:
        raise StateCorruptError(f"{_SOURCE} is malformed: {type(error).__name__}", code="JSON") from error


def _gap(number: int) -> StateCorruptError:
    return StateCorruptError(
        f"the log of found files has no file {number:,}, and an offset or a later segment says that it had: "
        "restore the state location from a backup, or read everything again with a new state location and a "
        "new checkpoint",
        code="GAP",
    )


def _path(name: SegmentName) -> str:
    return f"{DIRECTORY}/{name}"


def _shown(roots: Sequence[str]) -> str:
    return ", ".join(f"'{root}'" for root in roots) or "no path"
