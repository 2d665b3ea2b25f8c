"""``filesink_epochs``: which epochs the target has; a row for each, of the transaction that moves its rows.

Rules:
1. The row is written first. Its key is unique, so of several committers one goes on, and the others wait for
   its end: then they find the row, or it is theirs to write.
2. What stands for one epoch once stands for it for ever: ``content`` is a digest of what it names. Another
   epoch of the same number, of a ledger that was begun anew, is told from it.
3. An epoch in prepared transactions has a row for each of them, written inside.
4. Whoever owns the table has a trigger on it run with our rights, so it is none of a stranger's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import LiteralString

from psycopg import sql

from filesink.errors import CommitConflictError, ConfigError
from filesink.sinks.postgres.committables import Committable, EpochKey, Target
from filesink.sinks.postgres.connection import Connection

NAME = "filesink_epochs"
_KEPT = 1_000  # rows of a stream; that of a batch write is the only one of its sink id
_LOCK = 0x66696C65  # of those who create the table at the same time
_CREATE = """
    CREATE TABLE IF NOT EXISTS {} (
        sink_id text COLLATE "C" NOT NULL, target text COLLATE "C" NOT NULL, slot bigint NOT NULL,
        part text COLLATE "C" NOT NULL, content text NOT NULL, rows bigint NOT NULL,
        committed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (sink_id, target, slot, part))
"""
_OWNER = """
    SELECT o.rolname::text, o.rolsuper OR o.oid IN (n.nspowner, d.datdba)
           OR pg_catalog.pg_has_role(o.oid, 'USAGE')
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_roles o ON o.oid = c.relowner
    JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
    WHERE n.nspname = %s AND c.relname = %s
"""
_INSERT = """
    INSERT INTO {} (sink_id, target, slot, part, content, rows) VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING
"""
_CONTENT = "SELECT content FROM {} WHERE sink_id = %s AND target = %s AND slot = %s AND part = %s"
_PARTS = "SELECT part FROM {} WHERE sink_id = %s AND target = %s AND slot = %s"
_NEWEST = "SELECT max(slot) FROM {} WHERE sink_id = %s AND target = %s"
_FORGET = "DELETE FROM {} WHERE sink_id = %s AND target = %s AND slot < %s"


def create(connection: Connection, schema: str) -> None:
    """Create the table, if it is not there. Two who create it at once would be in each other's way.

    Raises:
        ConfigError: ``POSTGRES_RIGHTS``; it is there, and somebody else's.
    """
    if _is_there(connection, schema):
        return
    connection.execute("SELECT pg_catalog.pg_advisory_xact_lock(%s)", [_LOCK])
    connection.execute(sql.SQL(_CREATE).format(_table(schema)))
    _is_there(connection, schema)


def note(
    connection: Connection, epoch: EpochKey, committables: Sequence[Committable], part: str = ""
) -> bool:
    """Write the row of ``epoch``; whether it was not there. To be undone with the transaction.

    Waits for a transaction that has written it and has not ended.

    Raises:
        CommitConflictError: ``POSTGRES_EPOCH``; the row is there, and is that of another epoch.
    """
    content, rows = content_of(committables), sum(one.rows for one in committables)
    where = [epoch.sink_id, _text(epoch.target), epoch.slot, part]
    if connection.execute(_on(_INSERT, epoch), [*where, content, rows]).rowcount:
        return True
    noted = connection.execute(_on(_CONTENT, epoch), where).fetchone()
    if noted is None or noted[0] != content:
        raise CommitConflictError(
            f"{epoch.target} has an epoch {epoch.slot} of '{epoch.sink_id}' already, and not this one: the "
            "ledger was begun anew, or two sinks have the same uid. Nothing was inserted. Bring the ledger "
            "back, or choose another uid",
            code="POSTGRES_EPOCH",
        )
    return False


def forget(connection: Connection, epoch: EpochKey) -> None:
    """Remove the rows of old epochs; a dead committer that comes with one of them finds nothing to move."""
    oldest = epoch.slot - _KEPT
    connection.execute(_on(_FORGET, epoch), [epoch.sink_id, _text(epoch.target), oldest])


def parts(connection: Connection, epoch: EpochKey) -> set[str]:
    """The parts of ``epoch`` that the target has."""
    found = connection.execute(_on(_PARTS, epoch), [epoch.sink_id, _text(epoch.target), epoch.slot])
    return {part for (part,) in found}


def newest(connection: Connection, epoch: EpochKey) -> int | None:
    """The newest slot that the target has of the sink of ``epoch``; ``None`` if it has none."""
    found = connection.execute(_on(_NEWEST, epoch), [epoch.sink_id, _text(epoch.target)]).fetchone()
    return None if found is None else found[0]


def content_of(committables: Iterable[Committable]) -> str:
    """A digest of the names in ``committables``, which are like no others."""
    names = "\n".join(sorted(one.name for one in committables))
    return hashlib.sha256(names.encode()).hexdigest()


def _on(query: LiteralString, epoch: EpochKey) -> sql.Composed:
    # In a statement with parameters psycopg reads names as well, and '%s' in one of them.
    return sql.SQL(query).format(_table(epoch.schema.replace("%", "%%")))


def _text(target: Target) -> str:
    return f"{target.schema}.{target.table}"


def _table(schema: str) -> sql.Identifier:
    return sql.Identifier(schema, NAME)


def _is_there(connection: Connection, schema: str) -> bool:
    found = connection.execute(_OWNER, [schema, NAME]).fetchone()
    if found is not None and not found[1]:
        raise ConfigError(
            f"'{NAME}' in schema '{schema}' belongs to '{found[0]}', whose triggers would run with the "
            "rights of this user: give staging_schema=, a schema in which nobody else creates tables",
            code="POSTGRES_RIGHTS",
        )
    return found is not None
