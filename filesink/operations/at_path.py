"""What can be done to the sinks of a path by who knows the path only: neither their program nor Spark.

Rules:
1. What needs a format, such as writing, is not here: recovery and finishing move and join files, whatever is
   in them.
2. Partitions are announced as the caller says. An epoch that has some to announce is not completed without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from filesink.arguments import choice
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError, FilesinkError, MetastoreError
from filesink.file_sink.report import EpochReport, RecoveryReport, SweepPlan, report_of
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import stream_sink_id
from filesink.metastore.announcements import Announcement
from filesink.naming import OutputFileConfig, name_of, parse_hidden
from filesink.operations.find_sinks import check_written
from filesink.operations.maintenance import Announce, Lost, Maintenance
from filesink.operations.path_tiers import Announcing, path_tiers
from filesink.operations.progress import Progress, progress_of, telling
from filesink.operations.recovery_plan import RecoveryPlan
from filesink.parts.committables import HeldFileCodec
from filesink.parts.stages.closed_parts import Waiting
from filesink.ports import Ports
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.opening import site_of
from filesink.sink_directory.sink_states import HeldPart, chain_ids, look_at, uid_of
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock, SystemIds, ThreadRunner, this_driver

_STEPS: Final = {
    "list": "directories listed",
    "discard": "files removed",
    "delete_if_unchanged": "files removed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPartition:
    """A directory that would be announced. ``rows`` is ``None`` if nobody knows."""

    bucket: str
    files: int
    rows: int | None
    bytes: int


@dataclass(frozen=True, kw_only=True)
class PathOperations:
    """Recovers, finishes, sweeps and announces below one base path.

    Attributes:
        path: the base path, in its one spelling.
        storage_options: of the store.
        uid: of the sink; ``None`` for all.
        chain: the id of one chain whose sink has no uid; ``None`` for those of ``uid``.
        announcing: who is told of partitions.
    """

    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    uid: str | None = None
    chain: str | None = None
    announcing: Announcing = field(default_factory=Announcing)

    def plan_recover(self) -> RecoveryPlan:
        """What ``recover`` would do now.

        Raises:
            StateCorruptError: a ledger is damaged; ``filesink.fsck`` says more.
        """
        return self._maintenance().plan_recover()

    def recover(
        self,
        *,
        lost: Literal["raise", "rewrite", "accept"] = "raise",
        announce: Literal["raise", "skip"] = "raise",
        checkpoint_location: str | None = None,
    ) -> RecoveryReport:
        """See ``FileSink.recover``."""
        maintenance = self._maintenance(choice(Announce, announce, "announce"))
        return maintenance.recover(choice(Lost, lost, "lost"), checkpoint_location)

    def plan_sweep(self, older_than: Duration = "7 days", *, progress: Progress | None = None) -> SweepPlan:
        """See ``FileSink.plan_sweep``; ``progress`` is told how far it is."""
        age_ms = parse_duration_ms(older_than, name="older_than")
        return self._maintenance(progress=progress).plan_sweep(age_ms)

    def sweep(self, older_than: Duration = "7 days", *, progress: Progress | None = None) -> SweepPlan:
        """See ``FileSink.sweep``; ``progress`` is told how far it is."""
        age_ms = parse_duration_ms(older_than, name="older_than")
        return self._maintenance(progress=progress).sweep(age_ms)

    def plan_finish(self) -> list[HeldPart]:
        """What ``finish`` would make visible now.

        Raises:
            ConfigError: ``SEVERAL_SINKS``, more than one sink holds rows back, and no uid was given.
            StateCorruptError: a ledger is damaged, or has lost its newest records (``LOST_TAIL``): what it
                holds back may be visible already.
        """
        store = site_of(self.path, self.storage_options).store
        ours = [sink_id for sink_id in chain_ids(store) if self._is_ours(sink_id)]
        held = [part for sink_id in ours for part in look_at(store, sink_id).held]
        sinks = sorted({part.sink for part in held})
        if len(sinks) > 1:
            shown = ", ".join(f"'{sink}'" for sink in sinks)
            raise ConfigError(
                f"several sinks hold rows back in '{self.path}': {shown}. Nothing was done; name one as uid",
                code="SEVERAL_SINKS",
            )
        if held:
            self.plan_recover()  # looks at all hidden files
        return held

    def finish(self) -> EpochReport | None:
        """Make visible what a stream has left open, and what waits for compaction; ``None`` if nothing does.

        As ``FileSink.finish``, but what waits is not merged, and partitions are announced only by
        ``announcing``. No query of that sink may be at work.

        Raises:
            ConfigError: ``SEVERAL_SINKS``.
            FilesinkError: nothing became visible, or the epoch was decided and ``recover`` completes it.
        """
        held = self.plan_finish()
        if not held:
            return None
        tiers = self._tiers()
        ledger = tiers.open_ledger(held[0].sink)
        head = ledger.head()
        files = [] if head is None else [
            file for states in head.record.states.values() for file in states.decode(HeldFileCodec())
        ]  # fmt: skip
        names = OutputFileConfig(part_prefix=_prefix([file.staged.path for file in files]))
        tiers = replace(tiers, plan=replace(tiers.plan, names=names), compaction=Waiting.PUBLISHED)
        ports = Ports(
            clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner(), who=this_driver("filesink finish")
        )
        with closing(EpochLoop(tiers, ledger, ports=ports, options=EpochOptions())) as loop:
            outcome = loop.finish()
        return None if outcome is None else report_of(outcome)

    def plan_publish(self, buckets: Sequence[str] = ()) -> list[PlannedPartition]:
        """The directories that ``publish`` would announce: all with live files, or those given.

        Raises:
            ConfigError: ``NO_DIRECTORY``, one of ``buckets`` has no live files.
        """
        found: dict[str, PlannedPartition] = {}
        for file in self._directory().snapshot().files:
            known = found.get(file.bucket) or PlannedPartition(bucket=file.bucket, files=0, rows=0, bytes=0)
            rows = None if known.rows is None or file.rows is None else known.rows + file.rows
            found[file.bucket] = PlannedPartition(
                bucket=file.bucket, files=known.files + 1, rows=rows, bytes=known.bytes + file.size
            )
        if missing := sorted(set(buckets) - found.keys()):
            raise ConfigError(
                f"'{self.path}' has no live files in '{missing[0]}'; nothing was announced",
                code="NO_DIRECTORY",
            )
        return [one for bucket, one in sorted(found.items()) if not buckets or bucket in buckets]

    def publish(self, buckets: Sequence[str] = ()) -> list[PlannedPartition]:
        """Announce partitions again, as far as ``announcing`` does not know them; returns them.

        Raises:
            MetastoreError: some could not be announced; may be tried again.
        """
        planned = self.plan_publish(buckets)
        committer = self._tiers().partition_committer()
        if committer is None:
            raise ConfigError("nobody is named who shall be told of partitions", code="CONFLICT")
        now_ms = SystemClock().now_ms()
        values = [
            Announcement(
                bucket=one.bucket,
                first_seen_ms=now_ms,
                slot=0,
                files=one.files,
                rows=one.rows or 0,
                size=one.bytes,
            )
            for one in planned
        ]
        with closing(committer):
            left = committer.restore_commit(values)
        if left:
            raise _not_announced(len(left), len(planned), committer.failure)
        return planned

    def _is_ours(self, sink_id: str) -> bool:
        if self.chain is not None:
            return sink_id == self.chain
        return self.uid is None or sink_id == stream_sink_id(self.uid, "")

    def _directory(self) -> SinkDirectory:
        return SinkDirectory(_site=site_of(self.path, self.storage_options))

    def _maintenance(
        self, announce: Announce = Announce.RAISE, *, progress: Progress | None = None
    ) -> Maintenance:
        told, tiers = progress_of(progress), self._tiers()
        check_written(self._address(), tiers.uid)
        tiers = replace(tiers, address=telling(tiers.address, told, _STEPS))
        return Maintenance(tiers, clock=SystemClock(), ids=SystemIds(), announce=announce, chain=self.chain)

    def _address(self) -> StoreAddress:
        return StoreAddress(base_path=self.path, storage_options=self.storage_options)

    def _tiers(self) -> FileTiers:
        return path_tiers(self._address(), self.announcing, uid=self.uid)


def operations_at(
    path: str,
    storage_options: Mapping[str, Any] | None = None,
    *,
    uid: str | None = None,
    announcing: Announcing | None = None,
) -> PathOperations:
    """What can be done to the sinks of ``path``.

    Args:
        path: the base path.
        storage_options: of the store.
        uid: of one sink; or the id of a chain, as ``SinkState.id`` has it: it stands for the uid in it, or
            for this chain alone. ``None`` for all.
        announcing: who is told of partitions.

    Raises:
        ConfigError: as from ``filesink.open``.
    """
    site = site_of(path, storage_options)
    chain = None
    ids = frozenset(() if uid is None else chain_ids(site.store))
    if uid in ids and ids.isdisjoint({f"uid-{uid}", f"appends-{uid}"}):
        chain, uid = uid, uid_of(uid)
    return PathOperations(
        path=site.base_path,
        storage_options=storage_options or {},
        uid=uid,
        chain=chain if uid is None else None,
        announcing=announcing or Announcing(),
    )


def _prefix(hidden: Sequence[str]) -> str:
    """How the names of finished files begin, by those of hidden ones; see ``HiddenName``."""
    names = [parse_hidden(name_of(path)) for path in hidden]
    found = [name.target.rpartition("-")[0] for name in names if name is not None]
    return max(set(found), key=found.count, default="") or OutputFileConfig().part_prefix


def _not_announced(left: int, planned: int, failure: Exception | None) -> FilesinkError:
    if isinstance(failure, FilesinkError):
        return failure
    return MetastoreError(
        f"{left} of {planned} partitions could not be announced; the log says why. Call it again",
        code="METASTORE_FAILED",
    )
