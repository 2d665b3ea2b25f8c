"""Merging files that are visible already: for directories full of small files of ours.

    plan(base_path, form)       what would be merged; touches nothing
    compact(base_path, form)    merges it, as an epoch of the ledger that overwriting writes use, too

Rules:
1. This is outside of the promise on plain directories: between the publication of a merged file and
   the removal of its inputs a reader sees rows twice, and one that has listed before may find a file
   gone. Nothing is ever lost: inputs are removed when what replaces them is visible and durable, and
   only if they are what they were.
2. Only files of ours are touched, known by their names, and only of epochs that are complete. Who
   decides and publishes meanwhile is not disturbed.
3. A crash leaves a decided epoch, which the next call, or ``FileSink.recover()``, carries through.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction.swap import FinishedFile, Group, Swap
from filesink.api import PreCommitStage
from filesink.buckets import BucketAssigner
from filesink.committables import Committable, HeldFile
from filesink.committer import VerifyStage
from filesink.epoch import EpochLoop
from filesink.errors import ConfigError
from filesink.file_format import BulkFormat, RowFormat
from filesink.file_tiers import FileTiers, StoreAddress
from filesink.identity import EXCLUSIVE
from filesink.ledger import Ledger
from filesink.naming import LEDGER_ROOT, OutputFileConfig, join, parse_part, sink_tag
from filesink.ports import Ports, SerialRunner
from filesink.replay import EpochOptions
from filesink.report import EpochReport, report_of
from filesink.rolling import RollingPolicy
from filesink.storage.api import Kind, Store
from filesink.storage.base_path import check_base_path
from filesink.sweep import walk
from filesink.system import SystemClock, SystemIds
from filesink.writer import Plan
from formats.api import BulkWriterFactory, Encoder
from formats.errors import FormatError
from formats.sizes import parse_size

_FEWEST = 2  # inputs; one file alone is what it would become


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPlan:
    """What ``compact`` would do now: the files of each group become one. Sizes in bytes."""

    groups: tuple[Group, ...]

    @property
    def files(self) -> int:
        """Files that would be replaced."""
        return sum(len(group.files) for group in self.groups)

    @property
    def bytes(self) -> int:
        """Their size together."""
        return sum(file.size for group in self.groups for file in group.files)


def plan(
    base_path: str | Path,
    *,
    bucket: str | None = None,
    target_size: int | str = "128MiB",
    storage_options: Mapping[str, Any] | None = None,
) -> CompactionPlan:
    """What would be merged: finished files of sinks below ``base_path`` that are smaller than wanted.

    Args:
        base_path: of the sinks.
        bucket: the only directory to look at; ``None`` for all, ``""`` for the base path itself.
        target_size: files of this size are left alone, and merged ones aim at it; bytes or ``"128MiB"``.
        storage_options: of the store, as ``with_storage_options`` takes them.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    address = StoreAddress(base_path=check_base_path(base_path), storage_options=storage_options or {})
    return _plan(address(), bucket, _size(target_size))


def compact(
    base_path: str | Path,
    form: BulkWriterFactory | Encoder,
    *,
    bucket: str | None = None,
    target_size: int | str = "128MiB",
    storage_options: Mapping[str, Any] | None = None,
) -> EpochReport | None:
    """Merge small finished files, in this process; ``None`` if there was nothing to do.

    Readers of plain directories should not read meanwhile: see the head of this module. Bulk formats
    are merged by records, row formats by bytes. First carries through what an earlier call has left.

    Args:
        base_path: see ``plan``.
        form: what the sink was given, such as ``ParquetWriterFactory(compression="zstd")``.
        bucket: see ``plan``.
        target_size: see ``plan``.
        storage_options: see ``plan``.

    Raises:
        ConfigError: ``COMPACTION``; files of this format cannot be merged afterwards.
        CompactionError: files do not fit together or cannot be read; nothing was changed.
        ConcurrentDriverError: an overwriting write, or another call, is at work.
    """
    address = StoreAddress(base_path=check_base_path(base_path), storage_options=storage_options or {})
    size = _size(target_size)
    tiers = _FinishedTiers(
        address=address,
        plan=Plan(
            format=RowFormat(form) if isinstance(form, Encoder) else BulkFormat(form),
            assigner=BucketAssigner.base_path_bucket_assigner(),
            policy=RollingPolicy.on_checkpoint_rolling_policy(),
            names=OutputFileConfig(),
            check_interval_ms=60_000,
        ),
        bucket=bucket,
        target_size=size,
    )
    address().prepare()
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    loop = EpochLoop(tiers, tiers.open_ledger(EXCLUSIVE), ports=ports, options=EpochOptions())
    outcome = loop.upkeep()
    return None if outcome is None else report_of(outcome)


@dataclass(frozen=True, kw_only=True)
class _FinishedTiers(FileTiers):
    """A sink without input: its epochs replace files by what they are merged into."""

    bucket: str | None
    target_size: int

    def pre_commit_stages(self) -> tuple[PreCommitStage[HeldFile, Committable], ...]:
        store = self.address()
        swap = Swap(store, self.plan.format, plan=lambda: _plan(store, self.bucket, self.target_size).groups)
        return swap, VerifyStage(store)


def _plan(store: Store, bucket: str | None, target_size: int) -> CompactionPlan:
    complete = _complete_slots(store)
    groups: dict[tuple[str, str, str], list[FinishedFile]] = {}
    for directory, file, kind in _finished(store, bucket, complete):
        if file.size < target_size:
            groups.setdefault((directory, *kind), []).append(file)
    packed = (
        Group(bucket=directory, prefix=prefix, suffix=suffix, files=tuple(files))
        for (directory, prefix, suffix), found in sorted(groups.items())
        for files in _packed(sorted(found, key=lambda file: file.path), target_size)
    )
    return CompactionPlan(groups=tuple(group for group in packed if len(group.files) >= _FEWEST))


def _finished(
    store: Store, bucket: str | None, complete: Mapping[str, int]
) -> Iterator[tuple[str, FinishedFile, tuple[str, str]]]:
    """Directory, file, and prefix and suffix of the name, of every file that may be replaced."""
    for directory, entries in walk(store, None if bucket is None else [bucket]):
        for entry in entries:
            name = parse_part(entry.name) if entry.kind is Kind.FILE else None
            if name is not None and name.slot <= complete.get(name.tag, -1):
                path = join(directory, entry.name)
                file = FinishedFile(path=path, size=entry.size, version=entry.version)
                yield directory, file, (name.prefix, name.suffix)


def _complete_slots(store: Store) -> dict[str, int]:
    """Sink tag to the newest slot of its ledger that is complete."""
    slots: dict[str, int] = {}
    for entry in store.list(LEDGER_ROOT):
        if entry.kind is Kind.DIRECTORY and entry.name[0] not in "._":
            head = Ledger(store, entry.name).head()
            if head is not None:
                slots[sink_tag(entry.name)] = head.record.slot - (not head.complete)
    return slots


def _packed(files: list[FinishedFile], target_size: int) -> Iterator[list[FinishedFile]]:
    waiting: list[FinishedFile] = []
    for file in files:
        waiting.append(file)
        if sum(other.size for other in waiting) >= target_size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _size(value: int | str) -> int:
    try:
        return parse_size(value, name="target_size")
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error
