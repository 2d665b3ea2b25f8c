"""What users give: names, addresses, passwords."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import cloudpickle

from filesink import ConfigError, PostgresServer, PostgresSink, PostgresTable, StorageError
from tests.sinks.postgres.site import SCHEMA, Site, commit, rows

SECRET = "hunter2-é"  # noqa: S105 - of the tests


@pytest.mark.parametrize(
    ("name", "schema", "table"),
    [
        ("goods", "public", "goods"),
        ("Shop.Goods", "Shop", "Goods"),
        ('"a.b"."c ""d"""', "a.b", 'c "d"'),
        ('shop."a.b"', "shop", "a.b"),
    ],
)
def test_names(name: str, schema: str, table: str) -> None:
    """They are taken as they are written."""
    given = PostgresTable(name)
    assert (given.schema, given.table, given.staging) == (schema, table, schema)
    assert PostgresTable(name, staging_schema="own").staging == "own"


@pytest.mark.parametrize("name", ["", "a.b.c", ".a", "a.", 'a"b', "a\0", "\ud800", "x" * 64, "ä" * 32])
def test_what_is_no_name(name: str) -> None:
    """The server would cut it, or take it for another one."""
    with pytest.raises(ConfigError) as raised:
        PostgresTable(name)
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    ("conninfo", "code"),
    [
        (f"host=h password={SECRET}", "CREDENTIALS"),
        (f"postgresql://u:{SECRET}@h/d", "CREDENTIALS"),
        (f"postgresql://h/d?sslpassword={SECRET}", "CREDENTIALS"),
        (f"host=h {SECRET}", "BAD_VALUE"),
        (f"host=h passwort={SECRET}", "BAD_VALUE"),
    ],
)
def test_a_conninfo_with_a_secret(conninfo: str, code: str) -> None:
    """It is refused, and repeated nowhere."""
    with pytest.raises(ConfigError) as raised:
        PostgresServer(conninfo)
    assert raised.value.code == code
    assert SECRET not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def failing() -> str:
    """A function that cannot get the password."""
    raise RuntimeError(SECRET)


@pytest.fixture
def locked(site: Site) -> Site:
    """The same table, for a user who needs a password."""
    if not site.do("SELECT 1 FROM pg_roles WHERE rolname = 'locked'"):
        site.do(f"CREATE ROLE locked SUPERUSER LOGIN PASSWORD '{SECRET}'")
    site.conninfo = site.server.conninfo.replace("user=postgres", "user=locked")
    return site


@pytest.mark.parametrize("password", [SECRET, lambda: SECRET], ids=["text", "function"])
def test_a_password(locked: Site, password: str | Callable[[], str]) -> None:
    """It gets in, and is shown by nothing that is shown."""
    tiers = locked.tiers()
    object.__setattr__(tiers, "server", PostgresServer(locked.conninfo, password=password))
    tiers = pickle.loads(cloudpickle.dumps(tiers))  # noqa: S301 - as Spark does
    assert SECRET not in repr(tiers)
    assert not hasattr(tiers, "ledger")
    locked.conninfo = locked.server.conninfo
    locked.tiers().prepare(SCHEMA)
    context = locked.context()
    writer = tiers.create_writer(context)
    writer.write(rows(1), context)
    assert SECRET not in repr(writer.prepare_commit(0))
    writer.close()


def test_a_password_of_the_environment(locked: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is found without us."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    commit(locked, locked.staged(rows(1)))
    monkeypatch.delenv("PGPASSWORD")
    found = tmp_path / "pgpass"
    found.write_text(f"127.0.0.1:*:*:locked:{SECRET}")
    found.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", os.fspath(found))
    commit(locked, locked.staged(rows(2), epoch=1))
    assert locked.ids_there() == [1, 2]


@pytest.mark.parametrize("password", ["wrong", None], ids=["wrong", "none"])
def test_no_way_in(locked: Site, password: str | None) -> None:
    """It is told at once: trying again would not help."""
    tiers = locked.tiers()
    object.__setattr__(tiers, "server", PostgresServer(locked.conninfo, password=password))
    with pytest.raises(StorageError) as raised:
        tiers.prepare(SCHEMA)
    assert (raised.value.code, locked.clock.slept) == ("POSTGRES_LOGIN", [])
    assert raised.value.is_permanent


def test_a_function_that_fails(site: Site) -> None:
    """Its text may hold what it was about to return."""
    tiers = site.tiers()
    object.__setattr__(tiers, "server", PostgresServer(site.conninfo, password=failing))
    with pytest.raises(ConfigError, match=r"password= failed \(RuntimeError\)") as raised:
        tiers.prepare(SCHEMA)
    assert SECRET not in str(raised.value)


def test_a_sink_shows_its_table(tmp_path: Path) -> None:
    """And nothing else."""
    server = PostgresServer("host=h", password=SECRET)
    sink = PostgresSink(server, "shop.goods", ledger=tmp_path, uid="goods")
    assert repr(sink) == "<PostgresSink shop.goods>"
    assert SECRET not in repr(server)
