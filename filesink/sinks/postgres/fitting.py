"""Columns of the table follow those of the DataFrame, between two epochs.

    the last epoch is in the table ─▶ ALTER TABLE ─▶ tasks of the next one ─▶ *decide* ─▶ its rows

Rules:
1. All of it is one transaction, and what is to be done follows from a look at the table, which is locked.
   So a driver may die before or after it: the next one finds the table as it was, or nothing left to do.
2. An epoch that is decided and not yet in the table has the columns of before, and comes first.
3. The core compares the columns of a stream's epochs, but not those of batch writes, which do not depend on
   each other. They are compared here: a table that follows them loses no column in silence either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa
from psycopg import sql

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.ports import Clock
from filesink.sinks.postgres.committables import OF_BATCH, Committable, Target
from filesink.sinks.postgres.connection import Connection, ask, transaction
from filesink.sinks.postgres.preparing import named_by
from filesink.sinks.postgres.settings import PostgresServer, PostgresTable
from filesink.sinks.postgres.target.altering import Alteration, plan, statement
from filesink.sinks.postgres.target.table import read_table

log = logging.getLogger("filesink")


class FitTable(PreCommitStage[None, Committable]):
    """Alters the table before the tasks of an epoch whose columns it does not have.

    Args:
        server: where the table is.
        table: what is written to, and how.
        target: the same, as it goes on record.
        check_batch: raises unless a batch write with these columns may come after the last one.
        clock: waits between tries.
    """

    def __init__(
        self,
        server: PostgresServer,
        table: PostgresTable,
        target: Target,
        *,
        check_batch: Callable[[pa.Schema], object],
        clock: Clock,
    ) -> None:
        self._check_batch = check_batch
        self._server = server
        self._table = table
        self._target = target
        self._clock = clock
        self._fitted: pa.Schema | None = None

    def begin(self, epoch: EpochContext) -> None:
        """See ``PreCommitStage.begin``; looks again if the columns of the input are others.

        Raises:
            SchemaError: see ``altering.plan``; of a batch write, see ``altering.check_gone``.
            StorageError: the server does not answer, or refuses; the table is as it was.
        """
        schema = epoch.schema
        if schema is None or schema == self._fitted:
            return
        if epoch.sink_id.startswith(OF_BATCH):
            self._check_batch(schema)
        done = ask(self._server, self._clock, f"alter {self._target}", lambda one: self._fit(one, schema))
        self._fitted = schema
        for alteration in done:
            log.info("done before epoch %s: %s", epoch.slot, statement(self._target, alteration).as_string())

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[None, Committable]
    ) -> Prepared[None, Committable]:
        """See ``PreCommitStage.prepare``."""
        del epoch
        return prepared

    def _fit(self, connection: Connection, schema: pa.Schema) -> Sequence[Alteration]:
        with transaction(connection):
            if not self._planned(connection, schema):
                return ()
        with transaction(connection):
            lock = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE")
            connection.execute(lock.format(sql.Identifier(self._target.schema, self._target.table)))
            alterations = self._planned(connection, schema)  # another driver may have been faster
            for one in alterations:
                connection.execute(statement(self._target, one))
        return alterations

    def _planned(self, connection: Connection, schema: pa.Schema) -> list[Alteration]:
        table = read_table(connection, self._target.schema, self._target.table)
        return [] if table is None else plan(schema, table, self._target, named_by(self._table))
