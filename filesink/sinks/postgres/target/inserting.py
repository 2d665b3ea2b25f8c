"""The statements that put rows which wait into the target: plainly, or by keys."""

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
            _check_rows(connection, source, target)
        connection.execute(_newest(target, sources))
        return
    for source in sources:
        done = connection.execute(_plain(target, source)).rowcount
        if done != source.rows:  # a trigger may have left some out
            _check_rows(connection, source, target)


def has_twins(connection: Connection, target: Target, sources: Sequence[Source]) -> bool:
    """Whether two rows of ``sources`` have the same keys."""
    query = sql.SQL("SELECT EXISTS (SELECT FROM ({}) AS s GROUP BY {} HAVING count(*) > 1)")
    found = connection.execute(query.format(_union(sources), _names(target.keys))).fetchone()
    return found is not None and bool(found[0])


def _plain(target: Target, source: Source) -> sql.Composed:
    names = _names(source.columns)
    return sql.SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {}{}").format(
        _table(target), names, names, source.table, _on_conflict(target, source.columns)
    )


def _newest(target: Target, sources: Sequence[Source]) -> sql.Composed:
    columns, keys, newest = sources[0].columns, _names(target.keys), sql.Identifier(target.newest_by)
    return sql.SQL(
        "INSERT INTO {target} AS t ({names}) SELECT DISTINCT ON ({keys}) {names} FROM ({union}) AS s "
        "ORDER BY {keys}, {newest} DESC NULLS LAST{conflict}"
    ).format(
        target=_table(target),
        names=_names(columns),
        keys=keys,
        union=_union(sources),
        newest=newest,
        conflict=_on_conflict(target, columns),
    )


def _on_conflict(target: Target, columns: Iterable[str]) -> sql.Composable:
    if not target.keys:
        return sql.SQL("")
    changed = [name for name in columns if name not in target.keys]
    action: sql.Composable = sql.SQL("NOTHING")
    if changed:
        one = sql.SQL("{} = excluded.{}")
        pairs = _COMMA.join(one.format(sql.Identifier(name), sql.Identifier(name)) for name in changed)
        action = sql.SQL("UPDATE SET {}{}").format(pairs, _if_newer(target))
    return sql.SQL(" ON CONFLICT ({}) DO {}").format(_names(target.keys), action)


def _if_newer(target: Target) -> sql.Composable:
    if not target.newest_by:
        return sql.SQL("")
    name = sql.Identifier(target.newest_by)
    return sql.SQL(" WHERE t.{} IS NULL OR excluded.{} >= t.{}").format(name, name, name)


def _check_rows(connection: Connection, source: Source, target: Target) -> None:
    found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(source.table)).fetchone()
    if found is None or found[0] != source.rows:
        raise StagedDataLost(
            f"{source.rows} rows were staged for {target}, and the table that holds them has others now. "
            "Nothing was inserted. Somebody has changed it: bring it back from a backup",
            code="POSTGRES_ROWS",
        )


def _union(sources: Sequence[Source]) -> sql.Composed:
    one = sql.SQL("SELECT {} FROM {}")
    names = _names(sources[0].columns)
    return sql.SQL(" UNION ALL ").join(one.format(names, source.table) for source in sources)


def _names(names: Iterable[str]) -> sql.Composed:
    return _COMMA.join(map(sql.Identifier, names))


def _table(target: Target) -> sql.Identifier:
    return sql.Identifier(target.schema, target.table)
