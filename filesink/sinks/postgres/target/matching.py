"""Columns of a DataFrame and of the target, matched by name. Pure.

a name that no column can have                 refused before anything is created
no such column, generated, or no right to it   refused
that of the kinds of changes, or of their order  waits with the row; of kinds never goes into the target
a column of the target that is missing         gets its default or null; refused if it has to have a value
a type that does not take all of the other     refused, see ``copy.types``
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from filesink.errors import ConfigError, SchemaError
from filesink.sinks.postgres.committables import Target
from filesink.sinks.postgres.copy.fields import ToField
from filesink.sinks.postgres.copy.types import advice, new_sql_type, spark_name, to_field
from filesink.sinks.postgres.target.table import Column, Table, find, is_same
from formats.arguments import is_text

_LONGEST = 63  # bytes of a name; the server would cut a longer one


@dataclass(frozen=True, slots=True)
class Matched:
    """Where a column of the DataFrame goes, and how its values get there."""

    column: Column
    to_field: ToField


def check_names(schema: pa.Schema) -> None:
    """Raise unless columns of PostgreSQL can have the names of ``schema``.

    Raises:
        SchemaError: ``COLUMN_NAME``.
    """
    for name in schema.names:
        if "\0" in name or not is_text(name) or not 1 <= len(name.encode()) <= _LONGEST:
            raise SchemaError(
                f"no column of PostgreSQL can be named {name!r}: names have 1 to {_LONGEST} bytes, and no "
                "U+0000. Rename it in the DataFrame",
                code="COLUMN_NAME",
            )


def match(schema: pa.Schema, table: Table, target: Target) -> list[Matched]:
    """The columns of ``schema`` in their order.

    Raises:
        SchemaError: ``UNKNOWN_COLUMN``, ``MISSING_COLUMN`` or ``TYPE``.
        ConfigError: ``POSTGRES_RIGHTS``.
    """
    matched = [_matched(field, table, target) for field in schema]
    written = [one.column.name for one in matched]
    if len(set(written)) != len(written) or not written:
        raise SchemaError(
            f"the columns of the DataFrame must be at least one, and each another one of {target}",
            code="UNKNOWN_COLUMN",
        )
    for column in table.columns:
        if column.is_required and not column.has_default and column.name not in written:
            raise SchemaError(
                f"column {column.name!r} of {target} is NOT NULL, has no default, and the DataFrame has no "
                "such column: add it",
                code="MISSING_COLUMN",
            )
    return matched


def check_keys(matched: list[Matched], table: Table, target: Target) -> None:
    """Raise unless rows can be told apart by the keys of ``target``, if it has any.

    Raises:
        SchemaError: ``UNKNOWN_COLUMN``, the DataFrame lacks one.
        ConfigError: ``POSTGRES_KEYS``, there is no unique index of these columns; ``POSTGRES_RIGHTS``.
    """
    if not target.keys:
        return
    written = {one.column.name for one in matched}
    needed = (*target.keys, target.newest_by, target.row_kind)
    lacking = next((name for name in needed if name and name not in written), None)
    if lacking is not None:
        raise SchemaError(
            f"keys, newest_by or row_kind name {lacking!r}, and no column of the DataFrame goes there",
            code="UNKNOWN_COLUMN",
        )
    if frozenset(target.keys) not in table.unique:
        names = ", ".join(target.keys)
        raise ConfigError(
            f"{target} has no unique index of exactly the columns ({names}), all NOT NULL: create one, as in "
            f"ALTER TABLE {target} ADD PRIMARY KEY ({names})",
            code="POSTGRES_KEYS",
        )
    _check_rights([one.column for one in matched if one.column.name not in target.keys], target)
    if target.row_kind and not table.may_delete:
        raise ConfigError(
            f"the rows of {target} may not be deleted by the user of PostgreSQL, which changes need: GRANT "
            "SELECT, DELETE to it",
            code="POSTGRES_RIGHTS",
        )


def waits_only(name: str, table: Table, target: Target) -> str | None:
    """The name of ``row_kind`` or ``newest_by``, if ``name`` is it and does not go into ``table``."""
    if not target.row_kind:
        return None
    if is_same(name, target.row_kind):
        return target.row_kind
    is_order = target.newest_by and is_same(name, target.newest_by) and find(name, table) is None
    return target.newest_by if is_order else None


def new_column(field: pa.Field[pa.DataType], name: str) -> Column:
    """A column of ours for values of ``field``; text is compared by its bytes."""
    kind = new_sql_type(field)
    return Column(
        name=name,
        type=kind,
        is_required=False,
        has_default=False,
        is_generated=False,
        collation=("pg_catalog", "C") if kind.base == "text" else None,
        may_insert=True,
        may_update=True,
    )


def _matched(field: pa.Field[pa.DataType], table: Table, target: Target) -> Matched:
    own = waits_only(field.name, table, target)
    if own is not None:
        return _waiting(field, own, target)
    column = find(field.name, table)
    if column is None or column.is_generated:
        problem = "is generated by the server" if column else "is not there, or not by one name alone"
        raise SchemaError(
            f"column {field.name!r} of the DataFrame {problem} in {target}: drop it, or change the table",
            code="UNKNOWN_COLUMN",
        )
    if not column.may_insert:
        raise ConfigError(
            f"the user of PostgreSQL may not insert into {column.name!r} of {target}: GRANT INSERT to it",
            code="POSTGRES_RIGHTS",
        )
    found = to_field(field.type, column.type)
    if found is None:
        raise SchemaError(
            f"column {column.name!r} of {target} is {column.type.text} and does not take every "
            f"{spark_name(field.type)}: {advice(field.type)}",
            code="TYPE",
        )
    return Matched(column, found)


def _waiting(field: pa.Field[pa.DataType], name: str, target: Target) -> Matched:
    column = new_column(field, name)
    found = to_field(field.type, column.type)
    if found is None or (name == target.row_kind and column.type.base != "text"):
        raise SchemaError(
            f"column {name!r} is {spark_name(field.type)}, which cannot say what a row does to {target}, or "
            "when: kinds of changes are STRING, and their order is of a type with a greatest value",
            code="TYPE",
        )
    return Matched(column, found)


def _check_rights(updated: list[Column], target: Target) -> None:
    refused = next((column.name for column in updated if not column.may_update), None)
    if refused is not None:
        raise ConfigError(
            f"the user of PostgreSQL may not update {refused!r} of {target}, which a table with keys needs: "
            "GRANT SELECT, UPDATE to it",
            code="POSTGRES_RIGHTS",
        )
