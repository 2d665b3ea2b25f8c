"""Connections to the server, each made anew, and transactions with settings of our own.

Rules:
1. A setting lives for one transaction: a pooler may give the connection to somebody else afterwards.
2. What is durable before *decide* must be so for sure: commits wait for the disk, whatever the server's
   default is.
3. Whoever waits for a lock gives up after a while, and a client whose host is gone loses its locks.
4. A question may be asked again on a new connection; what must not be done twice is made so that it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from filesink.errors import ConfigError, FilesinkError
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.sinks.postgres.answers import meaning
from filesink.sinks.postgres.settings import PostgresServer

Connection = psycopg.Connection[tuple[Any, ...]]
R = TypeVar("R")

#: What a conninfo may say otherwise. A server that was a primary may have become a standby meanwhile.
_DEFAULTS = {
    "application_name": "filesink",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "target_session_attrs": "read-write",
}
LOCK_TIMEOUT = "30s"
_SETTINGS = """
    SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', '0', true),
           set_config('idle_in_transaction_session_timeout', '10min', true),
           set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                      WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)
"""
_CHECKS_CLIENT = "SELECT set_config('client_connection_check_interval', '10s', true)"
_SINCE = 140_000  # the first version that has it


def connect(server: PostgresServer) -> Connection:
    """A connection, to be closed by the caller. Raises ``psycopg.Error``."""
    known = {**_DEFAULTS, **conninfo_to_dict(server.conninfo), "client_encoding": "UTF8"}
    secret = _password(server)
    if secret is not None:
        known["password"] = secret
    # A pooler may give each transaction another server process, which knows no prepared statement.
    return psycopg.connect(**known, prepare_threshold=None)  # type: ignore[arg-type]


def patiently(server: PostgresServer, clock: Clock, doing: str, connected: Callable[[Connection], R]) -> R:
    """What ``connected`` returns for a new connection, which it has to close; see ``ask``."""
    patience = Backoff(clock)
    while True:
        try:
            return connected(connect(server))
        except psycopg.Error as error:
            ours = meaning(error, doing)
        if ours.is_permanent or not patience.wait():
            raise ours


def ask(server: PostgresServer, clock: Clock, doing: str, question: Callable[[Connection], R]) -> R:
    """What ``question`` returns for a connection of its own; asked again where that may help.

    Args:
        server: whom to ask.
        clock: waits between the tries.
        doing: what is tried, for messages.
        question: may be called several times.

    Raises:
        FilesinkError: what the last try has met.
    """

    def asked(connection: Connection) -> R:
        with connection:
            return question(connection)

    return patiently(server, clock, doing, asked)


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """One transaction: committed at the end of the block, rolled back if it raises."""
    with connection.transaction():
        settle(connection)
        yield


def settle(connection: Connection) -> None:
    """Our settings, for the transaction that the connection is in."""
    connection.execute(_SETTINGS, [LOCK_TIMEOUT])
    if connection.info.server_version >= _SINCE:
        connection.execute(_CHECKS_CLIENT)


def _password(server: PostgresServer) -> str | None:
    if server.password is None or isinstance(server.password, str):
        return server.password
    try:
        return server.password()
    except FilesinkError:
        raise
    except Exception as error:  # noqa: BLE001 - its text may hold what it was about to return
        raise ConfigError(
            f"the function that was given as password= failed ({type(error).__name__}); its text is not "
            "shown, since it may hold a secret. Correct the function",
            code="PASSWORD",
        ) from None
