"""Rows that wait in tables of their own, and the one transaction that moves those of an epoch.

    task       CREATE TABLE, COPY, COMMIT        rolled back by the server if the attempt dies before
    driver     *decide*
    committer  BEGIN, epoch row, INSERT … SELECT or changes, DROP TABLE, COMMIT

Rules:
1. The tables are logged ones: an unlogged one is emptied by a crash of the server after *decide*.
2. Tables go with the transaction that moves their rows. So rows are either where they wait or where they
   belong, and no replay can move them twice, with or without its row in ``filesink_epochs``.
3. The epoch's row comes first, see ``epochs``. If it is new and a table is missing, rows are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from psycopg import sql

from filesink.api import WriterContext
from filesink.errors import StagedDataLost
from filesink.sinks.postgres.committables import EpochKey, StagedRows
from filesink.sinks.postgres.connection import Connection, settle, transaction
from filesink.sinks.postgres.target import changing, epochs
from filesink.sinks.postgres.target.inserting import Source, insert
from filesink.sinks.postgres.target.matching import Matched
from filesink.sinks.postgres.target.table import create_like
from filesink.sinks.postgres.writer import CopyIn, RowWriter

_COLUMNS = """
    SELECT c.relname, pg_catalog.array_agg(a.attname::text ORDER BY a.attnum)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname = ANY (%s) GROUP BY c.relname
"""
_BY_PREFIX = """
    SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind = 'r' AND pg_catalog.starts_with(c.relname::text, %s)
      AND pg_catalog.pg_has_role(c.relowner, 'USAGE')
"""


class StagingWriter(RowWriter):
    """Copies into a table of the attempt's own; the arguments are those of ``RowWriter``."""

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """See ``SinkWriter.write``."""
        if self._epoch.target.row_kind:
            changing.check_kinds(batch, self._epoch.target)
        super().write(batch, context)

    def _begin(self, connection: Connection, matched: list[Matched]) -> CopyIn:
        table = sql.Identifier(self._epoch.schema, self._name)
        columns, checks = [one.column for one in matched], list[sql.Composable]()
        if self._epoch.target.row_kind:
            columns, checks = changing.checks_of(self._epoch.target, columns)
        connection.execute(create_like(table, columns, checks))
        # Nobody sees the table before it is committed, so its rows need no marks for later readers.
        return CopyIn(connection, table, matched, option=sql.SQL(", FREEZE"))

    def _end(self, connection: Connection) -> StagedRows:
        connection.commit()
        return StagedRows(epoch=self._epoch, name=self._name, rows=self._rows)

    def _undo(self, connection: Connection) -> None:
        with transaction(connection):
            drop(connection, self._epoch.schema, [self._name])


def move(connection: Connection, epoch: EpochKey, staged: Sequence[StagedRows]) -> None:
    """Move the rows of an epoch into its target, unless that is done.

    Raises:
        StagedDataLost: the target does not have the epoch, and rows of it are gone.
        CommitConflictError: see ``epochs.note``.
    """
    with transaction(connection):
        if not epochs.note(connection, epoch, staged):
            return
        epochs.forget(connection, epoch)
        _fill(connection, epoch, staged)
        drop(connection, epoch.schema, [one.name for one in staged])


def rehearse(connection: Connection, epoch: EpochKey, staged: Sequence[StagedRows]) -> None:
    """Do what ``move`` will do with the target, and take it back. Raises what ``move`` would."""
    with connection.transaction(force_rollback=True):
        settle(connection)
        _fill(connection, epoch, staged)
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _fill(connection: Connection, epoch: EpochKey, staged: Sequence[StagedRows]) -> None:
    found = sources(connection, epoch, staged)
    if epoch.target.row_kind:
        # Like the name of a table of this epoch, and of nothing else.
        last = sql.Identifier(epoch.schema, staged[0].name.replace("filesink", "lastsink", 1))
        changing.apply(connection, epoch.target, found, last=last)
    else:
        insert(connection, epoch.target, found)


def drop(connection: Connection, schema: str, names: Sequence[str]) -> None:
    """Remove tables of attempts, those that are there."""
    tables = sql.SQL(", ").join(sql.Identifier(schema, name) for name in names)
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(tables))


def names_with(connection: Connection, schema: str, prefix: str) -> Iterator[str]:
    """Tables whose names begin with ``prefix``, but those of strangers, which are not ours to drop."""
    for (name,) in connection.execute(_BY_PREFIX, [schema, prefix]).fetchall():
        yield name


def sources(connection: Connection, epoch: EpochKey, staged: Sequence[StagedRows]) -> list[Source]:
    """The tables of ``staged``.

    Raises:
        StagedDataLost: ``POSTGRES_LOST``; one is not there.
    """
    names = [one.name for one in staged]
    columns: dict[str, list[str]] = dict(connection.execute(_COLUMNS, [epoch.schema, names]).fetchall())
    lost = [one for one in staged if one.name not in columns]
    if lost:
        raise StagedDataLost(
            f"{sum(one.rows for one in lost)} rows of {epoch} are gone: {len(lost)} of {len(staged)} tables "
            f"in schema '{epoch.schema}', such as {lost[0].name}, are not there. Nothing was inserted. Bring "
            "them back from a backup",
            code="POSTGRES_LOST",
        )
    return [
        Source(table=sql.Identifier(epoch.schema, one.name), columns=tuple(columns[one.name]), rows=one.rows)
        for one in staged
    ]
