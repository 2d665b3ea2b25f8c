"""What users are told about epochs, recoveries and sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape

from filesink.api.events import Changes, FinishedFile
from filesink.buckets.table_paths import TablePath
from filesink.commit.outcome import Outcome
from filesink.ledger.record import MicroBatch
from filesink.ledger.sweep import Leftover
from filesink.naming import is_data
from filesink.parts.committables import Committable, PendingFile, ReplacedFile
from filesink.parts.stages.held_rows import OPEN_ROWS, WAITING_ROWS
from formats.sizes import size_text

_SHOWN = 20  # files in a notebook's table
_FIELDS = frozenset({OPEN_ROWS, WAITING_ROWS})  # no counters: those of two epochs do not add up


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """What has become visible of one table, of many below the base path, in an epoch."""

    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReport:
    """What one epoch did.

    Attributes:
        epoch: its slot in the sink's ledger.
        rows: records that came in. ``visible_rows``, ``open_rows``, ``waiting_rows`` and ``dead_letters``
            say where they are now.
        bytes: size of ``files`` together.
        files: what has become visible in this epoch.
        open_rows: rows hidden in parts that are still open when the epoch is done, including rows of
            earlier epochs. ``None`` if an earlier call had decided the epoch.
        waiting_rows: the same for closed files that wait for compaction.
        replaced: paths that an overwrite, or ``compaction.compact``, has removed. A file that was changed
            meanwhile stays; a warning in the log names it.
        not_removed: visible files that should have been removed but could not be yet. Readers see their
            rows beside those of ``files`` until a later epoch removes them.
        kept: paths that an overwrite has replaced and that stay for readers who hold a snapshot, until
            ``kept_until``, in UTC; see ``with_reader_grace``. Whoever lists directories sees their rows.
        batch_id: Spark's number of the micro-batch; ``None`` for a batch write or an epoch of upkeep.
        already_committed: nothing was written, because an earlier call had committed this input.
        behind: by how many versions each export is behind the path, by its name, when the epoch is done:
            0 if it has everything, ``None`` where nobody knows. Empty without ``with_export``.
        tables: what of ``files`` belongs to each table, by its name, of a sink with
            ``table_bucket_assigner``; those without new files are not in it.
        metrics: counters of the tasks, added up, and of merges: ``merged_files_in``, ``merged_bytes_in``,
            ``merged_files_out``, ``merged_bytes_out`` and ``merge_ms``; absent if nothing was merged.
            ``partitions_without_time``: see ``PartitionCommit.partition_time``.
    """

    epoch: int
    rows: int
    bytes: int
    files: Sequence[FinishedFile]
    batch_id: int | None = None
    already_committed: bool = False
    open_rows: int | None = None
    waiting_rows: int | None = None
    replaced: Sequence[str] = ()
    not_removed: Sequence[str] = ()
    kept: Sequence[str] = ()
    kept_until: datetime | None = None
    behind: Mapping[str, int | None] = field(default_factory=dict)
    tables: Mapping[str, TableReport] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)

    @property
    def visible_rows(self) -> int:
        """Rows of ``files``, whenever they came in; without dead letters."""
        return sum(file.rows for file in self.files if is_data(file.bucket))

    @property
    def dead_letters(self) -> int:
        """Records that could not be written. They are in the ``files`` below ``_dead_letters``."""
        return sum(file.rows for file in self.files if not is_data(file.bucket))

    @property
    def write_amplification(self) -> float | None:
        """How often the bytes of ``files`` were written, on average; ``None`` if there are none.

        1 if each byte was written once. A merged file counts its inputs and itself. For many epochs use
        ``1 + sum(merged_bytes_in) / sum(bytes)``.
        """
        return 1 + self.metrics.get("merged_bytes_in", 0) / self.bytes if self.bytes else None

    def __repr__(self) -> str:
        return f"<EpochReport {self.line()}>"

    def line(self) -> str:
        """The line of the log about the epoch."""
        batch = "" if self.batch_id is None else f", batch {self.batch_id}"
        rows = _count(self.rows, "row")
        if self.already_committed:  # others may have replaced the files since
            what = f"already committed, {rows}{self._in_files()}"
        else:
            what = f"{rows} in: {self._whereabouts()}{_merged_text(self.metrics)}{self._removals()}"
        return f"epoch {self.epoch}{batch}: {what}{_behind_text(self.behind)}"

    def _in_files(self) -> str:
        return f" in {_count(len(self.files), 'file')}, {size_text(self.bytes)}" if self.files else ""

    def _whereabouts(self) -> str:
        """Where rows are when the epoch is done."""
        hidden = {
            "in open parts": self.open_rows,
            "waiting for compaction": self.waiting_rows,
            "in dead letters": self.dead_letters,
        }
        rest = "".join(f", {rows:,} {where}" for where, rows in hidden.items() if rows)
        return f"{self.visible_rows:,} visible{self._in_files()}{rest}"

    def _removals(self) -> str:
        done = f"; replaced {_count(len(self.replaced), 'file')}" if self.replaced else ""
        left = f"; {_count(len(self.not_removed), 'file')} not removed yet" if self.not_removed else ""
        kept = ""
        if self.kept_until is not None:
            until = f"{self.kept_until:%Y-%m-%d %H:%M:%S} UTC"
            kept = f"; {_count(len(self.kept), 'replaced file')} kept until {until}"
        return done + kept + left

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(file.path)}</td><td>{file.rows:,}</td><td>{size_text(file.bytes)}</td></tr>"
            for file in self.files[:_SHOWN]
        )
        more = f"<p>and {len(self.files) - _SHOWN:,} more</p>" if len(self.files) > _SHOWN else ""
        return (
            f"<p>{escape(repr(self)[1:-1])}</p><table><tr><th>file</th><th>rows</th><th>size</th></tr>"
            f"{rows}</table>{more}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What ``recover`` did.

    Attributes:
        published: epochs that an earlier driver had decided, and that were completed now.
        retracted: epochs that were taken back. With ``lost="rewrite"`` their input is replayed. With
            ``lost="accept"`` only epochs without input are taken back; a later epoch closes the same parts.
        lost_rows: rows given up with ``lost="accept"``. Fewer may really be lost if a lost file was made by
            offline compaction: inputs that are still there stay, and their rows with them.
        swept: files removed: hidden ones that are dead, and replaced ones whose time is over.
        unannounced: directories of partitions that were not announced, with ``announce="skip"``. They are
            announced with their next files.
    """

    published: Sequence[EpochReport] = ()
    retracted: Sequence[int] = ()
    lost_rows: int = 0
    swept: int = 0
    unannounced: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What ``sweep`` would remove now, or has removed."""

    files: Sequence[Leftover]

    @property
    def bytes(self) -> int:
        """Size of the files together."""
        return sum(leftover.size for leftover in self.files)

    def __repr__(self) -> str:
        return f"<SweepPlan {len(self.files)} files, {size_text(self.bytes)}>"


def changes_of(committables: Sequence[Committable], stay: Sequence[Committable] = ()) -> Changes:
    """What readers see of ``committables``; those of ``stay`` are not removed yet."""
    left = {file.path for file in stay if isinstance(file, ReplacedFile)}
    return Changes(
        files=tuple(
            FinishedFile(path=file.target, bucket=file.bucket, rows=file.rows, bytes=file.size)
            for file in committables
            if isinstance(file, PendingFile)
        ),
        removed=tuple(
            file.path for file in committables if isinstance(file, ReplacedFile) and file.path not in left
        ),
    )


def report_of(outcome: Outcome[Committable], *, tables: TablePath | None = None) -> EpochReport:
    """A user's view of an epoch's outcome; ``tables`` is where each of many tables lies."""
    changes = changes_of(outcome.committables, (*outcome.left, *outcome.kept))
    files = changes.files
    replaced = [file for file in outcome.committables if isinstance(file, ReplacedFile)]
    kept = _kept(replaced, outcome.kept)
    return EpochReport(
        epoch=outcome.slot,
        rows=outcome.rows,
        bytes=sum(file.bytes for file in files),
        files=files,
        behind=outcome.behind,
        tables={} if tables is None else _by_table(files, tables),
        batch_id=outcome.cause.batch_id if isinstance(outcome.cause, MicroBatch) else None,
        already_committed=outcome.replayed,
        replaced=changes.removed,
        kept=tuple(kept),
        kept_until=None if not kept else datetime.fromtimestamp(max(kept.values()) / 1000, tz=UTC),
        not_removed=tuple(file.path for file in outcome.left if isinstance(file, ReplacedFile)),
        open_rows=outcome.metrics.get(OPEN_ROWS),
        waiting_rows=outcome.metrics.get(WAITING_ROWS),
        metrics={name: value for name, value in outcome.metrics.items() if name not in _FIELDS},
    )


def _kept(replaced: Iterable[ReplacedFile], kept: Iterable[Committable]) -> dict[str, int]:
    """Paths that the epoch itself has replaced, of those that are kept, and until when."""
    own = {file.path for file in replaced if file.grace_ms and not file.since_ms}
    return {file.path: file.until_ms for file in kept if isinstance(file, ReplacedFile) and file.path in own}


def _by_table(files: Iterable[FinishedFile], tables: TablePath) -> dict[str, TableReport]:
    found: dict[str, list[FinishedFile]] = {}
    for file in files:
        name = tables.name_of(file.bucket) if is_data(file.bucket) else None
        if name is not None:
            found.setdefault(name, []).append(file)
    return {
        name: TableReport(
            files=len(own), rows=sum(file.rows for file in own), bytes=sum(file.bytes for file in own)
        )
        for name, own in sorted(found.items())
    }


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _behind_text(behind: Mapping[str, int | None]) -> str:
    return "".join(
        f"; export {name} is behind" + ("" if versions is None else f" by {_count(versions, 'version')}")
        for name, versions in behind.items()
        if versions != 0
    )


def _merged_text(metrics: Mapping[str, int]) -> str:
    if "merged_files_in" not in metrics:
        return ""
    found, made = (
        f"{metrics[f'merged_files_{way}']:,} ({size_text(metrics[f'merged_bytes_{way}'])})"
        for way in ("in", "out")
    )
    return f"; merged {found} into {made} in {metrics['merge_ms']:,} ms"
