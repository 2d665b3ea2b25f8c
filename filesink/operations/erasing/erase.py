"""Takes the rows that a condition names out of all live files, in one epoch, and proves it by reading again.

    find       live files with such rows, by the statistics in their footers, then by reading
    rewrite    each without these rows; one that has no other is only removed
    replace    all of them in one epoch
    prove      all live files are searched again, and everything else that lies below the path

Rule: a certificate comes only if nothing is left anywhere. No value of a record is in it, nor in a ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from filesink.api import EpochContext
from filesink.buckets.partition_paths import partition_values
from filesink.commit.outcome import Outcome
from filesink.errors import ConcurrentDriverError, ConfigError, StateError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.layouts import Layouts
from filesink.operations.erasing.condition import Condition
from filesink.operations.erasing.left import Left, left_beside, left_in_inventory, left_live
from filesink.operations.erasing.parquet_files import SUFFIX, ParquetFiles
from filesink.operations.progress import Progress, counted, nobody
from filesink.operations.replacing.copies import made_of
from filesink.operations.replacing.epochs import Change, Seen, look, replacing
from filesink.parts.committables import Committable, PendingFile
from filesink.ports import Clock, Ports
from filesink.sink_directory.columns import with_layouts
from filesink.sink_directory.live_files import LiveFile
from filesink.storage.api import Store
from formats.parquet.writer import ParquetWriterFactory

WHAT = "erase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """A live file, and how many of its rows would be erased."""

    file: LiveFile
    erased: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """What ``erase`` would do now.

    Attributes:
        columns: that are compared.
        files: that would be written anew, or removed.
        searched: how many live files there are.
        left: what would not be clean afterwards.
    """

    columns: Sequence[str]
    files: Sequence[Matching]
    searched: int
    left: Sequence[Left] = ()

    @property
    def rows(self) -> int:
        """How many rows would be erased."""
        return sum(file.erased for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What ``erase`` did, and found afterwards.

    Attributes:
        columns: that were compared.
        of_directories: those of them that names of directories show. Ledger and inventory go on showing these
            names, until their history expires.
        rows: how many rows this call has erased.
        before: files that had such rows.
        after: files that are in their place.
        version: the newest version when all was searched again.
        searched: live files of that version; each was searched.
        begun, ended: in UTC.
        left: what is not clean yet; nothing if the erasure is whole.
    """

    columns: Sequence[str]
    of_directories: Sequence[str]
    rows: int
    before: Sequence[str]
    after: Sequence[str]
    version: int
    searched: int
    begun: datetime
    ended: datetime
    left: Sequence[Left] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no such row is left anywhere below the path."""
        return not self.left

    def certificate(self) -> Mapping[str, Any]:
        """That all is clean, as values of JSON: files, rows, when; no value of a record.

        Raises:
            StateError: ``NOT_CLEAN``; it says what is left, and what to do.
        """
        if self.left:
            kinds = {one.kind: one for one in self.left}
            raise StateError(
                f"{len(self.left)} things are not clean yet: "
                + "; ".join(f"{kind}, such as '{one.path}': {one.advice}" for kind, one in kinds.items()),
                code="NOT_CLEAN",
            )
        return {
            "columns": list(self.columns),
            "columns_of_directories": list(self.of_directories),
            "rows_removed": self.rows,
            "files_before": list(self.before),
            "files_after": list(self.after),
            "version": self.version,
            "files_searched": self.searched,
            "begun": self.begun.isoformat(),
            "ended": self.ended.isoformat(),
            "clean": True,
        }


@dataclass(frozen=True, kw_only=True)
class Erase:
    """Erasure from one path.

    Attributes:
        tiers: the sink.
        condition: which rows.
        base_path: for messages.
        form: see ``filesink.erase``.
        progress: told how far it is.
    """

    tiers: FileTiers
    condition: Condition
    base_path: str
    form: ParquetWriterFactory | None = None
    progress: Progress = nobody
    _done: list[Matching] = field(default_factory=list, init=False, repr=False)

    def plan(self, clock: Clock) -> ErasurePlan:
        """What ``run`` would do now. Touches nothing. Raises as ``filesink.erase``."""
        seen = look(self.tiers, clock, self.base_path)
        files = self._files(seen)
        live = list(seen.snapshot.files)
        found = self._found(seen, live, files)
        busy = [file for file in live if seen.is_busy(file)]
        left = [*left_live(busy, files), *left_beside(seen, files)]
        return ErasurePlan(columns=files.condition.columns, files=found, searched=len(live), left=left)

    def run(self, ports: Ports) -> Erasure:
        """Erase, then search again. Raises as ``filesink.erase``."""
        begun = ports.clock.now_ms()
        outcome = replacing(self.tiers, WHAT, self._choose, base_path=self.base_path).run(ports)
        # What is read now is what everybody reads.
        seen = look(self.tiers, ports.clock, self.base_path)
        files, live = self._files(seen), list(seen.snapshot.files)
        known = left_in_inventory([one.file for one in self._done])
        left = [*self._proof(live, files), *left_beside(seen, files), *known]
        return Erasure(
            columns=files.condition.columns,
            of_directories=[name for name in files.condition.columns if name in _shown(live, self._done)],
            rows=sum(one.erased for one in self._done) if outcome else 0,
            before=[one.file.path for one in self._done] if outcome else [],
            after=_made(outcome),
            version=seen.snapshot.version,
            searched=len(live),
            begun=_moment(begun),
            ended=_moment(ports.clock.now_ms()),
            left=left,
        )

    def _proof(self, live: Sequence[LiveFile], files: ParquetFiles) -> Iterator[Left]:
        """See ``left_live``."""
        for number, file in enumerate(live, start=1):
            yield from left_live([file], files)
            self.progress("files searched again", number, len(live))

    def _choose(self, seen: Seen) -> Change:
        files = self._files(seen)
        self._done[:] = self._found(seen, list(seen.snapshot.files), files)
        matching = [one.file for one in self._done]

        erased = {one.file.path: one.erased for one in self._done}

        def make(epoch: EpochContext, store: Store, file: LiveFile) -> PendingFile | None:
            if erased[file.path] == file.rows:
                return None
            with _there(seen, file.path):
                made = made_of(
                    file, store, epoch, write=lambda output: files.rewrite(file.path, file.bucket, output)
                )
            if file.rows is not None and made.rows + erased[file.path] != file.rows:
                store.discard(made.staged.path)
                raise _miscounted(file, made.rows + erased[file.path])
            return made

        told = counted(self.progress, "files written anew", len(matching), lambda made: made)
        return Change(
            removed=matching, sources=matching, make=lambda epoch, store, file: told(make(epoch, store, file))
        )

    def _found(self, seen: Seen, live: Sequence[LiveFile], files: ParquetFiles) -> list[Matching]:
        idle = [file for file in live if not seen.is_busy(file)]
        search = counted(self.progress, "files searched", len(idle), partial(_matching, seen, files))
        counts = seen.store.runner.run(search, idle)
        return [Matching(file=file, erased=count) for file, count in zip(idle, counts, strict=True) if count]

    def _files(self, seen: Seen) -> ParquetFiles:
        """The files of the path.

        Raises:
            ConfigError: ``ERASE_FORMAT``, ``NO_COLUMN`` or ``CONDITION``.
        """
        others = [file.path for file in seen.snapshot.files if not file.path.endswith(SUFFIX)]
        if others:
            raise ConfigError(
                f"'{others[0]}' is no Parquet file, and only these can be written anew without some of their "
                "rows. Nothing was changed. Write the sink's data again with mode='overwrite', without them",
                code="ERASE_FORMAT",
            )
        # A column may be gone with the last live file that had it, and still be in files beside them.
        layouts = [layout.columns for layout in Layouts(seen.store).read().layouts]
        schema = with_layouts(seen.snapshot.columns(on_other_schema="union"), layouts)
        condition = self.condition.named_as_in(schema)
        condition.on(schema)
        return ParquetFiles(store=seen.store, condition=condition, schema=schema, form=self.form)


def _matching(seen: Seen, files: ParquetFiles, file: LiveFile) -> int:
    with _there(seen, file.path):
        return files.matching(file.path, file.bucket)


@contextmanager
def _there(seen: Seen, path: str) -> Iterator[None]:
    """Around reading a live file: another operation may remove it meanwhile."""
    try:
        yield
    except FileNotFoundError as error:
        if seen.is_replaced_since(path):
            raise ConcurrentDriverError(
                f"another operation, an overwrite or a compaction came in between, and has removed '{path}' "
                "while it was searched. Nothing was changed. Call it again when that one has ended; if it "
                "has died, call recover before",
                code="CONCURRENT_DRIVER",
            ) from error
        raise StateError(
            f"'{path}' is lost: it is live, and not there. Nothing was changed. filesink fsck tells what "
            "mends it",
            code="FILE_LOST",
        ) from error


def _miscounted(file: LiveFile, rows: int) -> StateError:
    return StateError(
        f"'{file.path}' has {rows:,} rows, and {file.rows:,} were written: it is not what it was. Nothing "
        "was changed. filesink fsck --deep tells more",
        code="FILE_ROWS",
    )


def _made(outcome: Outcome[Committable] | None) -> list[str]:
    files = () if outcome is None else outcome.committables
    return [file.target for file in files if isinstance(file, PendingFile)]


def _shown(live: Sequence[LiveFile], done: Sequence[Matching]) -> set[str]:
    """The columns that names of directories show."""
    buckets = {file.bucket for file in (*live, *(one.file for one in done))}
    return {name for bucket in buckets for name, _ in partition_values(bucket)}


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)
