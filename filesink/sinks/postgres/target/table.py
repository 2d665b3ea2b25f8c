"""The target as the server's catalog describes it: columns, unique keys, what may refuse a row, rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.rows import dict_row

from filesink.sinks.postgres.connection import Connection
from filesink.sinks.postgres.copy.types import SqlType

_KINDS = ("r", "p")  # tables, and those with partitions
_TABLE = """
    SELECT c.oid, c.relkind,
           c.relhastriggers OR c.relhasrules OR c.relrowsecurity OR c.relkind = 'p' OR c.relispartition
           OR EXISTS (SELECT FROM pg_catalog.pg_constraint k
                      WHERE k.conrelid = c.oid AND k.contype NOT IN ('n', 'p', 'u')) AS guarded,
           (SELECT count(*) FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique) AS indexes,
           pg_catalog.has_table_privilege(c.oid, 'DELETE')
           AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),
           pg_catalog.pg_has_role(c.relowner, 'USAGE')
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
"""
# Below a domain is the type that it restricts; below an array, that of its elements.
_COLUMNS = """
    SELECT a.attname AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS text,
           CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS modifier,
           coalesce(e.oid::bigint, 0) AS element,
           CASE WHEN s.typtype = 'e' THEN 'enum'
                WHEN s.typname = 'citext' OR n.nspname = 'pg_catalog' THEN s.typname ELSE '' END AS base,
           a.attnotnull OR t.typnotnull AS required, a.atthasdef OR a.attidentity <> '' AS has_default,
           a.attgenerated <> '' OR a.attidentity = 'a' AS generated,
           on_schema.nspname AS collation_schema, o.collname AS collation,
           pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT') AS may_insert,
           pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'UPDATE')
           AND pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') AS may_update
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
    LEFT JOIN pg_catalog.pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
    JOIN pg_catalog.pg_type s ON s.oid = coalesce(e.oid, b.oid)
    JOIN pg_catalog.pg_namespace n ON n.oid = s.typnamespace
    LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation AND o.collname <> 'default'
    LEFT JOIN pg_catalog.pg_namespace on_schema ON on_schema.oid = o.collnamespace
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# Columns of unique indexes that ON CONFLICT can name, none of which takes a null.
_KEYS = """
    SELECT pg_catalog.array_agg(a.attname::text) FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_attribute a
      ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = %s AND i.indisunique AND i.indimmediate AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL
    GROUP BY i.indexrelid HAVING bool_and(a.attnotnull)
"""
_MAY_CREATE = """
    SELECT pg_catalog.has_schema_privilege(oid, 'CREATE') FROM pg_catalog.pg_namespace WHERE nspname = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the target.

    Attributes:
        is_required: whether a row without a value for it is refused.
        has_default: whether a row that does not name it gets one.
        is_generated: whether the server alone gives its values.
        collation: schema and name, where it is not the default.
    """

    name: str
    type: SqlType
    is_required: bool
    has_default: bool
    is_generated: bool
    collation: tuple[str, str] | None
    may_insert: bool
    may_update: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The target.

    Attributes:
        unique: the columns of each key that ``ON CONFLICT`` can name.
        indexes: how many unique indexes it has.
        is_guarded: whether it has anything else that could refuse a row of the right types: a constraint,
            a trigger, a rule, a policy, partitions.
        may_delete: whether we may look for rows and remove them.
        may_alter: whether it is ours, or that of a role of ours.
    """

    columns: tuple[Column, ...]
    unique: tuple[frozenset[str], ...]
    indexes: int
    is_guarded: bool
    may_delete: bool
    may_alter: bool


def read_table(connection: Connection, schema: str, table: str) -> Table | None:
    """The table; ``None`` if there is none of this name that rows can be inserted into."""
    found = connection.execute(_TABLE, [schema, table]).fetchone()
    if found is None or found[1] not in _KINDS:
        return None
    oid, _, is_guarded, indexes, may_delete, may_alter = found
    columns = connection.cursor(row_factory=dict_row).execute(_COLUMNS, [oid])
    return Table(
        columns=tuple(map(_column, columns)),
        unique=tuple(frozenset(names) for (names,) in connection.execute(_KEYS, [oid])),
        indexes=indexes,
        is_guarded=is_guarded,
        may_delete=may_delete,
        may_alter=may_alter,
    )


def find(name: str, table: Table) -> Column | None:
    """The column that ``name`` means: exactly, else by Spark's rule regardless of case."""
    exact = [column for column in table.columns if column.name == name]
    found = exact or [column for column in table.columns if is_same(column.name, name)]
    return found[0] if len(found) == 1 else None


def is_same(one: str, other: str) -> bool:
    """Whether Spark takes both for the name of one column."""
    return one.lower() == other.lower()


def may_create(connection: Connection, schema: str) -> bool:
    """Whether there is such a schema, and we may create tables in it."""
    found = connection.execute(_MAY_CREATE, [schema]).fetchone()
    return found is not None and bool(found[0])


def create_like(
    name: sql.Identifier, columns: Sequence[Column], checks: Sequence[sql.Composable] = ()
) -> sql.Composed:
    """The statement that creates a table with ``columns`` of the target, for rows on their way to it."""
    # Nobody reads it but the one move that ends it.
    return sql.SQL("CREATE TABLE {} ({}) WITH (autovacuum_enabled = false)").format(
        name, sql.SQL(", ").join([*map(_definition, columns), *checks])
    )


def _definition(column: Column) -> sql.Composed:
    # The type's text is the server's, which has quoted what needs it.
    parts: list[sql.Composable] = [sql.Identifier(column.name), sql.SQL(column.type.text)]
    if column.collation is not None:
        parts += [sql.SQL("COLLATE"), sql.Identifier(*column.collation)]
    if column.is_required:
        parts.append(sql.SQL("NOT NULL"))
    return sql.SQL(" ").join(parts)


def _column(row: Mapping[str, Any]) -> Column:
    kind = SqlType(**{name: row[name] for name in ("text", "base", "modifier", "element")})
    is_default = row["collation"] is None
    return Column(
        name=row["name"],
        type=kind,
        is_required=row["required"],
        has_default=row["has_default"],
        is_generated=row["generated"],
        collation=None if is_default else (row["collation_schema"], row["collation"]),
        may_insert=row["may_insert"],
        may_update=row["may_update"],
    )
