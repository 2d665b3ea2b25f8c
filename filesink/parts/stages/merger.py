"""One merge: parts that become one file, by the cheapest means.

A *part* is a list of held segments. A lone segment is promoted without a copy, the segments of one part are
copied by the store, and several parts are left to a *combine* of the planner's choice.

Rules:
1. What comes out is compared with what went in, by bytes or by records, before it is reported.
2. A merge may run twice, also at the same time: as a job it can be retried, or have a twin. Each run makes a
   file of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from filesink.errors import CompactionError
from filesink.naming import HiddenName, OutputFileConfig, join
from filesink.parts.committables import HeldFile, PendingFile
from filesink.parts.file_format import FileFormat
from filesink.parts.part_file import Event, State, advance
from filesink.parts.stages.open_parts import Part
from filesink.ports import Ids
from filesink.storage.api import Store
from filesink.storage.staged import Staged
from filesink.system import SystemIds

#: The code of a ``CompactionError`` which says that an input cannot be read, however often one tries.
UNREADABLE = "INPUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """Parts that become one file, in this order, with its final path and what its hidden name tells."""

    parts: tuple[Part, ...]
    target: str
    prefix: str
    tag: str
    slot: int

    @property
    def bucket(self) -> str:
        """The bucket of all parts."""
        return self.parts[0][0].bucket

    @property
    def segments(self) -> tuple[HeldFile, ...]:
        """The segments of all parts, in order."""
        return tuple(held for part in self.parts for held in part)

    def path(self, attempt: str) -> str:
        """Where one attempt makes the file; a slow server may still remove that of an earlier attempt."""
        name = HiddenName(target=f"{self.prefix}-merged", tag=self.tag, slot=self.slot, attempt=attempt)
        return join(self.bucket, str(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """What a combine has made. ``rows``: records in it; ``None`` if it has compared bytes instead."""

    staged: Staged
    rows: int | None = None


class Combine(Protocol):
    """Makes one file of several parts; pickled to wherever merges run."""

    def __call__(self, store: Store, request: MergeRequest, path: str) -> Combined:
        """Make the hidden file ``path``, which must not exist; the caller syncs the store."""
        ...


def _as_it_is(bucket: str, text: str) -> str:
    del bucket
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkFiles:
    """Where and how a sink makes files: what a merge needs to know about it.

    ``name_for`` is that of the bucket assigner.
    """

    open_store: Callable[[], Store]
    format: FileFormat
    names: OutputFileConfig
    name_for: Callable[[str, str], str] = _as_it_is


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
            CompactionError: ``ROWS``; the file does not have as many records as the parts.
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
