"""Closing parts that were open across epochs: the stage between the tasks and the record.

A part that stayed open is a list of held segments in a *lane* (bucket, partition index). It is
closed here when a task has closed it, when the rolling policy says so by the driver's clock, when
there are too many open parts, or when the input ends. Its segments become one pending file, copied
by the store; a lone segment is promoted without a copy. Inputs are named for removal, and removed
only after publication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from filesink.api import EpochContext, Input, PreCommitStage, Prepared
from filesink.committables import Committable, DiscardFile, HeldFile, PendingFile
from filesink.errors import CommitConflictError, StateError
from filesink.naming import (
    HiddenName,
    OutputFileConfig,
    join,
    new_part_id,
    parent,
    parse_hidden,
    sink_tag,
)
from filesink.part_file import Event, PartFileInfo, State, advance
from filesink.ports import Ids, SerialRunner
from filesink.rolling import RollingPolicy
from filesink.storage.api import Staged, Store
from filesink.system import SystemIds

MAX_OPEN_PARTS = 10_000  # per sink; the oldest are closed first
_ON_DRIVER = 64 << 20  # bytes; an epoch that merges more does it as a job


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """One part to be put together: its segments in order, the hidden name and the final path."""

    segments: tuple[HeldFile, ...]
    path: str
    target: str


@dataclass(frozen=True, slots=True)
class Merger:
    """Concatenates the segments of one part; sent to wherever the runner runs.

    May run twice for one request, at the same time too: as a Spark task it can be retried, or have a
    twin. One result counts; the other file is swept.
    """

    open_store: Callable[[], Store]
    ids: Ids = field(default_factory=SystemIds)

    def __call__(self, request: MergeRequest) -> PendingFile:
        """The one pending file of ``request``; durable."""
        store = self.open_store()
        sources = [held.staged for held in request.segments]
        if len(sources) == 1:
            advance(State.HELD, Event.PROMOTE)
            staged = store.promote(sources[0], request.target)
        else:
            staged = self._concat(store, request)
        store.sync()
        return PendingFile(
            bucket=request.segments[0].bucket,
            target=request.target,
            staged=staged,
            rows=sum(held.rows for held in request.segments),
            size=sum(held.size for held in request.segments),
        )

    def _concat(self, store: Store, request: MergeRequest) -> Staged:
        sources = [held.staged for held in request.segments]
        try:
            return store.concat(sources, request.path, target=request.target)
        except CommitConflictError:
            name = parse_hidden(request.path.rpartition("/")[2])
            if name is None:
                raise
            # Another attempt has taken the name and may still be writing; its file is left alone.
            own = join(parent(request.path), str(replace(name, attempt=self.ids.uuid())))
            return store.concat(sources, own, target=request.target)


class CloseParts(PreCommitStage[HeldFile, Committable]):
    """Closes what is due and puts it together.

    Args:
        merger: does one part.
        policy: asked about age and inactivity.
        names: of finished files; each ends as the format that has begun it does.
    """

    def __init__(self, merger: Merger, policy: RollingPolicy, *, names: OutputFileConfig) -> None:
        self._merger = merger
        self._policy = policy
        self._names = names

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether any open part must be closed now."""
        return bool(self._due(epoch, prepared.states))

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """See ``PreCommitStage.prepare``."""
        closed = [held for held in prepared.committables if isinstance(held, HeldFile)]
        others = [other for other in prepared.committables if not isinstance(other, HeldFile)]
        due = self._due(epoch, prepared.states)
        groups = [*_groups(closed), *due]
        if not groups:
            return prepared
        taken = {held.staged.path for group in due for held in group}
        states = {
            subtask: [held for held in values if held.staged.path not in taken]
            for subtask, values in prepared.states.items()
        }
        return Prepared([*others, *self._merge(epoch, groups)], states)

    def _due(
        self, epoch: EpochContext, states: Mapping[int, Sequence[HeldFile]]
    ) -> list[tuple[HeldFile, ...]]:
        groups = [group for values in states.values() for group in _groups(values)]
        if epoch.input is Input.ENDED:
            return groups
        groups.sort(key=lambda group: min(held.created_ms for held in group))
        surplus = max(0, len(groups) - MAX_OPEN_PARTS)
        return groups[:surplus] + [group for group in groups[surplus:] if self._rolls(group, epoch.now_ms)]

    def _rolls(self, group: tuple[HeldFile, ...], now_ms: int) -> bool:
        # On checkpoint too: a lane without a task is closed by nobody else after a change of the policy.
        part = part_info(group)
        return self._policy.should_roll_on_checkpoint(part) or self._policy.should_roll_on_processing_time(
            part, now_ms
        )

    def _merge(self, epoch: EpochContext, groups: Sequence[tuple[HeldFile, ...]]) -> list[Committable]:
        requests = [self._request(epoch, group) for group in groups]
        copied = sum(held.size for group in groups if len(group) > 1 for held in group)
        runner = SerialRunner() if copied <= _ON_DRIVER else epoch.runner
        pending = runner.run(self._merger, requests)
        published = {file.staged.path for file in pending}
        inputs = (held.staged.path for group in groups for held in group)
        return [*pending, *(DiscardFile(path=path) for path in inputs if path not in published)]

    def _request(self, epoch: EpochContext, group: tuple[HeldFile, ...]) -> MergeRequest:
        tag = sink_tag(epoch.sink_id)
        bucket = group[0].bucket
        hidden = HiddenName(
            target=f"{self._names.part_prefix}-merged", tag=tag, slot=epoch.slot, attempt=epoch.ids.uuid()
        )
        name = self._names.name_with(new_part_id(tag, epoch.ids), 0, group[0].suffix)
        return MergeRequest(segments=group, path=join(bucket, str(hidden)), target=join(bucket, name))


def part_info(segments: Sequence[HeldFile]) -> PartFileInfo:
    """What a rolling policy may know of a part that no task is writing."""
    return PartFileInfo(
        bucket_id=segments[0].bucket,
        size=sum(held.size for held in segments),
        rows=sum(held.rows for held in segments),
        creation_time=min(held.created_ms for held in segments),
        last_update_time=max(held.updated_ms for held in segments),
    )


def _groups(held_files: Sequence[HeldFile]) -> list[tuple[HeldFile, ...]]:
    """Segments by part, in the order in which they were written."""
    groups: dict[tuple[str, str], list[HeldFile]] = {}
    for held in held_files:
        if not held.group:
            raise StateError(
                "the ledger holds small files that wait for compaction, and this sink is built without it: "
                "they would stay hidden. Nothing was written. Use the release and options that wrote them",
                code="COMPACTION_OFF",
            )
        groups.setdefault((held.bucket, held.group), []).append(held)
    return [tuple(group) for group in groups.values()]
