"""Files of an inventory, each of which may stand once: whether ours does, whatever became of the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from filesink.errors import CommitConflictError, CommitStateUnknown, StorageError
from filesink.inventory.mark import Segment, digest
from filesink.inventory.names import DIRECTORY, SegmentKind, segment_name, segment_path
from filesink.inventory.rows.segments import to_bytes
from filesink.ports import Ids
from filesink.storage.api import PutResult, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a segment is about: see ``Segment``. ``number`` is that of the mark for which it is made."""

    number: int
    first: int
    last: int
    level: int = 0


class SegmentPutter:
    """Makes segments.

    Args:
        store: where the inventory lives.
        ids: name them.
    """

    def __init__(self, store: Store, ids: Ids) -> None:
        self._store = store
        self._ids = ids

    def put(
        self, kind: SegmentKind, pieces: Iterable[pa.Table], span: Span, *, visible_ms: int = 0
    ) -> list[Segment]:
        """The segment that has the rows of ``pieces``, which is durable now; none if there are no rows.

        Raises:
            CommitConflictError, StorageError: it could not be put.
        """
        data, rows = to_bytes(pieces, kind)
        if not rows:
            return []
        name = segment_name(span.number, self._ids.uuid(), kind)
        if not put(self._store, segment_path(name), data):
            raise CommitConflictError(f"{segment_path(name)} exists already, not overwritten", code="EXISTS")
        segment = Segment(
            name=name,
            kind=kind,
            level=span.level,
            rows=rows,
            first=span.first,
            last=span.last,
            visible_ms=visible_ms,
            size=len(data),
            sha256=digest(data),
        )
        return [segment]


def put(store: Store, path: str, data: bytes) -> bool:
    """Create ``path`` if it is absent; whether ``data`` stands there now, and nothing else.

    Raises:
        CommitStateUnknown: not known.
        StorageError: nothing stands there; though it still may, if the store is slow.
    """
    try:
        if store.put_if_absent(path, data) is PutResult.CREATED:
            return True
    except StorageError as error:
        standing = _reread(store, path, error)
        if standing is None:
            raise
    else:
        standing = store.read(path)
    if standing != data:
        return False
    # Its name may not be durable yet, and what follows must not outlive it.
    store.sync_directories([DIRECTORY])
    return True


def _reread(store: Store, path: str, failed: StorageError) -> bytes | None:
    try:
        return store.read(path)
    except StorageError as error:
        raise CommitStateUnknown(
            f"creating {path} failed ({failed.message}), and looking whether it stands did too "
            f"({error.message}). Nothing was deleted; start again later",
            code="PUT_UNKNOWN",
        ) from failed
