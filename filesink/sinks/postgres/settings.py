"""Where the table is and how it is written: values that users give. Pure, but for reading a conninfo.

Rules: a password is in no ``repr`` and no message, and a conninfo that holds one is refused, since
addresses are shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from filesink.arguments import choice, column_name, instance_of
from filesink.errors import ConfigError, DependencyError
from formats.arguments import is_text, kind_of

_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_NAME = re.compile(r'"((?:[^"\0]|"")+)"|([^".\0]+)')
_LONGEST = 63  # bytes of a name; the server cuts longer ones


class Missing(Enum):
    """What happens if there is no such table."""

    REFUSE = "refuse"
    CREATE = "create"


class Commit(Enum):
    """How rows wait for the decision: in tables of their own, or in prepared transactions."""

    STAGED = "staged"
    PREPARED = "prepared"


class OnSchemaChange(Enum):
    """What happens if the columns of the DataFrame are no longer those of the table."""

    REFUSE = "refuse"
    APPLY = "apply"


class Rehearsal(Enum):
    """Whether a move is tried, and taken back, before its epoch is decided."""

    IF_NEEDED = "if_needed"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A database, and how to get in. Every process connects by itself.

    Args:
        conninfo: as of libpq, ``"host=db dbname=shop user=loader"`` or ``"postgresql://loader@db/shop"``.
            What it does not say comes from the environment (``PGHOST`` …), of tasks as well.
        password: text, or a function without arguments that is called for each connection, in the
            driver and in the tasks. ``None`` leaves it to libpq: ``PGPASSWORD``, ``~/.pgpass``, Kerberos,
            certificates.

    Raises:
        ConfigError: ``CREDENTIALS``, the conninfo holds a secret; ``BAD_VALUE``, it cannot be read.
        DependencyError: ``DEPENDENCY``; psycopg is not installed.
    """

    conninfo: str = ""
    password: str | Callable[[], str] | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_conninfo(instance_of(self.conninfo, str, name="conninfo"))
        given: object = self.password
        if not (given is None or isinstance(given, str) or (callable(given) and not isinstance(given, type))):
            raise ConfigError(
                f"password must be text or a function without arguments, got {kind_of(given)}",
                code="BAD_VALUE",
            )

    @staticmethod
    def at(server: str | PostgresServer) -> PostgresServer:
        """What a user has given as a server: a conninfo, or one of these."""
        return server if isinstance(server, PostgresServer) else PostgresServer(server)


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table, and how rows get into it. Names are taken as they are written, nothing is folded.

    Args:
        name: ``"schema.table"``, or ``"table"`` in the schema ``public``; a name with a dot in it stands in
            double quotes.
        keys: columns of a unique index; a row whose key is in the table updates that one. Without keys
            every row is inserted.
        newest_by: the column that tells which of several rows with the same key is the newest. The row
            with the greatest value stands, whenever it came. Without it, a key must not come twice
            in an epoch.
        row_kind: the column with the kind of each change (``+I -U +U -D``, see ``RowKind``), which is not
            written itself. Rows are inserted, updated and deleted by their keys, and ``newest_by`` may be a
            column that the table does not have.
        on_missing: ``"create"`` creates the table, with the DataFrame's columns.
        on_schema_change: ``"apply"`` adds columns to the table that the DataFrame has got, and widens types
            that have grown, before the first epoch that needs it; ``"refuse"`` leaves the table as it is.
        renamed: names that columns had, and those that they have now. With ``"apply"``.
        dropped: columns that the DataFrame no longer has, to be dropped with their values. With ``"apply"``.
        commit: ``"staged"`` commits an epoch in one transaction. ``"prepared"`` writes once instead of twice,
            but commits each task by itself: needs ``max_prepared_transactions``, and has no keys.
        staging_schema: of the tables of attempts and of ``filesink_epochs``; that of the table by default.
        rehearsal: ``"if_needed"`` tries the move before the epoch is decided if the table has anything that
            could still refuse a row, such as a unique index; ``"never"`` does not.

    Raises:
        ConfigError: ``BAD_VALUE``; ``CONFLICT``, options that do not go together.
    """

    name: str
    keys: Sequence[str] = field(default=(), kw_only=True)
    newest_by: str | None = field(default=None, kw_only=True)
    row_kind: str | None = field(default=None, kw_only=True)
    on_missing: Literal["refuse", "create"] = field(default="refuse", kw_only=True)
    commit: Literal["staged", "prepared"] = field(default="staged", kw_only=True)
    staging_schema: str | None = field(default=None, kw_only=True)
    rehearsal: Literal["if_needed", "never"] = field(default="if_needed", kw_only=True)
    on_schema_change: Literal["refuse", "apply"] = field(default="refuse", kw_only=True)
    renamed: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    dropped: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _parts(self.name)
        object.__setattr__(self, "keys", _columns(self.keys, "keys"))
        object.__setattr__(self, "dropped", _columns(self.dropped, "dropped"))
        object.__setattr__(self, "renamed", _pairs(self.renamed))
        if self.newest_by is not None:
            column_name(self.newest_by, name="newest_by")
        if self.row_kind is not None:
            _check_name(column_name(self.row_kind, name="row_kind"), "row_kind")
        choice(Missing, self.on_missing, "on_missing")
        choice(Commit, self.commit, "commit")
        choice(Rehearsal, self.rehearsal, "rehearsal")
        choice(OnSchemaChange, self.on_schema_change, "on_schema_change")
        if self.staging_schema is not None:
            _check_name(instance_of(self.staging_schema, str, name="staging_schema"), "staging_schema")
        self._check_together()
        self._check_changes()

    def _check_together(self) -> None:
        if len(set(self.keys)) != len(self.keys) or self.newest_by in self.keys:
            raise ConfigError("keys and newest_by must be different columns", code="CONFLICT")
        if self.newest_by is not None and not self.keys:
            raise ConfigError("newest_by tells rows with the same key apart: give keys, too", code="CONFLICT")
        if self.keys and self.commit == Commit.PREPARED.value:
            raise ConfigError(
                "commit='prepared' has no keys: a task that updates a row would wait for another task, which "
                "holds that row until all tasks are done. Use commit='staged'",
                code="CONFLICT",
            )

    def _check_changes(self) -> None:
        applies = OnSchemaChange(self.on_schema_change) is OnSchemaChange.APPLY
        named = {*self.renamed, *self.dropped}
        if self.row_kind is not None and not self.keys:
            raise ConfigError(
                "row_kind says what a row does to the row with the same key: give keys, too", code="CONFLICT"
            )
        if self.row_kind is not None and self.row_kind in {*self.keys, self.newest_by}:
            raise ConfigError("row_kind must be another column than keys and newest_by", code="CONFLICT")
        if named and not applies:
            raise ConfigError("renamed and dropped need on_schema_change='apply'", code="CONFLICT")
        if applies and self.commit == Commit.PREPARED.value:
            raise ConfigError(
                "commit='prepared' cannot go with on_schema_change='apply': prepared transactions of a dead "
                "driver would lock the table against it. Use commit='staged'",
                code="CONFLICT",
            )
        if named & {*self.keys, self.newest_by, *self.renamed.values()} or {*self.renamed} & {*self.dropped}:
            raise ConfigError(
                "a column that is dropped, or has another name now, cannot be named in keys, newest_by or as "
                "a new name: give the names that columns have now",
                code="CONFLICT",
            )

    @staticmethod
    def at(table: str | PostgresTable) -> PostgresTable:
        """What a user has given as a table: its name, or one of these."""
        return table if isinstance(table, PostgresTable) else PostgresTable(table)

    @property
    def schema(self) -> str:
        """The schema of the table."""
        return _parts(self.name)[0]

    @property
    def table(self) -> str:
        """Its name in that schema."""
        return _parts(self.name)[1]

    @property
    def staging(self) -> str:
        """The schema of everything else that is needed."""
        return self.schema if self.staging_schema is None else self.staging_schema


def _parts(name: str) -> tuple[str, str]:
    text = str(instance_of(name, str, name="table"))
    found = list(_NAME.finditer(text))
    if len(found) not in {1, 2} or ".".join(one[0] for one in found) != text or not is_text(text):
        raise _bad_value(
            'table must be "schema.table" or "table", with a name that has a dot in double quotes'
        )
    names = [one[1].replace('""', '"') if one[1] else one[2] for one in found]
    for one in names:
        _check_name(one, "table")
    return (names[0], names[1]) if len(names) == 2 else ("public", names[0])


def _columns(columns: Sequence[str], name: str) -> tuple[str, ...]:
    given: object = columns
    if isinstance(given, str) or not isinstance(given, Sequence):  # text is a sequence of letters
        raise _bad_value(f"{name} must be a list of names of columns, got {kind_of(given)}")
    return tuple(column_name(one, name=name) for one in given)


def _pairs(renamed: Mapping[str, str]) -> dict[str, str]:
    given: object = renamed
    if not isinstance(given, Mapping):
        raise _bad_value(f"renamed must be a dict of old and new names of columns, got {kind_of(given)}")
    pairs = {column_name(old, name="renamed"): column_name(new, name="renamed") for old, new in given.items()}
    if len(set(pairs.values())) != len(pairs):
        raise _bad_value("renamed gives two columns the same name")
    return pairs


def _check_name(text: str, name: str) -> None:
    if not text or "\0" in text or not is_text(text) or len(text.encode()) > _LONGEST:
        raise _bad_value(f"{name} must have 1 to {_LONGEST} bytes for each name, and no U+0000")


def _check_conninfo(conninfo: str) -> None:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise DependencyError(
            "PostgreSQL needs a further package: pip install 'filesink[postgres]'", code="DEPENDENCY"
        ) from error
    try:
        known = conninfo_to_dict(conninfo)
    except (ProgrammingError, UnicodeError):  # whose text repeats what may be a secret
        raise _bad_value(
            "conninfo is none that libpq can read; write 'host=… dbname=… user=…' or 'postgresql://user@host/db'"
        ) from None
    if any(known.get(name) for name in _SECRETS):
        raise ConfigError(
            "conninfo holds a password, and addresses are shown: give PostgresServer(…, password=…), text or "
            "a function, or leave it to PGPASSWORD or ~/.pgpass",
            code="CREDENTIALS",
        )


def _bad_value(message: str) -> ConfigError:
    return ConfigError(message, code="BAD_VALUE")
