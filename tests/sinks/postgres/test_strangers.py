"""Others who have a login to the same database, and may create tables in the same schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from filesink import ConfigError, StorageError
from filesink.sinks.postgres.committables import EpochKey, new_name
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import SCHEMA, Site, commit, rows


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table that a user without any other right writes to, and a stranger in the same schema."""
    found = Site(postgres, tmp_path)
    for role in (f"loader_{found.schema}", f"stranger_{found.schema}"):
        found.do(
            f"CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA {{s}} TO {role}; GRANT ALL ON {{t}} TO {role}"
        )
    found.conninfo = conninfo_of(found, "loader")
    return found


def conninfo_of(site: Site, name: str) -> str:
    """How one of them gets in."""
    return site.server.conninfo.replace("user=postgres", f"user={name}_{site.schema}")


@contextmanager
def stranger(site: Site) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the stranger's."""
    with psycopg.connect(conninfo_of(site, "stranger"), autocommit=True) as connection:
        yield connection


def name_like_ours(site: Site) -> str:
    """That of an attempt of the sink's first epoch."""
    tiers = site.tiers()
    epoch = EpochKey(sink_id="uid-u", slot=0, target=tiers.target, schema=tiers.table.staging)
    return new_name(epoch, ids=site.ids, now_ms=0)


def test_a_table_of_epochs_that_a_stranger_has_made_is_refused(site: Site) -> None:
    """His trigger on it would run with our rights."""
    with stranger(site) as other:
        other.execute(f"CREATE TABLE {site.schema}.filesink_epochs (sink_id text)")
        other.execute(f"GRANT ALL ON {site.schema}.filesink_epochs TO public")
    with pytest.raises(ConfigError, match=f"belongs to 'stranger_{site.schema}'") as raised:
        site.tiers().prepare(SCHEMA)
    assert raised.value.code == "POSTGRES_RIGHTS"


def test_functions_of_a_stranger_are_not_called(site: Site) -> None:
    """Not even one that fits better than that of the system, where everybody's path leads."""
    site.do(f"ALTER ROLE loader_{site.schema} SET search_path = {site.schema}")
    with stranger(site) as other:
        other.execute(
            f"""
            CREATE FUNCTION {site.schema}.step(text[], text) RETURNS text[] LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'called by %', current_user; END $$;
            CREATE AGGREGATE {site.schema}.array_agg(text) (SFUNC = {site.schema}.step, STYPE = text[]);
            """
        )
    site.run(0, rows(1), rows(2))
    assert site.ids_there() == [1, 2]


@pytest.mark.parametrize("way", ["staged", "prepared"])
def test_what_a_stranger_calls_as_we_do_is_left_alone(site: Site, way: str) -> None:
    """It is not ours to remove, and no reason to fail."""
    name = name_like_ours(site)
    with stranger(site) as other:
        if way == "staged":
            other.execute(f"CREATE TABLE {site.schema}.{name} (id bigint)")
        else:
            with psycopg.connect(conninfo_of(site, "stranger")) as apart:
                apart.execute(f"LOCK {site.schema}.{site.table} IN ACCESS SHARE MODE")
                apart.execute(f"PREPARE TRANSACTION '{name}'")
        try:
            site.run(0, rows(1), commit=way)
            site.run(1, rows(2), commit=way)
            assert site.ids_there() == [1, 2]
            assert site.leftovers() == [name]
        finally:
            if way == "prepared":
                other.execute(f"ROLLBACK PREPARED '{name}'")


def test_rows_that_another_user_has_prepared_are_not_called_lost(site: Site) -> None:
    """The user of the sink was changed while an epoch was decided: the server says what is wrong."""
    staged = site.staged(rows(1), commit="prepared")
    site.conninfo = conninfo_of(site, "stranger")
    site.do(f"GRANT ALL ON {{s}}.filesink_epochs TO stranger_{site.schema}")
    with pytest.raises(StorageError, match=r"InsufficientPrivilege \(42501\)") as raised:
        commit(site, staged)
    assert raised.value.code == "POSTGRES_REFUSED"
    site.conninfo = conninfo_of(site, "loader")
    assert commit(site, staged) == []
    assert site.ids_there() == [1]
