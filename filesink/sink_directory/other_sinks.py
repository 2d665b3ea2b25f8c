"""Paths where another sink than ``FileSink`` keeps its ledger: their records name no files.

A record does not say which sink has decided it. But its bytes have a checksum: if they are whole, and what it
commits cannot be read as files, then no file sink has written it. A path with an inventory is one of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from filesink.errors import ConfigError, InternalError, StateCorruptError, StateError, StorageError
from filesink.inventory.names import DIRECTORY
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord
from filesink.parts.committables import CommittableCodec, HeldFileCodec
from filesink.storage.api import Store


def refuse_other_sink(store: Store, ids: Sequence[str], base_path: str) -> None:
    """Raise if the ledgers ``ids`` are those of a sink that writes no files.

    Raises:
        ConfigError: ``OTHER_SINK``.
    """
    if store.list(DIRECTORY):
        return
    other = next((sink_id for sink_id in ids if _is_of_another(store, sink_id)), None)
    if other is not None:
        raise ConfigError(
            f"'{base_path}' has the ledger of another sink than FileSink, '{other}': its records name no "
            "files. This is for paths of FileSink. Ask that sink, or the service that it writes to",
            code="OTHER_SINK",
        )


def _is_of_another(store: Store, sink_id: str) -> bool:
    try:
        record = next(_telling(store, sink_id), None)
    except (StateError, StorageError):  # damaged: that is for others to tell
        return False
    return record is not None and not _names_files(record)


def _telling(store: Store, sink_id: str) -> Iterator[EpochRecord]:
    """The records that commit or keep anything, the newest first."""
    for record in Ledger(store, sink_id).history.newest_first():
        if record.states or record.committables.data not in {b"", b"[]"}:
            yield record


def _names_files(record: EpochRecord) -> bool:
    try:
        if record.committables.data:
            record.committables.decode(CommittableCodec())
        for section in record.states.values():
            section.decode(HeldFileCodec())
    except (StateCorruptError, InternalError):
        return False
    return True
