"""What the answers of PostgreSQL mean: our codes, and whether trying again can help. By SQLSTATE.

Rules: what the server says about values, and in DETAIL and CONTEXT about rows, is not repeated; of these
a message has the names of the constraint, table and column alone. A trigger may say anything, under any
state: only sentences of the server's own classes are repeated. So no error of the client is chained to ours,
either: Spark would print it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from filesink.errors import ConfigError, DataError, FilesinkError, InternalError, StorageError
from filesink.sinks.postgres.committables import parse_name

_MOST = 300  # characters of a sentence of the server's
#: Classes and states after which the same may succeed: connection, rollback, resources, operator, system.
_PASSING = ("08", "40", "53", "57", "58", "XX", "55000", "55006", "55P03", "25006")
#: What is not about a row: all else may repeat it, as what a trigger raises (P0001, or a state of its own).
_OF_SERVER = ("08", "0A", "25", "28", "3D", "3F", "40", "42", "53", "54", "55", "57", "58", "F0", "XX")
_LOGIN = ("28", "3D000")
_NO_ROOM = "53200"  # whose hint names the setting: names are not translated
# Of a connection that was not made the client knows no SQLSTATE, and only the text tells.
_NO_ENTRY = re.compile(
    r"authentication failed|no password supplied|pg_hba\.conf|(?:role|database) .* does not exist"
    r"|permission denied for database|certificate|invalid (?:connection option|sslmode|port)",
)
_IN_COLUMN = re.compile(r"^COPY \S+, line \d+, column ([^:\n]+)", re.MULTILINE)


@contextmanager
def answering(doing: str) -> Iterator[None]:
    """Raise what the client raises in the block as an error of ours.

    Args:
        doing: what was tried, for the message.
    """
    try:
        yield
    except psycopg.Error as error:
        ours = meaning(error, doing)
        raise ours from None


def meaning(error: psycopg.Error, doing: str) -> FilesinkError:
    """The error of ours for ``error``; ``is_permanent`` tells whether trying again can help."""
    state = error.sqlstate
    if state is None:
        return _without_state(error, doing)
    about = f"PostgreSQL could not {doing}: {type(error).__name__} ({state})"
    if not state.startswith(_OF_SERVER):
        return DataError(
            f"{about}{_where(error)}. The server's log has the row. Correct the data, or the table",
            code="POSTGRES_VALUE",
        )
    said = f"{about}: {sentence(error.diag.message_primary or '')}"
    if state == _NO_ROOM and "max_prepared_transactions" in (error.diag.message_hint or ""):
        return _no_more_prepared(said)
    if state.startswith(_PASSING):
        return StorageError(f"{said}. Trying again may help; nothing was lost", code="POSTGRES_AWAY")
    if state.startswith(_LOGIN):
        return StorageError(f"{said}. Check user, password and database", code="POSTGRES_LOGIN")
    return StorageError(f"{said}. Correct it, and start again; nothing was lost", code="POSTGRES_REFUSED")


def _no_more_prepared(said: str) -> ConfigError:
    return ConfigError(
        f"{said}. Each task of an epoch needs one of max_prepared_transactions until the epoch is committed, "
        "and what dead attempts have left holds some: see pg_prepared_xacts. Raise the setting and restart "
        "the server, or write with fewer tasks; sweep() of the sink that has left them rolls them back",
        code="POSTGRES_PREPARED",
    )


def sentence(text: str) -> str:
    """The first line of what the server says, cut short."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    plain = "".join(char if char.isprintable() else "?" for char in line).rstrip(".")
    return plain if len(plain) <= _MOST else f"{plain[:_MOST]}…"


def _without_state(error: psycopg.Error, doing: str) -> FilesinkError:
    """The connection could not be made, or broke; the text names host, port and user, and no password."""
    if not isinstance(error, psycopg.OperationalError):
        return InternalError(
            f"psycopg could not {doing} ({type(error).__name__}); please report this", code="POSTGRES_CLIENT"
        )
    text = sentence(str(error))
    if _NO_ENTRY.search(text):
        return StorageError(
            f"no way into PostgreSQL, to {doing}: {text}. Check user, password and database",
            code="POSTGRES_LOGIN",
        )
    return StorageError(
        f"PostgreSQL did not answer, to {doing}: {text}. Is it running? Nothing was lost",
        code="POSTGRES_AWAY",
    )


def _where(error: psycopg.Error) -> str:
    """Constraint, table and column that the server names; of a table of ours, the caller has the target."""
    found, context = error.diag, error.diag.context or ""
    table = None if parse_name(found.table_name or "") else found.table_name
    column = found.column_name or next(iter(_IN_COLUMN.findall(context)), None)
    names = {"constraint": found.constraint_name, "table": table, "column": column}
    told = [f"{kind} {name!r}" for kind, name in names.items() if name]
    return f" at {', '.join(told)}" if told else ""
