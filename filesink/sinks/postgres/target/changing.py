"""The statements that apply changes which wait to the target: its rows are updated and deleted by keys.

Rules:
1. Of all changes of a key in an epoch the last one counts, by ``newest_by``; an epoch follows another one.
2. ``-U`` says that a row has lost its key. At the same order it comes before whatever else there is of that
   key: so it means nothing beside the ``+U`` of the same key, and is a delete if the key has changed.
3. If ``newest_by`` is a column of the target, too, a change that is older than the row there does nothing.
   Of a row that was deleted nothing is left to compare with.
4. Rows are deleted before others come: one of these may have what was unique in those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_a
from psycopg import sql

from filesink.errors import DataError
from filesink.row_kind import RowKind
from filesink.sinks.postgres.committables import Target
from filesink.sinks.postgres.connection import Connection
from filesink.sinks.postgres.target.inserting import Source, check_rows, names, on_conflict, table_of, union
from filesink.sinks.postgres.target.table import Column, is_same, read_table

_WORDS = [kind.value for kind in RowKind]
_BEFORE = sql.Literal(RowKind.UPDATE_BEFORE.value)
_GOES = sql.SQL("({}, {})").format(_BEFORE, sql.Literal(RowKind.DELETE.value))


def check_kinds(batch: pa.RecordBatch, target: Target) -> None:
    """Raise unless every row of ``batch`` has a kind.

    Raises:
        DataError: ``ROW_KIND``.
    """
    found = [column for name, column in zip(batch.schema.names, batch.columns, strict=True)
             if is_same(name, target.row_kind)]  # fmt: skip
    for column in found:
        text: Any = column
        if not (is_a.is_string(text.type) or is_a.is_large_string(text.type)):
            continue  # refused by its type
        if not pc.all(pc.is_in(text, value_set=pa.array(_WORDS, text.type))).as_py():
            raise DataError(
                f"column {target.row_kind!r} has a word, or a null, that is none of {', '.join(_WORDS)}: "
                "nothing says what that row does to the table. See filesink.changes.row_kind for the words "
                "of other systems",
                code="ROW_KIND",
            )


def checks_of(target: Target, columns: Sequence[Column]) -> tuple[list[Column], list[sql.Composable]]:
    """Columns for changes that wait, and what is checked of them: only rows that come have to be whole.

    A check has the name of its column, so that it can be told.
    """
    always = {*target.keys, target.newest_by, target.row_kind}
    own = [replace(one, is_required=one.name in always) for one in columns]
    lacking = [one.name for one in columns if one.is_required and one.name not in always]
    check = sql.SQL("CONSTRAINT {column} CHECK ({column} IS NOT NULL OR {kind} IN {goes})")
    kind = sql.Identifier(target.row_kind)
    return own, [check.format(column=sql.Identifier(name), kind=kind, goes=_GOES) for name in lacking]


def apply(connection: Connection, target: Target, sources: Sequence[Source], *, last: sql.Identifier) -> None:
    """Apply the changes of all ``sources`` to the rows of the target.

    Args:
        connection: in a transaction.
        target: where to.
        sources: what waits.
        last: a table that is not there. It is made of the last changes, and dropped again.

    Raises:
        StagedDataLost: ``POSTGRES_ROWS``; a source has other rows than it had.
    """
    for source in sources:
        check_rows(connection, source, target)
    written = _written(connection, target, sources)
    # Nobody sees the table, and nothing of it is left after a crash.
    make = sql.SQL("CREATE UNLOGGED TABLE {} AS SELECT DISTINCT ON ({}) * FROM ({}) AS s ORDER BY {}, {}")
    keys = names(target.keys)
    connection.execute(make.format(last, keys, union(sources), keys, _order(target)))
    connection.execute(sql.SQL("ANALYZE {}").format(last))
    if target.newest_by not in written:
        target = replace(target, newest_by="")
    connection.execute(_delete(target, last))
    connection.execute(_insert(target, last, written))
    connection.execute(sql.SQL("DROP TABLE {}").format(last))


def has_ties(connection: Connection, target: Target, sources: Sequence[Source]) -> bool:
    """Whether nothing says which of several changes of a key is the last, and they differ."""
    query = sql.SQL(
        "SELECT EXISTS (SELECT FROM (SELECT *, pg_catalog.rank() OVER (PARTITION BY {keys} ORDER BY {order}) "
        "AS {place} FROM ({union}) AS s) AS r WHERE {place} = 1 GROUP BY {keys} HAVING count(*) > 1 AND "
        "count(DISTINCT CASE WHEN {kind} IN {goes} THEN '' ELSE ROW({columns})::text END) > 1)"
    )
    found = connection.execute(
        query.format(
            keys=names(target.keys),
            order=_order(target),
            place=sql.Identifier(_unlike(sources[0].columns)),
            union=union(sources),
            kind=sql.Identifier(target.row_kind),
            goes=_GOES,
            columns=names(name for name in sources[0].columns if name != target.row_kind),
        )
    ).fetchone()
    return found is not None and bool(found[0])


def _order(target: Target) -> sql.Composable:
    """The last change of a key first."""
    after = sql.SQL("{} = {}").format(sql.Identifier(target.row_kind), _BEFORE)
    if not target.newest_by:
        return after
    return sql.SQL("{} DESC, {}").format(sql.Identifier(target.newest_by), after)


def _delete(target: Target, last: sql.Identifier) -> sql.Composed:
    pair = sql.SQL("t.{} = s.{}")
    one = [pair.format(sql.Identifier(name), sql.Identifier(name)) for name in target.keys]
    one.append(sql.SQL("s.{} IN {}").format(sql.Identifier(target.row_kind), _GOES))
    if target.newest_by:
        newest = sql.Identifier(target.newest_by)
        one.append(sql.SQL("(t.{} IS NULL OR s.{} >= t.{})").format(newest, newest, newest))
    where = sql.SQL(" AND ").join(one)
    return sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE {}").format(table_of(target), last, where)


def _insert(target: Target, last: sql.Identifier, written: Sequence[str]) -> sql.Composed:
    query = sql.SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {} WHERE {} NOT IN {}{}")
    columns, kind = names(written), sql.Identifier(target.row_kind)
    return query.format(table_of(target), columns, columns, last, kind, _GOES, on_conflict(target, written))


def _written(connection: Connection, target: Target, sources: Sequence[Source]) -> list[str]:
    """The columns that go into the target: that of kinds never does, that of the order if it is there."""
    table = read_table(connection, target.schema, target.table)
    there = {column.name for column in table.columns} if table else set[str]()
    left_out = {target.row_kind} | ({target.newest_by} - there)
    return [name for name in sources[0].columns if name not in left_out]


def _unlike(columns: Sequence[str]) -> str:
    """A name that none of ``columns`` has."""
    name = "place"
    while name in columns:
        name += "_"
    return name
