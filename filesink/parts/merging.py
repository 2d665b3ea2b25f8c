"""Putting closed parts together into one file.

A *part* is a list of held segments. Whoever plans says which parts become one file; here that file
is made, by the cheapest means: a lone segment is promoted without a copy, the segments of one part
are copied by the store, and several parts are left to a *combine* of the planner's choice. Inputs
are named for removal, and removed only after publication.

Rules:
1. Parts that wait are state of the stages; every part that is closed is waiting or published.
2. What comes out is compared with what went in, by bytes or by records, before it is reported.
3. A merge may run twice, at the same time too: as a job it can be retried, or have a twin. Each makes its
   own file.
4. Parts that cannot be merged, since one cannot be read, become a file each: what waits for ever is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from filesink.api import OF_STAGES, EpochContext, Prepared
from filesink.errors import CompactionError
from filesink.naming import (
    HiddenName,
    OutputFileConfig,
    join,
    new_part_id,
    sink_tag,
)
from filesink.parts.committables import Committable, DiscardFile, HeldFile, PendingFile
from filesink.parts.file_format import FileFormat
from filesink.parts.open_parts import Part
from filesink.parts.part_file import Event, State, advance
from filesink.ports import Ids, SerialRunner, TaskRunner
from filesink.storage.api import Store
from filesink.storage.staged import Staged
from filesink.system import SystemIds

log = logging.getLogger("filesink")

#: The code of a ``CompactionError`` which says that an input cannot be read, however often it is tried.
UNREADABLE = "INPUT"

_ON_DRIVER = 256 << 20  # bytes copied without a job in an epoch; the kernel needs for them what two jobs cost


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """Parts that become one file: in their order, with its final path and what its hidden name tells."""

    parts: tuple[Part, ...]
    target: str
    prefix: str
    tag: str
    slot: int

    @property
    def bucket(self) -> str:
        """Of all parts."""
        return self.parts[0][0].bucket

    @property
    def segments(self) -> tuple[HeldFile, ...]:
        """The segments of all parts, in order."""
        return tuple(held for part in self.parts for held in part)

    def path(self, attempt: str) -> str:
        """Where one attempt makes it; another's may be removed late, by a server that is slow."""
        name = HiddenName(target=f"{self.prefix}-merged", tag=self.tag, slot=self.slot, attempt=attempt)
        return join(self.bucket, str(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """What a combine has made. ``rows``: records in it, ``None`` if it has compared the bytes."""

    staged: Staged
    rows: int | None = None


class Combine(Protocol):
    """Makes one file of several parts; pickled to wherever merges run."""

    def __call__(self, store: Store, request: MergeRequest, path: str) -> Combined:
        """Make the hidden file ``path``, which must not exist; the caller syncs the store."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFiles:
    """Where and how a sink makes files; what those who merge them need to know of it."""

    open_store: Callable[[], Store]
    format: FileFormat
    names: OutputFileConfig


def concatenate(store: Store, request: MergeRequest, path: str) -> Combined:
    """The bytes of all segments, one after the other."""
    sources = [held.staged for held in request.segments]
    return Combined(staged=store.concat(sources, path, target=request.target))


@dataclass(frozen=True, slots=True)
class Merger:
    """Makes one file; sent to wherever the runner runs."""

    open_store: Callable[[], Store]
    combine: Combine = concatenate
    ids: Ids = field(default_factory=SystemIds)

    def __call__(self, request: MergeRequest) -> PendingFile | CompactionError:
        """The one pending file of ``request``, durable; the error if one of its parts cannot be read.

        Raises:
            CompactionError: ``ROWS``; its records are not as many as those of the parts.
        """
        store = self.open_store()
        segments = request.segments
        if len(segments) == 1:
            advance(State.HELD, Event.PROMOTE)
            staged = store.promote(segments[0].staged, request.target)
        else:
            try:
                staged = self._combined(store, request)
            except CompactionError as error:
                if error.code != UNREADABLE:
                    raise
                return error  # nothing was made; its parts become a file each
        store.sync()
        return PendingFile(
            bucket=request.bucket,
            target=request.target,
            staged=staged,
            rows=sum(held.rows for held in segments),
            size=staged.size,
        )

    def _combined(self, store: Store, request: MergeRequest) -> Staged:
        # The segments of a part are one file, cut: only whole parts need more than a copy.
        combine = concatenate if len(request.parts) == 1 else self.combine
        combined = combine(store, request, request.path(self.ids.uuid()))
        expected = sum(held.rows for held in request.segments)
        if combined.rows not in {None, expected}:
            store.discard(combined.staged.path)
            raise CompactionError(
                f"merging {len(request.parts)} files into '{request.target}' made {combined.rows} records of "
                f"{expected}; nothing was published and the files are kept. Correct the compactor, or turn "
                "compaction off with disable_compact()",
                code="ROWS",
            )
        return store.promote(combined.staged, request.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """Carries out a plan: makes the files of an epoch and accounts for every part.

    Attributes:
        files: of the sink.
        combine: makes one file of several parts.
        on_driver: bytes; an epoch that merges more does it through its runner. ``None`` for the
            limit of what is merely copied.
        at_once: most merges at a time, ``None`` for as many as the runner likes.
    """

    files: SinkFiles
    combine: Combine = concatenate
    on_driver: int | None = None
    at_once: int | None = None

    def carry_out(
        self,
        epoch: EpochContext,
        prepared: Prepared[HeldFile, Committable],
        *,
        groups: Sequence[Sequence[Part]],
        waiting: Iterable[Part],
    ) -> Prepared[HeldFile, Committable]:
        """Each of ``groups`` becomes one pending file, ``waiting`` stays; together they are all parts."""
        start = epoch.clock.now_ms()
        requests, pending = self._made(epoch, [self._request(epoch, group) for group in groups])
        copies = {request.target: request for request in _copies(requests)}
        count_merged(
            epoch,
            inputs=[held.size for request in copies.values() for held in request.segments],
            outputs=[file.size for file in pending if file.target in copies],
            taken_ms=epoch.clock.now_ms() - start,
        )
        others = [other for other in prepared.committables if not isinstance(other, HeldFile)]
        states = {subtask: values for subtask, values in prepared.states.items() if subtask != OF_STAGES}
        left = [held for part in waiting for held in part]
        if left:
            states[OF_STAGES] = left
        return Prepared([*others, *pending, *_discards(requests, pending)], states)

    def _made(
        self, epoch: EpochContext, wanted: Sequence[MergeRequest]
    ) -> tuple[list[MergeRequest], list[PendingFile]]:
        """The requests that were carried out, and their files: those wanted, or one for each part."""
        requests: list[MergeRequest] = []
        pending: list[PendingFile] = []
        apart: list[MergeRequest] = []
        for request, made in zip(wanted, self._run(epoch, wanted), strict=True):
            if isinstance(made, PendingFile):
                requests.append(request)
                pending.append(made)
                continue
            if len(request.parts) == 1:
                raise made  # a part is joined by its bytes, and nobody reads them
            log.warning(
                "%d files of '%s' are published as they are: %s", len(request.parts), request.bucket, made
            )
            apart += [self._request(epoch, [part]) for part in request.parts]
        if not apart:
            return requests, pending
        others, files = self._made(epoch, apart)
        return [*requests, *others], [*pending, *files]

    def _run(
        self, epoch: EpochContext, requests: Sequence[MergeRequest]
    ) -> list[PendingFile | CompactionError]:
        copied = sum(held.size for request in _copies(requests) for held in request.segments)
        limit = _ON_DRIVER if self.on_driver is None else self.on_driver
        runner = self.files.open_store().runner if copied <= limit else epoch.runner
        merger = Merger(self.files.open_store, self.combine, epoch.ids)
        if self.at_once is None or len(requests) <= self.at_once:
            return runner.run(merger, requests)
        return _in_lanes(runner, merger, requests, self.at_once)

    def _request(self, epoch: EpochContext, group: Sequence[Part]) -> MergeRequest:
        tag, names = sink_tag(epoch.sink_id), self.files.names
        first = group[0][0]
        name = names.name_with(new_part_id(tag, epoch.slot, epoch.ids), 0, first.suffix)
        return MergeRequest(
            parts=tuple(group),
            target=join(first.bucket, name),
            prefix=names.part_prefix,
            tag=tag,
            slot=epoch.slot,
        )


def _in_lanes(
    runner: TaskRunner, merger: Merger, requests: Sequence[MergeRequest], lanes: int
) -> list[PendingFile | CompactionError]:
    """Run the requests in so many lanes of about equal size, one after the other in each."""
    sizes = [0] * lanes
    chosen: list[list[int]] = [[] for _ in range(lanes)]
    weights = [sum(held.size for held in request.segments) for request in requests]
    for index in sorted(range(len(requests)), key=lambda index: -weights[index]):
        lane = sizes.index(min(sizes))
        sizes[lane] += weights[index]
        chosen[lane].append(index)
    results = runner.run(InTurn(merger), [[requests[index] for index in lane] for lane in chosen])
    done = {
        index: file
        for lane, files in zip(chosen, results, strict=True)
        for index, file in zip(lane, files, strict=True)
    }
    return [done[index] for index in range(len(requests))]


@dataclass(frozen=True, slots=True)
class InTurn:
    """One merge after the other, as one item of a runner."""

    merger: Merger

    def __call__(self, requests: Sequence[MergeRequest]) -> list[PendingFile | CompactionError]:
        """The files of ``requests``, in their order."""
        return SerialRunner().run(self.merger, requests)


def _copies(requests: Iterable[MergeRequest]) -> list[MergeRequest]:
    return [request for request in requests if len(request.segments) > 1]


def _discards(requests: Sequence[MergeRequest], pending: Sequence[PendingFile]) -> list[DiscardFile]:
    """The inputs that were copied; what other attempts have left is swept."""
    published = {file.staged.path for file in pending}
    inputs = (held.staged.path for request in requests for held in request.segments)
    return [DiscardFile(path=path) for path in inputs if path not in published]


def count_merged(
    epoch: EpochContext, *, inputs: Sequence[int], outputs: Sequence[int], taken_ms: int
) -> None:
    """Add to the metrics of ``epoch`` the sizes in bytes of what was merged, unless nothing was."""
    if not inputs:
        return
    for name, amount in (
        ("merged_files_in", len(inputs)),
        ("merged_bytes_in", sum(inputs)),
        ("merged_files_out", len(outputs)),
        ("merged_bytes_out", sum(outputs)),
        ("merge_ms", taken_ms),
    ):
        epoch.metrics.add(name, amount)
