"""The columns of the input in the ledger, and whether those of a new epoch may follow them.

Whoever reads the directory meets files of all epochs side by side, so what a batch has for columns is
settled before a task writes. What may follow what is the sink's to say; here is only what it is asked.

Rules:
1. The record of every epoch carries the columns of the newest input, as it carries all other state.
2. A batch write that replaces all that is there, or finds nothing, starts anew.
3. A chain hears of such a write in another chain only when it is about to refuse its own input. That write
   has noted how far the chain was before it looked for what to replace: clocks of two hosts cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from filesink.api import Sink
from filesink.errors import InternalError, SchemaError, StateCorruptError
from filesink.ledger.head import Head
from filesink.ledger.identity import EXCLUSIVE, OF_STREAMS
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EMPTY, BatchWrite, Cause, EpochRecord, Section, TakenBack
from filesink.save_mode import SaveMode

SCHEMA_VERSION = 1  # Arrow's own form of a schema, as in its files
_ANEW = frozenset({SaveMode.OVERWRITE, SaveMode.ERROR_IF_DATA_EXISTS})


def schema_of(head: Head | None) -> Section:
    """The columns that the chain knows; ``EMPTY`` before its first input."""
    return EMPTY if head is None else head.record.schema


def next_schema(
    sink: Sink[Any, Any, Any], schema: pa.Schema, *, cause: Cause, head: Head | None, ledger: Ledger
) -> Section:
    """The columns of an epoch's input, for its record. Called before anything is written.

    Raises:
        SchemaError: the sink says that records of ``schema`` cannot follow those of the chain.
    """
    # What others have noted of the columns may be secret.
    plain = pa.schema([field.remove_metadata() for field in schema])
    noted = sink.on_record(plain)
    schema = schema.with_metadata(noted.metadata)
    data: bytes = noted.serialize().to_pybytes()
    section = Section(SCHEMA_VERSION, data)
    last = EMPTY if _starts_anew(cause) else schema_of(head)
    if last in (EMPTY, section):
        return section
    try:
        sink.check_continues(_from_bytes(last), schema)
    except SchemaError:
        newer = _replaced_by(head, ledger)
        if newer is None:
            raise
        if newer != EMPTY:
            sink.check_continues(_from_bytes(newer), schema)
    return section


def replaced_chains(cause: Cause, ledger: Ledger) -> Mapping[str, int]:
    """The newest complete slot of each stream, for the record of a write that replaces everything.

    Called before that write looks for what to replace: files of these slots are visible by now, or gone.
    """
    if not _starts_anew(cause):
        return {}
    streams = [name for name in ledger.directory.neighbours() if name.startswith(OF_STREAMS)]
    complete = {name: ledger.beside(name).directory.listing().complete for name in streams}
    return {name: max(slots) for name, slots in complete.items() if slots}


def _starts_anew(cause: Cause) -> bool:
    return isinstance(cause, BatchWrite) and cause.mode in _ANEW


def _replaced_by(head: Head | None, ledger: Ledger) -> Section | None:
    """The newest columns below the base path if nothing is left of what this chain has written."""
    if head is None or head.record.states:
        return None  # what it holds is still to be published
    newest, slot = None, _slot_that_counts(head.record, ledger)
    for record in ledger.beside(EXCLUSIVE).history.newest_first():
        newest = newest or record
        if record.replaces.get(ledger.sink_id, -1) >= slot:
            return newest.schema
    return None


def _slot_that_counts(record: EpochRecord, ledger: Ledger) -> int:
    """Of the epoch whose state ``record`` has: an epoch that was taken back, and its end, left no files."""
    while isinstance(record.cause, TakenBack):
        before = ledger.read(record.cause.slot - 1) if record.cause.slot else None
        if before is None:
            break
        record = before
    return record.slot


def _from_bytes(section: Section) -> pa.Schema:
    if section.version != SCHEMA_VERSION:
        raise InternalError(f"columns of version {section.version} passed a version check", code="VERSION")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(section.data))
        _ = schema.names, list(map(str, schema.types))  # Arrow looks into names only when they are asked for
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise StateCorruptError("the columns in a record are malformed", code="JSON") from error
    return schema
