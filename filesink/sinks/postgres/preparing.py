"""What is looked at on the driver before anything is written, and created if it may be.

Rules: columns are altered by ``fitting``, when all earlier epochs are in the table, since they have the
columns that it had. So what is compared here is the table as it will be.
"""

from __future__ import annotations

import pyarrow as pa
from psycopg import sql

from filesink.errors import ConfigError
from filesink.ports import Clock
from filesink.sinks.postgres.committables import Target
from filesink.sinks.postgres.connection import Connection, ask, transaction
from filesink.sinks.postgres.copy.types import new_type
from filesink.sinks.postgres.prepared import check_enabled
from filesink.sinks.postgres.settings import Commit, Missing, OnSchemaChange, PostgresServer, PostgresTable
from filesink.sinks.postgres.target import epochs
from filesink.sinks.postgres.target.altering import Named, altered, plan
from filesink.sinks.postgres.target.matching import check_keys, check_names, match
from filesink.sinks.postgres.target.table import Table, is_same, may_create, read_table

_OLDEST = 13  # version of the server


def prepare(
    server: PostgresServer, table: PostgresTable, target: Target, *, schema: pa.Schema, clock: Clock
) -> None:
    """Check everything that can be known to be wrong before data is read.

    Raises:
        ConfigError: ``POSTGRES_VERSION``, ``POSTGRES_RIGHTS``, ``POSTGRES_PREPARED``, ``POSTGRES_TABLE`` or
            ``POSTGRES_KEYS``.
        SchemaError: see ``matching.check_names`` and ``matching.match``; ``TYPE``, of a column that is to
            be created.
        StorageError: the server does not answer, or refuses.
    """
    check_names(schema)
    ask(server, clock, f"look at {target}", lambda one: _prepare(one, table, target, schema))


def _prepare(connection: Connection, table: PostgresTable, target: Target, schema: pa.Schema) -> None:
    version = connection.info.server_version // 10_000
    if version < _OLDEST:
        raise ConfigError(
            f"the server is PostgreSQL {version}, and this needs {_OLDEST} or newer", code="POSTGRES_VERSION"
        )
    with transaction(connection):
        if Commit(table.commit) is Commit.PREPARED:
            check_enabled(connection)
        _check_schema(connection, table.staging)
        found = will_be(_found(connection, table, target, schema), table, target, schema)
        check_keys(match(schema, found, target), found, target)
        epochs.create(connection, table.staging)


def will_be(found: Table, table: PostgresTable, target: Target, schema: pa.Schema) -> Table:
    """The table as it is before the first epoch with ``schema``.

    Raises:
        SchemaError: see ``altering.plan``.
        ConfigError: ``POSTGRES_RIGHTS``; it would have to be altered, and is somebody else's.
    """
    if OnSchemaChange(table.on_schema_change) is OnSchemaChange.REFUSE:
        return found
    alterations = plan(schema, found, target, named_by(table))
    if alterations and not found.may_alter:
        raise ConfigError(
            f"{target} has to be altered for the columns of the DataFrame, which only its owner may: make a "
            "role that the user of PostgreSQL is in its owner, or alter it yourself",
            code="POSTGRES_RIGHTS",
        )
    return altered(found, alterations)


def named_by(table: PostgresTable) -> Named:
    """What the user has said of columns."""
    return Named(renamed=table.renamed, dropped=table.dropped)


def _found(connection: Connection, table: PostgresTable, target: Target, schema: pa.Schema) -> Table:
    found = read_table(connection, target.schema, target.table)
    if found is None and Missing(table.on_missing) is Missing.CREATE:
        connection.execute(_create(target, schema))
        found = read_table(connection, target.schema, target.table)
    if found is None:
        raise ConfigError(
            f"there is no table {target} that rows can be inserted into: create it, or let the sink do so "
            "with on_missing='create'",
            code="POSTGRES_TABLE",
        )
    return found


def _create(target: Target, schema: pa.Schema) -> sql.Composed:
    columns: list[sql.Composable] = [
        sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(new_type(one)))
        for one in schema
        if not (target.row_kind and is_same(one.name, target.row_kind))
    ]
    if target.keys:
        keys = sql.SQL(", ").join(map(sql.Identifier, target.keys))
        columns.append(sql.SQL("PRIMARY KEY ({})").format(keys))
    # Another driver may create it at the same moment.
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
        sql.Identifier(target.schema, target.table), sql.SQL(", ").join(columns)
    )


def _check_schema(connection: Connection, schema: str) -> None:
    if not may_create(connection, schema):
        raise ConfigError(
            f"the user of PostgreSQL may not create tables in schema '{schema}', or there is none: GRANT "
            "CREATE, USAGE ON SCHEMA to it, or give staging_schema=, one for the tables of this sink",
            code="POSTGRES_RIGHTS",
        )
