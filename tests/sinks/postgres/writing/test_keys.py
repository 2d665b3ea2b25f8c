"""Rows that are merged by keys."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from filesink import ConfigError, DataError, SchemaError
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import Site, commit, rows

VERSIONED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("version", pa.int64())])


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table with a primary key."""
    return Site(postgres, tmp_path, ddl="id bigint PRIMARY KEY, name text", options={"keys": ["id"]})


@pytest.fixture
def versioned(site: Site) -> Site:
    """A table whose rows tell which of them is the newest."""
    ddl = "id bigint PRIMARY KEY, name text, version bigint"
    return site.beside(ddl=ddl, options={"keys": ["id"], "newest_by": "version"})


def versions(*given: tuple[int, int | None]) -> pa.RecordBatch:
    """Rows with these ids and versions."""
    names = [f"{one}.{version}" for one, version in given]
    columns = {"id": [one for one, _ in given], "name": names, "version": [version for _, version in given]}
    return pa.RecordBatch.from_pydict(columns, VERSIONED)


def test_a_row_is_inserted_or_updated(site: Site) -> None:
    """By its key, across epochs."""
    site.run(0, rows(1, 2, name="old"))
    site.run(1, rows(2, name="new"), rows(3, name="new"))
    assert sorted(site.do("SELECT * FROM {t}")) == [(1, "old1"), (2, "new2"), (3, "new3")]


def test_other_columns_stay(site: Site) -> None:
    """Those that the DataFrame does not have keep what they had."""
    site.do("ALTER TABLE {t} ADD note text DEFAULT 'none'")
    site.run(0, rows(1))
    site.do("UPDATE {t} SET note = 'kept'")
    site.run(1, rows(1, name="new"), rows(2, name="new"))
    assert sorted(site.do("SELECT * FROM {t}")) == [(1, "new1", "kept"), (2, "new2", "none")]


def test_a_table_of_nothing_but_keys(site: Site) -> None:
    """There is nothing to update."""
    own = site.beside(ddl="id bigint, name text, PRIMARY KEY (id, name)", options={"keys": ["name", "id"]})
    own.run(0, rows(1))
    own.run(1, rows(1), rows(2))
    assert own.ids_there() == [1, 2]


@pytest.mark.parametrize("partitions", [(rows(1, 1),), (rows(1), rows(1))], ids=["in a task", "in two"])
def test_a_key_that_comes_twice_in_an_epoch_is_refused(
    site: Site, partitions: tuple[pa.RecordBatch, ...]
) -> None:
    """Nothing says which row stands; nothing is visible, and nothing is left."""
    site.run(0, rows(7))
    with pytest.raises(DataError, match=r"the same key \(id\).*newest_by") as raised:
        site.run(1, *partitions)
    assert raised.value.code == "DUPLICATE_KEY"
    assert site.ids_there() == [7]
    assert site.leftovers() == []


def test_the_newest_of_an_epoch_stands(versioned: Site) -> None:
    """Wherever it came."""
    versioned.run(0, versions((1, 2), (1, 3), (2, None)), versions((1, 1), (2, 5)))
    assert sorted(versioned.do("SELECT * FROM {t}")) == [(1, "1.3", 3), (2, "2.5", 5)]


def test_the_newest_of_all_stands(versioned: Site) -> None:
    """Whenever it came; a row that is late changes nothing, one that is as new replaces."""
    versioned.run(0, versions((1, 5), (2, None), (3, 1)))
    versioned.run(1, versions((1, 4), (2, 1), (3, None)))
    assert sorted(versioned.do("SELECT id, version FROM {t}")) == [(1, 5), (2, 1), (3, 1)]


def test_the_table_does_not_depend_on_partitions_or_order(versioned: Site) -> None:
    """The same rows in any order, in any epochs and tasks, make the same table."""
    chance = random.Random(4)  # noqa: S311 - has to be repeatable
    given = [(one, version) for one in range(5) for version in range(6)]
    for _ in range(3):
        own = versioned.beside(directory=versioned.directory / f"{chance.random()}")
        chance.shuffle(given)
        own.run(0, versions(*given[:10]), versions(*given[10:17]))
        own.run(1, versions(*given[17:]))
        assert sorted(own.do("SELECT id, version FROM {t}")) == [(one, 5) for one in range(5)]


def test_a_commit_may_be_called_again(site: Site) -> None:
    """It does not bring back what was updated since."""
    staged = site.staged(rows(1))
    commit(site, staged)
    site.do("UPDATE {t} SET name = 'changed since'")
    commit(site, staged)
    assert site.do("SELECT name FROM {t}") == [("changed since",)]


@pytest.mark.parametrize(
    ("ddl", "keys"),
    [
        ("id bigint, name text", ["id"]),
        ("id bigint UNIQUE, name text", ["id"]),  # takes nulls, which are equal to nothing
        ("id bigint PRIMARY KEY, name text", ["id", "name"]),
        ("id bigint NOT NULL, name text, UNIQUE (id) DEFERRABLE", ["id"]),
    ],
)
def test_keys_without_a_unique_index(site: Site, ddl: str, keys: list[str]) -> None:
    """The statement that makes one is in the message."""
    own = site.beside(ddl=ddl, options={"keys": keys})
    with pytest.raises(ConfigError, match="ADD PRIMARY KEY") as raised:
        own.tiers().prepare(rows(1).schema)
    assert raised.value.code == "POSTGRES_KEYS"


def test_a_key_that_the_frame_lacks(site: Site) -> None:
    """Every row needs its key, a default is none."""
    site.do("ALTER TABLE {t} ALTER id SET DEFAULT 1")
    with pytest.raises(SchemaError, match="name 'id', and no column"):
        site.tiers().prepare(pa.schema([("name", pa.string())]))


def test_a_new_table_has_its_keys(site: Site) -> None:
    """As its primary key."""
    own = site.beside(ddl="", options={"keys": ["id"], "on_missing": "create"})
    own.run(0, rows(1))
    own.run(1, rows(1, name="new"))
    assert own.do("SELECT * FROM {t}") == [(1, "new1")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": ["id", "id"]}, "must be different columns"),
        ({"keys": ["id"], "newest_by": "id"}, "must be different columns"),
        ({"newest_by": "id", "keys": []}, "give keys, too"),
        ({"keys": "id"}, "must be a list of names of columns, got str"),
    ],
)
def test_keys_that_mean_nothing(site: Site, options: dict[str, object], said: str) -> None:
    """Refused when they are given."""
    with pytest.raises(ConfigError, match=said):
        site.tiers(**options)
