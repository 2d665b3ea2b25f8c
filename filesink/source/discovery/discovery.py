"""Looking for files that are new, and putting them into the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from filesink.durations import has_passed
from filesink.ports import Clock
from filesink.source.discovery.log import DiscoveryLog
from filesink.source.files import SourceFile

_AT_A_TIME: Final = 5_000  # files of a listing that are compared with those that are known
_SEGMENT: Final = 10_000  # files in a segment at most

#: Lists all files that there are; see ``FileEnumerator.enumerate_files``.
Enumerate = Callable[[], Iterable[SourceFile]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a source looks, and at what.

    Attributes:
        interval_ms: between two looks, at least.
        min_age_ms: younger files are left for a later look: others may still be writing them.
    """

    interval_ms: int = 0
    min_age_ms: int = 0


class Discovery:
    """Finds each file once, whatever its age, in whatever order they come.

    Args:
        log: was opened.
        enumerate_files: see ``Enumerate``; what it says is taken as it comes, and never held as a whole.
        clock: the driver's.
        pace: see ``Pace``.
    """

    def __init__(
        self, log: DiscoveryLog, enumerate_files: Enumerate, *, clock: Clock, pace: Pace | None = None
    ) -> None:
        self.log = log
        self._enumerate = enumerate_files
        self._clock = clock
        self._pace = pace or Pace()
        self._looked_ms: int | None = None

    def look_if_due(self, most: int | None = None) -> None:
        """``look``, unless the last one was less than an interval ago."""
        last, interval = self._looked_ms, self._pace.interval_ms
        if last is None or not interval or has_passed(last, self._clock.now_ms(), interval):
            self.look(most)

    def look(self, most: int | None = None) -> None:
        """List everything and put what is new into the log.

        Files found together are numbered by their age, some ten thousand at a time.

        Args:
            most: how many files are put into the log at most; ``None`` for all.
        """
        self._looked_ms = self._clock.now_ms()
        left = most
        for found in _pieces(self._old_enough(), _SEGMENT if most is None else min(most, _SEGMENT)):
            new = self._append(sorted(found, key=_age), left)
            left = None if left is None else left - new
            if left == 0:
                return

    def _old_enough(self) -> Iterator[SourceFile]:
        """What is not known, as far as it is known now."""
        now, age, listing = self._clock.now_ms(), self._pace.min_age_ms, iter(self._enumerate())
        while some := [*islice(listing, _AT_A_TIME)]:
            if age:  # else a clock that is a little ahead would make files wait
                some = [file for file in some if has_passed(file.mtime_ms, now, age)]
            yield from self._unknown(some)

    def _append(self, files: Sequence[SourceFile], most: int | None) -> int:
        """How many of ``files`` were new."""
        while True:
            new = self._unknown(files)[:most]
            if not new or self.log.append(new):
                return len(new)

    def _unknown(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        return [files[place] for place in self.log.known.unknown([file.path for file in files])]


def _pieces(files: Iterator[SourceFile], size: int) -> Iterator[list[SourceFile]]:
    while piece := [*islice(files, size)]:
        yield piece


def _age(file: SourceFile) -> tuple[int, str]:
    return file.mtime_ms, file.path
