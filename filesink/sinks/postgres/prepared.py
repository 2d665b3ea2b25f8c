"""Rows that wait in the target itself, in prepared transactions: SeaTunnel's and XA's shape.

    task       BEGIN, COPY, its row in filesink_epochs, PREPARE TRANSACTION
    driver     *decide*
    committer  COMMIT PREPARED for each

Rules:
1. A prepared transaction that is not there has been ended by somebody. Its row, written inside, tells how: it
   is there if the transaction was committed. An error of COMMIT PREPARED alone tells nothing.
2. Which are prepared is read before the rows are: what has gone in between has its row by then.
3. Each task is committed by itself: in between, readers see a part of the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from psycopg import errors, sql

from filesink.errors import ConfigError, StagedDataLost
from filesink.sinks.postgres.committables import EpochKey, PreparedRows
from filesink.sinks.postgres.connection import Connection
from filesink.sinks.postgres.target import epochs
from filesink.sinks.postgres.target.matching import Matched
from filesink.sinks.postgres.writer import CopyIn, RowWriter

_WAITING = """
    SELECT gid, owner = current_user OR pg_catalog.current_setting('is_superuser') = 'on'
    FROM pg_catalog.pg_prepared_xacts
    WHERE database = pg_catalog.current_database() AND pg_catalog.starts_with(gid, %s)
"""


class PreparingWriter(RowWriter):
    """Copies into the target, and prepares; the arguments are those of ``RowWriter``."""

    def _begin(self, connection: Connection, matched: list[Matched]) -> CopyIn:
        target = self._epoch.target
        return CopyIn(connection, sql.Identifier(target.schema, target.table), matched, option=sql.SQL(""))

    def _end(self, connection: Connection) -> PreparedRows:
        prepared = PreparedRows(epoch=self._epoch, name=self._name, rows=self._rows)
        epochs.note(connection, self._epoch, [prepared], part=self._name)
        connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(self._name)))
        return prepared

    def _undo(self, connection: Connection) -> None:
        roll_back(connection, [self._name])


def check_enabled(connection: Connection) -> None:
    """Raise unless the server can prepare transactions.

    Raises:
        ConfigError: ``POSTGRES_PREPARED``.
    """
    found = connection.execute("SHOW max_prepared_transactions").fetchone()
    if found is None or int(found[0]) == 0:
        raise ConfigError(
            "commit='prepared' cannot work while the server has max_prepared_transactions = 0: "
            "set it to the number of tasks of all such epochs at a time, or more, and restart the server; or "
            "use commit='staged'",
            code="POSTGRES_PREPARED",
        )


def finish(connection: Connection, epoch: EpochKey, prepared: Sequence[PreparedRows]) -> None:
    """Commit what is prepared, and make sure of what is committed already.

    Raises:
        StagedDataLost: ``POSTGRES_LOST``; somebody has rolled some back.
    """
    connection.autocommit = True
    prefix = prepared[0].name.rpartition("_")[0]
    waiting = {name for name, _ in _waiting(connection, prefix)}
    _check_there(waiting | epochs.parts(connection, epoch), epoch, prepared)
    for one in prepared:
        if one.name in waiting:
            with suppress(errors.UndefinedObject):  # somebody was faster; how it ended is asked below
                connection.execute(sql.SQL("COMMIT PREPARED {}").format(sql.Literal(one.name)))
    _check_there(epochs.parts(connection, epoch), epoch, prepared)
    epochs.forget(connection, epoch)


def roll_back(connection: Connection, names: Sequence[str]) -> None:
    """End prepared transactions of attempts without a trace, those that are there."""
    connection.autocommit = True
    for name in names:
        with suppress(errors.UndefinedObject):
            connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(name)))


def names_with(connection: Connection, prefix: str) -> Iterator[str]:
    """Prepared transactions of this database whose names begin with ``prefix``, and that we may end."""
    return (name for name, is_ours in _waiting(connection, prefix) if is_ours)


def _waiting(connection: Connection, prefix: str) -> list[tuple[str, bool]]:
    """Names that begin with ``prefix``, and whether we may end that transaction."""
    return [(name, is_ours) for name, is_ours in connection.execute(_WAITING, [prefix])]


def _check_there(known: set[str], epoch: EpochKey, prepared: Sequence[PreparedRows]) -> None:
    lost = [one for one in prepared if one.name not in known]
    if lost:
        raise StagedDataLost(
            f"{sum(one.rows for one in lost)} rows of {epoch} are gone: {len(lost)} of {len(prepared)} "
            f"prepared transactions, such as {lost[0].name}, were rolled back by somebody else. The others "
            "are as they were",
            code="POSTGRES_LOST",
        )
