"""An outside reader of a trial: lists, reads each file once, and believes nothing that a ledger says.

What it holds against the writers, at every look:

1. Each row is whole, in its directory, and in one visible file only.
2. A file that was seen is there, and is what it was.
3. The rows of a batch that was done before the look began are visible, unless its writer keeps parts open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from filesink.ledger.sweep import visible
from filesink.naming import parent
from filesink.operations.torture.input import ROWS, bucket_of, parsed
from filesink.storage.api import Entry, Store

_SHOWN = 20  # violations: a trial that has so many has told enough


@dataclass
class Observer:
    """Sees the path of a trial as any reader would.

    Attributes:
        store: of the path.
        violations: sentences.
    """

    store: Store
    violations: list[str] = field(default_factory=list)
    looks: int = 0
    rows: int = 0
    bytes: int = 0
    _files: dict[str, Entry] = field(default_factory=dict)
    _seen: dict[tuple[int, int], int] = field(default_factory=dict)  # a bit for each row of a batch
    _checked: dict[int, int] = field(default_factory=dict)  # batches of a writer that were all there

    @property
    def files(self) -> int:
        """How many were seen."""
        return len(self._files)

    def look(self, done: Mapping[int, int]) -> None:
        """List, and read what is new. ``done``: the last batch of each writer whose rows must be there."""
        there = dict(visible(self.store))
        self.looks += 1
        for path, known in self._files.items():
            if (entry := there.get(path)) is None:
                self._violation(f"'{path}' was visible and is gone")
            elif (entry.size, entry.version) != (known.size, known.version):
                self._violation(f"'{path}' was visible and has changed")
        for path in sorted(there.keys() - self._files.keys()):
            self._read(path)
        self._files |= there
        for writer, last in done.items():
            self._check(writer, last)

    def _read(self, path: str) -> None:
        with self.store.open_input(path) as stream:
            data = stream.read()
        self.bytes += len(data)
        if not data.endswith(b"\n"):
            self._violation(f"'{path}' does not end with a whole row")
        for text in data.decode(errors="replace").splitlines():
            self._row(path, text)

    def _row(self, path: str, text: str) -> None:
        found = parsed(text)
        if found is None:
            self._violation(f"'{path}' has a row that nobody has written")
            return
        writer, batch, number = found
        seen = self._seen.get((writer, batch), 0)
        if seen >> number & 1:
            self._violation(f"row {number} of batch {batch} of writer {writer} is visible twice")
        if parent(path) != bucket_of(number):
            self._violation(f"row {number} of batch {batch} of writer {writer} is in '{parent(path)}'")
        self._seen[writer, batch] = seen | 1 << number
        self.rows += 1

    def _check(self, writer: int, last: int) -> None:
        for batch in range(self._checked.get(writer, -1) + 1, last + 1):
            missing = ROWS - self._seen.get((writer, batch), 0).bit_count()
            if missing:
                self._violation(f"{missing} rows of batch {batch} of writer {writer} are not visible")
            self._checked[writer] = batch

    def check_only(self, done: Mapping[int, int]) -> None:
        """At the end: nothing is there but the batches that were done."""
        for writer, batch in self._seen:
            if batch > done.get(writer, -1):
                self._violation(f"batch {batch} of writer {writer} is visible and was never done")

    def _violation(self, sentence: str) -> None:
        if len(self.violations) < _SHOWN and sentence not in self.violations:
            self.violations.append(sentence)
