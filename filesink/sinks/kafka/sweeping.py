"""Removal of files that attempts have left behind and that no epoch names.

Rules:
1. A stream needs no clock: once slot k is complete, nothing can be decided for a slot up to k any more.
2. A batch write removes what its own attempts have left. Of one that died nobody has the id: what it left is
   removed by age, by hand, unless its epoch is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from filesink.ledger.record import EpochRecord
from filesink.naming import HiddenName, join, parse_hidden, sink_tag
from filesink.sinks.kafka.committables import STAGED
from filesink.storage.api import Entry, Store


def sweep_after(store: Store, record: EpochRecord) -> list[str]:
    """Remove what was staged for slots up to that of ``record``, which is complete; return the paths.

    Raises:
        StorageError: some are still there.
    """
    tag = sink_tag(record.files_of)
    return _sweep(store, lambda name, _: name.tag == tag and name.slot <= record.files_slot)


def sweep_older(
    store: Store, before_ms: int, *, of_streams: Collection[str], decided: Collection[str]
) -> list[str]:
    """Remove what batch writes have left behind, but for what is ``decided``; return the paths.

    Args:
        store: of the sink's directory.
        before_ms: files that were changed before that, by the store's clock.
        of_streams: sink ids whose files stay.
        decided: paths of files that stay.

    Raises:
        StorageError: some are still there.
    """
    kept = {sink_tag(sink_id) for sink_id in of_streams}
    return _sweep(
        store,
        lambda name, entry: (
            name.tag not in kept and entry.mtime_ms < before_ms and join(STAGED, entry.name) not in decided
        ),
    )


def _sweep(store: Store, is_dead: Callable[[HiddenName, Entry], bool]) -> list[str]:
    removed = []
    for entry in store.list(STAGED):
        name = parse_hidden(entry.name)
        if name is not None and is_dead(name, entry):
            path = join(STAGED, entry.name)
            store.discard(path)
            removed.append(path)
    return removed
