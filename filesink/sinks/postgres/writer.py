"""What a task does: one COPY, in one transaction, on one connection. How the rows wait is up to subclasses.

Rules: nothing is done before the first record comes. Until ``prepare_commit`` all is in a transaction that
the server rolls back by itself if the attempt dies; what is left behind after it bears a name of ours.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
from psycopg import sql

from filesink.api import SinkWriter, WriterContext
from filesink.errors import ConfigError, DataError
from filesink.sinks.postgres.answers import answering
from filesink.sinks.postgres.committables import Committable, EpochKey, Target, new_name
from filesink.sinks.postgres.connection import Connection, patiently, settle
from filesink.sinks.postgres.copy import wire
from filesink.sinks.postgres.settings import PostgresServer
from filesink.sinks.postgres.target.matching import Matched, match
from filesink.sinks.postgres.target.table import read_table

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 32 << 20  # bytes of a batch: of a bit become 40, and what becomes of it has offsets of 32 bits


class RowWriter(SinkWriter[None, Committable]):
    """Copies the records of one attempt.

    Args:
        server: where to.
        epoch: of the attempt.
        context: of the task.
    """

    def __init__(self, server: PostgresServer, epoch: EpochKey, context: WriterContext) -> None:
        self._server = server
        self._epoch = epoch
        self._doing = f"write the rows of a task to {epoch.target}"
        self._clock = context.clock
        self._name = new_name(epoch, ids=context.ids, now_ms=context.clock.now_ms())
        self._rows = 0
        self._open: tuple[Connection, CopyIn] | None = None

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """See ``SinkWriter.write``."""
        del context
        with answering(self._doing):
            if self._open is None:
                self._open = patiently(
                    self._server, self._clock, self._doing, lambda one: self._begun(one, batch)
                )
            self._open[1].write(batch)
        self._rows += batch.num_rows

    def prepare_commit(self, epoch: int) -> list[Committable]:
        """See ``SinkWriter.prepare_commit``; nothing without records."""
        del epoch
        if self._open is None:
            return []
        connection, copy = self._open
        with answering(self._doing):
            copy.finish()
            return [self._end(connection)]

    def abort_prepare(self) -> None:
        """See ``SinkWriter.abort_prepare``. What cannot be undone now is swept."""
        if self._open is None:
            return
        connection, copy = self._open
        with suppress(psycopg.Error):
            copy.abort()
            connection.rollback()
            self._undo(connection)

    def close(self) -> None:
        """See ``SinkWriter.close``."""
        if self._open is not None:
            self._open[0].close()

    def _begun(self, connection: Connection, batch: pa.RecordBatch) -> tuple[Connection, CopyIn]:
        try:
            settle(connection)
            matched = _match(connection, batch.schema, self._epoch.target)
            return connection, self._begin(connection, matched)
        except BaseException:
            connection.close()
            raise

    @abstractmethod
    def _begin(self, connection: Connection, matched: list[Matched]) -> CopyIn:
        """A COPY of rows with the columns ``matched``, in the transaction that has begun."""

    @abstractmethod
    def _end(self, connection: Connection) -> Committable:
        """End the transaction so that its rows are durable; what names them."""

    @abstractmethod
    def _undo(self, connection: Connection) -> None:
        """Remove what ``_end`` may have made durable."""


class CopyIn:
    """A COPY that takes record batches.

    Args:
        connection: in a transaction.
        table: to copy into.
        matched: its columns, in the order of those of the batches.
        option: a further one of COPY, in SQL.
    """

    def __init__(
        self, connection: Connection, table: sql.Identifier, matched: list[Matched], *, option: sql.SQL
    ) -> None:
        names = sql.SQL(", ").join(sql.Identifier(one.column.name) for one in matched)
        statement = sql.SQL("COPY {} ({}) FROM STDIN WITH (FORMAT binary{})").format(table, names, option)
        self._matched = matched
        self._end = ExitStack()
        self._copy = self._end.enter_context(connection.cursor().copy(statement))
        self._copy.write(wire.START)

    def write(self, batch: pa.RecordBatch) -> None:
        """Send the records of ``batch``."""
        for piece in _pieces(batch):
            fields = [_field(one, column) for one, column in zip(self._matched, piece.columns, strict=True)]
            self._copy.write(memoryview(wire.rows(fields, piece.num_rows)))

    def finish(self) -> None:
        """Have the server take all that was sent."""
        self._copy.write(wire.END)
        self._end.close()

    def abort(self) -> None:
        """Have the server forget it; does nothing after ``finish``."""
        self._end.__exit__(InterruptedError, InterruptedError("the attempt was given up"), None)


def _match(connection: Connection, schema: pa.Schema, target: Target) -> list[Matched]:
    table = read_table(connection, target.schema, target.table)
    if table is None:
        raise ConfigError(
            f"{target} has gone while it was written to; create it, then start again", code="POSTGRES_TABLE"
        )
    return match(schema, table, target)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= _AT_ONCE or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _field(matched: Matched, column: pa.Array[Any]) -> wire.Field:
    try:
        return matched.to_field(column)
    except (pa.ArrowException, ValueError):  # whose text may hold the value
        name, kind = matched.column.name, matched.column.type.text
        raise DataError(
            f"column {name!r} has a value that {kind} of PostgreSQL cannot have: correct it, or make it null",
            code="POSTGRES_VALUE",
        ) from None
