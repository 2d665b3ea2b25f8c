"""Removal of what attempts have left behind that no epoch names: tables, and prepared transactions.

By name alone, without a clock: once slot k is complete, nothing can be decided for a slot up to k any more.
"""

from __future__ import annotations

from filesink.ledger.record import EpochRecord
from filesink.ports import Clock
from filesink.sinks.postgres import prepared, staging
from filesink.sinks.postgres.committables import Target, parse_name, tag_of
from filesink.sinks.postgres.connection import Connection, ask, transaction
from filesink.sinks.postgres.settings import PostgresServer


def sweep(server: PostgresServer, record: EpochRecord, *, target: Target, schema: str, clock: Clock) -> int:
    """Remove what was made for slots up to that of ``record``, which is complete; how many pieces.

    Args:
        server: where to look.
        record: the newest one.
        target: of the sink.
        schema: of the tables of attempts.
        clock: waits between tries.

    Raises:
        StorageError: some are still there.
    """
    tag, slot = tag_of(record.files_of, target), record.files_slot
    return ask(
        server, clock, "sweep", lambda connection: _sweep(connection, schema, f"filesink_{tag}_", slot)
    )


def _sweep(connection: Connection, schema: str, prefix: str, slot: int) -> int:
    with transaction(connection):
        tables = [name for name in staging.names_with(connection, schema, prefix) if _is_dead(name, slot)]
        in_doubt = [name for name in prepared.names_with(connection, prefix) if _is_dead(name, slot)]
    for name in tables:  # one by one: another sweep may be at work
        with transaction(connection):
            staging.drop(connection, schema, [name])
    prepared.roll_back(connection, in_doubt)
    return len(tables) + len(in_doubt)


def _is_dead(name: str, slot: int) -> bool:
    told = parse_name(name)
    return told is not None and told.slot <= slot
