"""The statements that put rows which wait into the target: plainly, or by keys. Changes: see ``changing``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from psycopg import sql

from filesink.errors import StagedDataLost
from filesink.sinks.postgres.committables import Target
from filesink.sinks.postgres.connection import Connection

_COMMA = sql.SQL(", ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table of rows that wait: its columns, and the number of its rows by what the task has told."""

    table: sql.Identifier
    columns: tuple[str, ...]
    rows: int


def insert(connection: Connection, target: Target, sources: Sequence[Source]) -> None:
    """Insert the rows of all ``sources``, or update those of the target that have the same keys.

    Raises:
        StagedDataLost: ``POSTGRES_ROWS``; a source has other rows than it had.
    """
    if target.newest_by:
        for source in sources:
            check_rows(connection, source, target)
        connection.execute(_newest(target, sources))
        return
    for source in sources:
        done = connection.execute(_plain(target, source)).rowcount
        if done != source.rows:  # a trigger may have left some out
            check_rows(connection, source, target)


def has_twins(connection: Connection, target: Target, sources: Sequence[Source]) -> bool:
    """Whether two rows of ``sources`` have the same keys."""
    query = sql.SQL("SELECT EXISTS (SELECT FROM ({}) AS s GROUP BY {} HAVING count(*) > 1)")
    found = connection.execute(query.format(union(sources), names(target.keys))).fetchone()
    return found is not None and bool(found[0])


def _plain(target: Target, source: Source) -> sql.Composed:
    columns = names(source.columns)
    return sql.SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {}{}").format(
        table_of(target), columns, columns, source.table, on_conflict(target, source.columns)
    )


def _newest(target: Target, sources: Sequence[Source]) -> sql.Composed:
    columns, keys, newest = sources[0].columns, names(target.keys), sql.Identifier(target.newest_by)
    return sql.SQL(
        "INSERT INTO {target} AS t ({names}) SELECT DISTINCT ON ({keys}) {names} FROM ({union}) AS s "
        "ORDER BY {keys}, {newest} DESC NULLS LAST{conflict}"
    ).format(
        target=table_of(target),
        names=names(columns),
        keys=keys,
        union=union(sources),
        newest=newest,
        conflict=on_conflict(target, columns),
    )


def on_conflict(target: Target, columns: Iterable[str]) -> sql.Composable:
    """What an INSERT of ``columns`` does with a row of the target that has the same keys."""
    if not target.keys:
        return sql.SQL("")
    changed = [name for name in columns if name not in target.keys]
    action: sql.Composable = sql.SQL("NOTHING")
    if changed:
        one = sql.SQL("{} = excluded.{}")
        pairs = _COMMA.join(one.format(sql.Identifier(name), sql.Identifier(name)) for name in changed)
        action = sql.SQL("UPDATE SET {}{}").format(pairs, _if_newer(target))
    return sql.SQL(" ON CONFLICT ({}) DO {}").format(names(target.keys), action)


def _if_newer(target: Target) -> sql.Composable:
    if not target.newest_by:
        return sql.SQL("")
    name = sql.Identifier(target.newest_by)
    return sql.SQL(" WHERE t.{} IS NULL OR excluded.{} >= t.{}").format(name, name, name)


def check_rows(connection: Connection, source: Source, target: Target) -> None:
    """Raise ``StagedDataLost`` (``POSTGRES_ROWS``) unless ``source`` has the rows that it had."""
    found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(source.table)).fetchone()
    if found is None or found[0] != source.rows:
        raise StagedDataLost(
            f"{source.rows} rows were staged for {target}, and the table that holds them has others now. "
            "Nothing was inserted. Somebody has changed it: bring it back from a backup",
            code="POSTGRES_ROWS",
        )


def union(sources: Sequence[Source]) -> sql.Composed:
    """A query of the rows of all ``sources``."""
    one = sql.SQL("SELECT {} FROM {}")
    columns = names(sources[0].columns)
    return sql.SQL(" UNION ALL ").join(one.format(columns, source.table) for source in sources)


def names(columns: Iterable[str]) -> sql.Composed:
    """``columns`` in SQL, with commas."""
    return _COMMA.join(map(sql.Identifier, columns))


def table_of(target: Target) -> sql.Identifier:
    """The table in SQL."""
    return sql.Identifier(target.schema, target.table)
