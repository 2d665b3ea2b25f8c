"""The merges of one epoch: the caller plans which parts become one file; here the files are made.

Inputs are named for removal, and removed only after publication.

Rules:
1. Parts that wait are state of the stages; every part that is closed is either waiting or published.
2. If one part of a merge cannot be read, each of its parts becomes a file of its own: a part that waits for
   ever is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from filesink.api import OF_STAGES, EpochContext, Prepared
from filesink.errors import CompactionError
from filesink.naming import join, new_part_id, sink_tag
from filesink.parts.committables import Committable, DiscardFile, HeldFile, PendingFile
from filesink.parts.stages.merger import Combine, Merger, MergeRequest, SinkFiles, concatenate
from filesink.parts.stages.open_parts import Part
from filesink.ports import SerialRunner, TaskRunner

log = logging.getLogger("filesink")

_ON_DRIVER = 256 << 20  # bytes copied in an epoch without a job; that takes as long as two jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """Carries out a plan: makes the files of an epoch and accounts for every part.

    Attributes:
        files: of the sink.
        combine: makes one file of several parts.
        on_driver: bytes; an epoch that merges more uses its runner. ``None`` for the limit of merges
            that only copy.
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
        """Make each of ``groups`` one pending file and keep ``waiting``; together these are all parts."""
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
        """The requests that were carried out, and their files: those wanted, or one per part."""
        requests: list[MergeRequest] = []
        pending: list[PendingFile] = []
        apart: list[MergeRequest] = []
        for request, made in zip(wanted, self._run(epoch, wanted), strict=True):
            if isinstance(made, PendingFile):
                requests.append(request)
                pending.append(made)
                continue
            if len(request.parts) == 1:
                raise made  # one part is joined byte by byte, without being read
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
            target=join(first.bucket, self.files.name_for(first.bucket, name)),
            prefix=self.files.name_for(first.bucket, names.part_prefix),
            tag=tag,
            slot=epoch.slot,
        )


def _in_lanes(
    runner: TaskRunner, merger: Merger, requests: Sequence[MergeRequest], lanes: int
) -> list[PendingFile | CompactionError]:
    """Run the requests in ``lanes`` lanes of about equal size, one after the other in each."""
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
    """The inputs that were copied; leftovers of other attempts are swept."""
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
