"""Merging files that are visible already: for directories full of small files of ours.

    plan(base_path)             what would be done; touches nothing
    compact(base_path, form)    does it, as an epoch of the ledger that overwriting writes use, too
    files(base_path)            what to read meanwhile (``compaction.offline.superseded``)

Rules:
1. This is outside of the promise on plain directories: from the publication of a merged file to the
   removal of its inputs a reader sees rows twice, and one that has listed before may then find a file
   gone. With ``reader_grace`` the first takes longer and the second does not happen to those who ask
   ``files``, who never see a row twice. Nothing is ever lost: inputs are removed when what replaces
   them is visible and durable, and only if they are what they were.
2. Only files of ours are touched, known by their names, and only of epochs that are complete, and as the
   inventory has them (``compaction.offline.live``). Drivers that decide and publish meanwhile are not
   disturbed.
3. A crash leaves a decided epoch, which the next call, or ``FileSink.recover()``, completes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from compaction.offline.groups import FinishedFile, Group
from compaction.offline.live import live_of
from compaction.offline.superseded import check_bucket, outstanding, overwritten, written
from compaction.offline.swap import CompactionPlan, Swap
from filesink.api import PreCommitStage
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.delete_permission import check_removal
from filesink.commit.epoch import EpochLoop
from filesink.commit.outcome import Outcome
from filesink.commit.replay import EpochOptions
from filesink.durations import parse_duration_ms
from filesink.errors import CompactionError, ConfigError
from filesink.file_sink.report import EpochReport, report_of
from filesink.file_sink.tiers import FileTiers
from filesink.inventory.adoption.complete_files import complete_files
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.sweep import walk
from filesink.naming import OutputFileConfig, PartName, is_data, join, name_of, parent, parse_part
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.parts.stages.verify import VerifyStage
from filesink.ports import Clock, Ports
from filesink.spark.input.s3a import of_active_session
from filesink.storage.address import StoreAddress
from filesink.storage.api import Kind, Store
from filesink.storage.base_path import check_base_path
from filesink.system import SystemClock, SystemIds, ThreadRunner, this_driver
from formats.api import BaseEncoder, BulkWriterFactory
from formats.errors import FormatError
from formats.sizes import parse_size

_FEWEST = 2  # inputs; one file alone is what it would become
_AT_ONCE = 2  # files that are made; each takes two threads and the memory of two row groups


def plan(
    base_path: str | Path,
    *,
    bucket: str | None = None,
    target_size: int | str = "128MiB",
    storage_options: Mapping[str, Any] | None = None,
) -> CompactionPlan:
    """What ``compact`` would merge now, and which inputs of earlier merges it would remove.

    Args:
        base_path: of the sinks.
        bucket: the only directory to look at; ``None`` for all, ``""`` for the base path itself.
        target_size: files of this size are left alone, and merged ones aim at it; bytes or ``"128MiB"``.
        storage_options: of the store, as ``with_storage_options`` takes them.

    Raises:
        ConfigError: ``BAD_VALUE``; ``NO_SINK``, this is not the base path of one; ``NO_DIRECTORY``.
    """
    checked = check_base_path(base_path)
    address = StoreAddress(base_path=checked, storage_options=of_active_session(checked, storage_options))
    size, clock = _size(target_size), SystemClock()
    return _plan(written(address, bucket), bucket, size, now_ms=clock.now_ms(), clock=clock)


def compact(
    base_path: str | Path,
    form: BulkWriterFactory | BaseEncoder,
    *,
    bucket: str | None = None,
    target_size: int | str = "128MiB",
    reader_grace: int | str | timedelta = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> EpochReport | None:
    """Merge small finished files, in this process; ``None`` if there was nothing to do.

    See the head of this module for what readers see. Bulk formats are merged by records, row formats
    by bytes. First completes what an earlier call has decided.

    Args:
        base_path: see ``plan``.
        form: what the sink was given, such as ``ParquetWriterFactory(compression="zstd")``.
        bucket: see ``plan``.
        target_size: see ``plan``.
        reader_grace: how long inputs stay beside what they are merged into, ``int`` is milliseconds; the
            next call after that removes them. By default they go at once: readers of a plain directory
            see rows twice, for as short a time as possible.
        storage_options: see ``plan``.

    Raises:
        ConfigError: ``COMPACTION``, files of this format cannot be merged afterwards; ``BAD_VALUE``;
            ``NO_SINK``, this is not the base path of one; ``NO_DIRECTORY``.
        CompactionError: ``SCHEMA`` or ``INPUT``, files of a directory do not fit together or cannot be
            read. These files stay as they are; all others were merged. Any other code: nothing was changed.
        ConcurrentDriverError: an overwriting write, or another call, is at work.
    """
    checked = check_base_path(base_path)
    address = StoreAddress(base_path=checked, storage_options=of_active_session(checked, storage_options))
    tiers = FinishedTiers(
        address=address,
        plan=_writing(_format(form)),
        bucket=check_bucket(bucket),
        target_size=_size(target_size),
        grace_ms=parse_duration_ms(reader_grace, name="reader_grace", least=0),
    )
    written(address, bucket)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner(_AT_ONCE), who=this_driver())
    outcome = tiers.compact(ports)
    return None if outcome is None else report_of(outcome)


@dataclass(frozen=True, kw_only=True)
class FinishedTiers(FileTiers):
    """A sink without input: its epochs replace files by what they are merged into.

    Args:
        bucket: see ``plan``.
        target_size: bytes.
        grace_ms: milliseconds.
        refused: why groups were left out, filled by ``compact``.
    """

    bucket: str | None = None
    target_size: int
    grace_ms: int
    refused: list[CompactionError] = field(default_factory=list, compare=False, repr=False)

    def compact(self, ports: Ports) -> Outcome[Committable] | None:
        """One epoch; ``None`` if there is nothing to do.

        Raises:
            CompactionError: see ``compact`` of this module; raised when the epoch is complete, so that one
                directory that cannot be merged keeps no other from it.
        """
        store = self.address()
        store.prepare()
        check_removal(store, "compaction of finished files")
        loop = EpochLoop(self, self.open_ledger(EXCLUSIVE), ports=ports, options=EpochOptions())
        outcome = loop.compact()
        if outcome is None:  # nothing to merge; what overwrites have left is to go all the same
            self.create_remover()(ports.clock.now_ms())
        if self.refused:
            first, *more = self.refused
            also = f", except {len(more)} more group(s) of files that cannot be" if more else ""
            raise CompactionError(
                f"{first.message}. Everything else was merged{also}", code=first.code
            ) from first
        return outcome

    def pre_commit_stages(self) -> tuple[PreCommitStage[HeldFile, Committable], ...]:
        """Merge, then look at every new file."""
        store = self.address()
        form = self.plan.format

        def ask(now_ms: int, clock: Clock) -> CompactionPlan:
            return _plan(store, self.bucket, self.target_size, now_ms=now_ms, clock=clock)

        swap = Swap(self.address, form, plan=ask, grace_ms=self.grace_ms, refused=self.refused)
        return swap, VerifyStage(store)


def _writing(form: FileFormat) -> Plan:
    """What every sink has; nothing is written here but by the stage."""
    return Plan(
        format=form,
        assigner=BucketAssigner.base_path_bucket_assigner(),
        policy=RollingPolicy.on_checkpoint_rolling_policy(),
        names=OutputFileConfig(),
        check_interval_ms=60_000,
    )


def _plan(store: Store, bucket: str | None, target_size: int, *, now_ms: int, clock: Clock) -> CompactionPlan:
    # Files first: a file's record is older than the file, so its ledger is found afterwards.
    found = list(_finished(store, bucket))
    complete = complete_files(store)
    merged = outstanding(store)
    paths = {file.path for file in merged}
    # Overwritten since, so versions may need them longer; epochs after that one remove them.
    kept = {file.path for file in overwritten(store) if not file.is_due(now_ms)}
    small = [
        file
        for file, name in found
        if file.size < target_size and file.path not in paths and complete.has(name_of(file.path), name)
    ]
    live = live_of(store, small, clock)  # after the completions: an epoch has its version before
    files = small if live is None else live
    return CompactionPlan(
        groups=tuple(_groups(files, target_size)),
        expired=tuple(file for file in merged if file.until_ms <= now_ms and file.path not in kept),
        waiting=tuple(file for file in merged if file.until_ms > now_ms or file.path in kept),
        left_out=tuple(sorted({file.path for file in small} - {file.path for file in files})),
    )


def _groups(files: Sequence[FinishedFile], target_size: int) -> Iterator[Group]:
    """What of ``files`` becomes one: those of a directory whose names begin and end alike."""
    found: dict[tuple[str, str, str], list[FinishedFile]] = {}
    for file in sorted(files, key=lambda file: file.path):
        if name := parse_part(name_of(file.path)):
            found.setdefault((parent(file.path), name.prefix, name.suffix), []).append(file)
    for (directory, prefix, suffix), some in sorted(found.items()):
        for packed in _packed(some, target_size):
            if len(packed) >= _FEWEST:
                yield Group(bucket=directory, prefix=prefix, suffix=suffix, files=tuple(packed))


def _finished(store: Store, bucket: str | None) -> Iterator[tuple[FinishedFile, PartName]]:
    """Every visible part file, and what its name tells."""
    for directory, entries in walk(store, None if bucket is None else [bucket.removesuffix("/")]):
        for entry in entries if is_data(directory) else ():
            name = parse_part(entry.name) if entry.kind is Kind.FILE else None
            if name is not None:
                path = join(directory, entry.name)
                yield FinishedFile(path=path, size=entry.size, version=entry.version), name


def _packed(files: list[FinishedFile], target_size: int) -> Iterator[list[FinishedFile]]:
    waiting: list[FinishedFile] = []
    size = 0
    for file in files:
        waiting.append(file)
        size += file.size
        if size >= target_size:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _format(form: object) -> FileFormat:
    match form:
        case BaseEncoder():
            return RowFormat(form)
        case BulkWriterFactory():
            return BulkFormat(form)
        case _:
            raise ConfigError(
                "compact takes the format that the sink had: a BulkWriterFactory, such as "
                f"ParquetWriterFactory(), or an Encoder; got {type(form).__name__}",
                code="BAD_VALUE",
            )


def _size(value: int | str) -> int:
    try:
        return parse_size(value, name="target_size")
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error
