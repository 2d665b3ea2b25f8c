"""How a table follows the columns of a DataFrame: what is altered, and what the table is then.

Rules:
1. Nothing is guessed. Columns that are new are added and types grow, since that loses nothing; a column is
   renamed or dropped only if the user has named it.
2. The plan is made by a look at the table. After a crash the same look finds what is left to do, if anything.
3. The kinds of changes are no column of the table, and their order is one only if it was from the start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from psycopg import sql

from filesink.errors import SchemaError
from filesink.sinks.postgres.committables import Target
from filesink.sinks.postgres.copy.types import SqlType, is_wider, new_sql_type, to_field
from filesink.sinks.postgres.target.inserting import table_of
from filesink.sinks.postgres.target.matching import new_column, waits_only
from filesink.sinks.postgres.target.table import Column, Table, find, is_same


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column that the table lacks, null in the rows that are there."""

    column: Column


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A column gets a type that has all values of its own."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column keeps its values under another name."""

    name: str
    new: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column goes, with its values."""

    name: str


Alteration = AddColumn | WidenColumn | RenameColumn | DropColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the user has said of columns; see ``PostgresTable``."""

    renamed: Mapping[str, str]
    dropped: Collection[str]

    def explains(self, name: str) -> bool:
        """Whether a column of the DataFrame may have gone."""
        return any(is_same(name, one) for one in (*self.renamed, *self.dropped))


def plan(schema: pa.Schema, table: Table, target: Target, named: Named) -> list[Alteration]:
    """What has to be done to ``table``, in this order, so that it takes rows of ``schema``.

    What cannot be done is left out: ``match`` refuses it.

    Raises:
        SchemaError: ``SCHEMA_CHANGE``, what the user has named is not so; ``TYPE``, as ``new_type``.
    """
    found: list[Alteration] = [*_renamed(schema, table, named), *_dropped(schema, table, named)]
    table = altered(table, found)
    return [*found, *_fitted(schema, table, target)]


def altered(table: Table, alterations: Iterable[Alteration]) -> Table:
    """The table when ``alterations`` are done."""
    for one in alterations:
        table = replace(table, columns=tuple(_columns(table, one)), unique=tuple(_unique(table, one)))
    return table


def statement(target: Target, alteration: Alteration) -> sql.Composed:
    """``alteration`` in SQL."""
    return sql.SQL("ALTER TABLE {} {}").format(table_of(target), _action(alteration))


def _action(alteration: Alteration) -> sql.Composed:
    match alteration:
        case AddColumn(column=column):
            # As in a list of columns: what needs it has been quoted, and it takes nulls.
            return sql.SQL("ADD COLUMN {} {}").format(sql.Identifier(column.name), sql.SQL(column.type.text))
        case WidenColumn(name=name, type=wider):
            return sql.SQL("ALTER COLUMN {} TYPE {}").format(sql.Identifier(name), sql.SQL(wider.text))
        case RenameColumn(name=name, new=new):
            return sql.SQL("RENAME COLUMN {} TO {}").format(sql.Identifier(name), sql.Identifier(new))
        case DropColumn(name=name):
            return sql.SQL("DROP COLUMN {}").format(sql.Identifier(name))


def check_gone(old: pa.Schema, new: pa.Schema, named: Named) -> None:
    """Raise unless every column of ``old`` is in ``new``, or the user has said what became of it.

    Raises:
        SchemaError: ``SCHEMA_CHANGE``.
    """
    gone = [name for name in old.names if not _has(new, name) and not named.explains(name)]
    if gone:
        raise SchemaError(
            f"column {gone[0]!r} was in the last epoch and is not in this one: dropped, or renamed? Say so, "
            f"with dropped=[{gone[0]!r}] or renamed={{{gone[0]!r}: …}}; or keep it, as a column of nulls",
            code="SCHEMA_CHANGE",
        )


def _renamed(schema: pa.Schema, table: Table, named: Named) -> Iterable[RenameColumn]:
    for name, new in named.renamed.items():
        _check_not_there(schema, name, f"renamed to {new!r}")
        old = find(name, table)
        if old is None or not _has(schema, new):
            continue
        if find(new, table) is not None:
            raise SchemaError(
                f"column {name!r} is to be renamed to {new!r}, and the table has both: move the values "
                "yourself, drop one of them, and take it out of renamed",
                code="SCHEMA_CHANGE",
            )
        yield RenameColumn(old.name, new)


def _dropped(schema: pa.Schema, table: Table, named: Named) -> Iterable[DropColumn]:
    for name in named.dropped:
        _check_not_there(schema, name, "dropped")
        column = find(name, table)
        if column is not None:
            yield DropColumn(column.name)


def _fitted(schema: pa.Schema, table: Table, target: Target) -> Iterable[Alteration]:
    for field in schema:
        if waits_only(field.name, table, target) is not None:
            continue
        column = find(field.name, table)
        if column is None:
            if not any(is_same(one.name, field.name) for one in table.columns):
                yield AddColumn(new_column(field, field.name))
        elif to_field(field.type, column.type) is None:
            wider = new_sql_type(field)
            if is_wider(wider, column.type):
                yield WidenColumn(column.name, wider)


def _columns(table: Table, alteration: Alteration) -> Iterable[Column]:
    for column in table.columns:
        match alteration:
            case DropColumn(name=name) if name == column.name:
                continue
            case RenameColumn(name=name, new=new) if name == column.name:
                yield replace(column, name=new)
            case WidenColumn(name=name, type=wider) if name == column.name:
                yield replace(column, type=wider)
            case _:
                yield column
    if isinstance(alteration, AddColumn):
        yield alteration.column


def _unique(table: Table, alteration: Alteration) -> Iterable[frozenset[str]]:
    for names in table.unique:
        match alteration:
            case RenameColumn(name=name, new=new) if name in names:
                yield names - {name} | {new}
            case DropColumn(name=name) if name in names:
                continue
            case _:
                yield names


def _check_not_there(schema: pa.Schema, name: str, said: str) -> None:
    if _has(schema, name):
        raise SchemaError(
            f"column {name!r} is to be {said}, and the DataFrame still has it, or has it again: take it out "
            "of the DataFrame, or of what is said of the table",
            code="SCHEMA_CHANGE",
        )


def _has(schema: pa.Schema, name: str) -> bool:
    return any(is_same(name, one) for one in schema.names)
