"""What the answers of the server mean."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors

from filesink import DataError, FilesinkError, InternalError, StorageError
from filesink.errors import CommitFailedError
from filesink.sinks.postgres.answers import meaning, sentence
from tests.fakes import micro_batch
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import SCHEMA, Site, commit, rows

PASSING = [
    *("08000", "08003", "08006", "08001", "08004"),  # connection
    *("40001", "40P01", "40003"),  # serialisation, deadlock, unknown
    *("53100", "53200", "53300"),  # disk, memory, connections
    *("57014", "57P01", "57P02", "57P03", "57P05"),  # cancelled, shut down, crashed, starting, idle
    *("55000", "55006", "55P03", "25006", "58030", "XX000"),
]
PERMANENT = {
    "28000": "POSTGRES_LOGIN",
    "28P01": "POSTGRES_LOGIN",
    "3D000": "POSTGRES_LOGIN",
    "42501": "POSTGRES_REFUSED",
    "42P01": "POSTGRES_REFUSED",
    "42703": "POSTGRES_REFUSED",
    "0A000": "POSTGRES_REFUSED",
    "22001": "POSTGRES_VALUE",
    "23505": "POSTGRES_VALUE",
    "23514": "POSTGRES_VALUE",
    "44000": "POSTGRES_VALUE",
    "P0001": "POSTGRES_VALUE",
    "P0004": "POSTGRES_VALUE",
}
#: What somebody does to the table, what the server says then, and how it is undone.
CHANGES = {
    "gone": ("ALTER TABLE {t} RENAME TO away", "UndefinedTable", "ALTER TABLE {s}.away RENAME TO goods"),
    "a column gone": (
        "ALTER TABLE {t} RENAME name TO label", "UndefinedColumn", "ALTER TABLE {t} RENAME label TO name",
    ),
    "another type": (
        "ALTER TABLE {t} ALTER name TYPE integer USING 0", "DatatypeMismatch",
        "ALTER TABLE {t} ALTER name TYPE text",
    ),
}  # fmt: skip


def answer(state: str) -> FilesinkError:
    """Our error for this SQLSTATE."""
    return meaning(errors.lookup(state)("a secret"), "do this")


@pytest.mark.parametrize("state", PASSING)
def test_what_may_pass(state: str) -> None:
    """It is tried again."""
    assert not answer(state).is_permanent
    assert answer(state).code == "POSTGRES_AWAY"


@pytest.mark.parametrize("state", PERMANENT)
def test_what_stays(state: str) -> None:
    """Somebody has to mend something first."""
    found = answer(state)
    assert (found.is_permanent, found.code) == (True, PERMANENT[state])
    assert state in str(found)
    assert isinstance(found, DataError) == (found.code == "POSTGRES_VALUE")


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (psycopg.OperationalError("server closed the connection"), StorageError, "POSTGRES_AWAY"),
        (psycopg.OperationalError("password authentication failed"), StorageError, "POSTGRES_LOGIN"),
        (psycopg.OperationalError('database "x" does not exist'), StorageError, "POSTGRES_LOGIN"),
        (psycopg.ProgrammingError("the values: secret"), InternalError, "POSTGRES_CLIENT"),
    ],
)
def test_errors_of_the_client(error: psycopg.Error, kind: type[FilesinkError], code: str) -> None:
    """They have no SQLSTATE."""
    found = meaning(error, "do this")
    assert (type(found), found.code) == (kind, code)
    assert "secret" not in str(found)


@pytest.mark.parametrize("options", [{}, {"commit": "prepared"}], ids=str)
@pytest.mark.parametrize("ddl", ["id bigint, name text NOT NULL", "id bigint, name varchar(1)"])
def test_a_value_is_refused_by_a_column_of_the_target(site: Site, ddl: str, options: dict[str, str]) -> None:
    """The table where rows wait is of no use to anybody; no value is in the message."""
    own = site.beside(ddl=ddl, options=options)
    refused = pa.RecordBatch.from_pydict(
        {"id": [7777], "name": [None if "NOT NULL" in ddl else "yy"]}, SCHEMA
    )
    with pytest.raises(DataError) as raised:
        own.staged(refused)
    said = raised.value.message
    assert raised.value.code == "POSTGRES_VALUE"
    assert f"{own.schema}.goods" in said
    assert "column 'name'" in said
    assert not any(one in said for one in ("filesink", "7777", "yy"))


def test_a_sentence_is_short() -> None:
    """One line, without what would spoil a log."""
    assert sentence("\n a\x07b. \nsecond") == "a?b"
    assert len(sentence("x" * 1000)) == 301
    assert sentence("") == "no reason given"


def test_a_server_that_is_away(postgres: TestServer, site: Site) -> None:
    """Tasks and drivers wait for it, and say in the end what they were about to do."""
    site.tiers().prepare(SCHEMA)
    writer = site.tiers().create_writer(site.context())
    postgres.crash()
    try:
        with pytest.raises(StorageError, match="did not answer, to look at") as raised:
            site.tiers().prepare(SCHEMA)
        assert raised.value.code == "POSTGRES_AWAY"
        assert len(site.clock.slept) == 10
        with pytest.raises(StorageError, match="to write the rows of a task"):
            writer.write(rows(1), site.context())
        writer.abort_prepare()
        writer.close()
    finally:
        postgres.start()
    assert site.leftovers() == []


def test_a_server_that_comes_back(postgres: TestServer, site: Site) -> None:
    """Whoever waits goes on as if nothing had been."""
    site.tiers().prepare(SCHEMA)
    postgres.crash()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            postgres.start()

    site.clock.sleep = sleep  # type: ignore[method-assign]
    site.driver().run(micro_batch(0), site.job(rows(1), rows(2)))
    assert site.ids_there() == [1, 2]
    assert len(slept) == 3


def test_a_commit_that_is_refused_stays_decided(site: Site) -> None:
    """It names the constraint, never the row; when the table is mended the next driver commits it."""
    site.tiers().prepare(SCHEMA)
    site.do("ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 77)")
    driver = site.driver(rehearsal="never")
    with pytest.raises(DataError, match=r"CheckViolation \(23514\) at constraint 'small'") as raised:
        driver.run(micro_batch(0), site.job(rows(77)))
    assert "n77" not in str(raised.value)
    assert site.ids_there() == []
    site.do("ALTER TABLE {t} DROP CONSTRAINT small")
    site.run(1, rows(1))
    assert site.ids_there() == [1, 77]


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changes_while_rows_wait_for_it(site: Site, change: str) -> None:
    """The server says what is in the way, nothing is lost, and all goes in when it is as it was."""
    done, says, undone = CHANGES[change]
    staged = site.staged(rows(1), rows(2))
    site.do(done)
    with pytest.raises(StorageError, match=says) as raised:
        commit(site, staged)
    assert (raised.value.code, raised.value.is_permanent) == ("POSTGRES_REFUSED", True)
    site.do(undone)
    assert commit(site, staged) == []
    assert site.ids_there() == [1, 2]


def test_a_commit_that_waits_for_too_long(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of somebody else is no reason to hang; the epoch stays decided."""
    monkeypatch.setattr("filesink.sinks.postgres.connection.LOCK_TIMEOUT", "50ms")
    site.tiers().prepare(SCHEMA)
    with site.connect() as other, other.transaction():
        other.execute(f"LOCK TABLE {site.schema}.{site.table} IN EXCLUSIVE MODE")
        with pytest.raises(CommitFailedError, match="LockNotAvailable"):
            site.driver().run(micro_batch(0), site.job(rows(1)))
    site.run(1, rows(2))
    assert site.ids_there() == [1, 2]
