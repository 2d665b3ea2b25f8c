"""Removal of what attempts have left behind that no epoch names: tables, and prepared transactions.

Rules:
1. A stream needs no clock: once slot k is complete, nothing can be decided for a slot up to k any more.
2. A batch write removes what its own attempts have left, also if it fails. Of one that died nobody has the
   id: what it left is removed by age, by hand, unless its epoch is decided.
3. A stream that cannot go on, since what it left is in its own way, is helped in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from filesink.ledger.record import EpochRecord
from filesink.ports import Clock
from filesink.sinks.postgres import prepared, staging
from filesink.sinks.postgres.answers import answering
from filesink.sinks.postgres.committables import AttemptName, Target, parse_name, prefix_of
from filesink.sinks.postgres.connection import Connection, ask, connect, transaction
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

    def of_failed(self, batch: str) -> list[str]:
        """Remove what the batch write with the id ``batch`` has left, of which nothing is decided.

        Tries once: its caller has failed already, perhaps because the server is away.

        Raises:
            StorageError: some are still there.
        """
        prefix = f"{prefix_of(self._target, batch)}_"
        with answering("sweep"), connect(self._server) as connection:
            return self._swept(connection, prefix, lambda _: True)

    def of_dead(self, older_than_ms: int, *, streams: Iterable[str], decided: Collection[str]) -> list[str]:
        """Remove what batch writes and ``streams`` have left, but for what is ``decided``; return the names.

        Raises:
            StorageError: some are still there.
        """
        oldest = self._clock.now_ms() - older_than_ms
        prefixes = [prefix_of(self._target), *(f"{prefix_of(self._target, one)}_" for one in streams)]

        def is_dead(told: AttemptName) -> bool:
            return told.made_ms < oldest

        return [name for one in prefixes for name in self._sweep(one, is_dead, without=decided)]

    def _sweep(
        self, prefix: str, is_dead: Callable[[AttemptName], bool], *, without: Collection[str] = ()
    ) -> list[str]:
        def sweep(connection: Connection) -> list[str]:
            return self._swept(connection, prefix, is_dead, without=without)

        return ask(self._server, self._clock, "sweep", sweep)

    def _swept(
        self,
        connection: Connection,
        prefix: str,
        is_dead: Callable[[AttemptName], bool],
        *,
        without: Collection[str] = (),
    ) -> list[str]:
        def dead(name: str) -> bool:
            told = parse_name(name)
            return told is not None and is_dead(told) and name not in without

        with transaction(connection):
            tables = [name for name in staging.names_with(connection, self._schema, prefix) if dead(name)]
            in_doubt = [name for name in prepared.names_with(connection, prefix) if dead(name)]
        for name in tables:  # one by one: another sweep may be at work
            with transaction(connection):
                staging.drop(connection, self._schema, [name])
        prepared.roll_back(connection, in_doubt)
        return [*tables, *in_doubt]
