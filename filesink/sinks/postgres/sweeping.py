"""Removal of what attempts have left behind that no epoch names: tables, and prepared transactions.

Rules:
1. A stream needs no clock: once slot k is complete, nothing can be decided for a slot up to k any more.
2. A batch write removes what its own attempts have left. Of one that died nobody has the id: what it left is
   removed by age, by hand, unless its epoch is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from filesink.ledger.record import EpochRecord
from filesink.ports import Clock
from filesink.sinks.postgres import prepared, staging
from filesink.sinks.postgres.committables import AttemptName, Target, parse_name, prefix_of
from filesink.sinks.postgres.connection import Connection, ask, transaction
from filesink.sinks.postgres.settings import PostgresServer


class Sweeper:
    """Looks for attempts at one target.

    Args:
        server: where to look.
        target: of the attempts.
        schema: of their tables.
        clock: waits between tries, and tells how old something is.
    """

    def __init__(self, server: PostgresServer, target: Target, schema: str, *, clock: Clock) -> None:
        self._server = server
        self._target = target
        self._schema = schema
        self._clock = clock

    def after(self, record: EpochRecord) -> list[str]:
        """Remove what was made for slots up to that of ``record``, which is complete; return the names.

        Raises:
            StorageError: some are still there.
        """
        prefix = f"{prefix_of(self._target, record.files_of)}_"
        return self._sweep(prefix, lambda told: told.slot <= record.files_slot)

    def of_dead_batches(self, older_than_ms: int, *, decided: Collection[str]) -> list[str]:
        """Remove what batch writes have left behind, but for what is ``decided``; return the names.

        Raises:
            StorageError: some are still there.
        """
        oldest = self._clock.now_ms() - older_than_ms
        return self._sweep(prefix_of(self._target), lambda told: told.made_ms < oldest, without=decided)

    def _sweep(
        self, prefix: str, is_dead: Callable[[AttemptName], bool], *, without: Collection[str] = ()
    ) -> list[str]:
        def dead(name: str) -> bool:
            told = parse_name(name)
            return told is not None and is_dead(told) and name not in without

        def sweep(connection: Connection) -> list[str]:
            with transaction(connection):
                tables = [name for name in staging.names_with(connection, self._schema, prefix) if dead(name)]
                in_doubt = [name for name in prepared.names_with(connection, prefix) if dead(name)]
            for name in tables:  # one by one: another sweep may be at work
                with transaction(connection):
                    staging.drop(connection, self._schema, [name])
            prepared.roll_back(connection, in_doubt)
            return [*tables, *in_doubt]

        return ask(self._server, self._clock, "sweep", sweep)
