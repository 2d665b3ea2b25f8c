"""Makes the live files those of an earlier version again, in one epoch.

Rules:
1. A file that became visible since is removed. One that went since comes back as a copy with a name of its
   own, if its bytes are still there: no path is ever used twice.
2. It is all of the version or nothing: if bytes are gone, that is an error, and names them.
3. What was merged into a file that goes, or comes back as a copy, goes with it, whatever the grace that its
   readers were promised: listings would have its rows once more.
4. Only files go back. Streams, checkpoints and named writes do not: what they have done counts as done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from filesink.commit.outcome import Outcome
from filesink.errors import StateError
from filesink.file_sink.tiers import FileTiers
from filesink.inventory.chains import left_files
from filesink.ledger.identity import EXCLUSIVE
from filesink.operations.replacing.copies import copy_of
from filesink.operations.replacing.epochs import Change, Seen, look, replacing
from filesink.parts.committables import Committable
from filesink.ports import Clock, Ports
from filesink.sink_directory.epochs import Epoch
from filesink.sink_directory.live_files import LiveFile

WHAT = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """What ``rollback`` would do now.

    Attributes:
        version: that comes back.
        newest: the newest version, which goes.
        epochs: all since, the oldest first.
        removed: files that have become visible since, and are live.
        restored: files that have gone since, and come back as copies.
        merged: paths that go as well, before the grace of their readers is over: what ``restored`` are copies
            of, and inputs of an offline compaction that are still there.
    """

    version: int
    newest: int
    epochs: Sequence[Epoch]
    removed: Sequence[LiveFile]
    restored: Sequence[LiveFile]
    merged: Sequence[str] = ()

    @property
    def rows(self) -> int | None:
        """How many rows readers see less, or, if below 0, more; ``None`` if nobody knows."""
        gone, back = ([file.rows for file in files] for files in (self.removed, self.restored))
        return None if None in (*gone, *back) else sum(map(int, gone)) - sum(map(int, back))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """Rolls one path back.

    Attributes:
        tiers: the sink.
        version: that comes back.
        base_path: for messages.
    """

    tiers: FileTiers
    version: int
    base_path: str

    def plan(self, clock: Clock) -> RollbackPlan:
        """What ``run`` would do now. Touches nothing. Raises as ``filesink.rollback``."""
        seen = look(self.tiers, clock, self.base_path)
        removed, restored = self._compared(seen)
        return RollbackPlan(
            version=self.version,
            newest=seen.snapshot.version,
            epochs=list(seen.directory.epochs(self.version)),
            removed=removed,
            restored=restored,
            merged=self._merged(seen, removed, restored),
        )

    def run(self, ports: Ports) -> Outcome[Committable] | None:
        """Do it; ``None`` if the files are those of the version. Raises as ``filesink.rollback``."""
        return replacing(self.tiers, WHAT, self._choose, base_path=self.base_path).run(ports)

    def _choose(self, seen: Seen) -> Change:
        removed, restored = self._compared(seen)
        return Change(
            # The copy has the rows of the file that was there, which some readers may still list.
            removed=[*removed, *restored],
            sources=restored,
            make=lambda epoch, store, file: copy_of(file, store, epoch),
        )

    def _compared(self, seen: Seen) -> tuple[list[LiveFile], list[LiveFile]]:
        """What is to go, and what is to come back."""
        wanted = {file.path: file for file in seen.directory.snapshot(self.version).files}
        live = {file.path: file for file in seen.snapshot.files}
        removed = [file for path, file in live.items() if path not in wanted]
        restored = [file for path, file in wanted.items() if path not in live]
        self._check_idle(seen, removed)
        self._check_there(seen, restored)
        return removed, restored

    def _merged(self, seen: Seen, removed: Sequence[LiveFile], restored: Sequence[LiveFile]) -> Sequence[str]:
        # What an overwrite has left to its readers stays for their time.
        left = {file.path for file in left_files(self.tiers.open_ledger(EXCLUSIVE))}
        originals = {file.path for file in restored} - left
        return sorted(originals.union(seen.merged_into([*removed, *restored])) - left)

    def _check_idle(self, seen: Seen, removed: Sequence[LiveFile]) -> None:
        busy = [file.path for file in removed if seen.is_busy(file)]
        if busy:
            raise StateError(
                f"'{self.base_path}': {len(busy)} files that would be removed, such as '{busy[0]}', belong "
                "to an epoch that is decided and not complete: its driver is at work, or has died. Nothing "
                "was changed. Call recover first",
                code="AT_WORK",
            )

    def _check_there(self, seen: Seen, restored: Sequence[LiveFile]) -> None:
        entries = seen.entries(restored) if restored else {}
        gone = [
            file.path for file in restored if file.path not in entries or entries[file.path].size != file.size
        ]
        if gone:
            raise StateError(
                f"version {self.version} of '{self.base_path}' cannot come back: {len(gone)} of the files "
                f"that were removed since are gone, such as {', '.join(map(repr, gone[:3]))}. Nothing was "
                "changed. Bring them back from a backup, or take a later version: that of a rollback, if one "
                "has brought their rows back under other names",
                code="FILES_GONE",
            )
        unknown = [file.path for file in restored if file.rows is None]
        if unknown:
            raise StateError(
                f"version {self.version} of '{self.base_path}' cannot come back: nobody knows how many rows "
                f"are in '{unknown[0]}', which would be copied. Nothing was changed. Take a later version",
                code="UNKNOWN_ROWS",
            )
