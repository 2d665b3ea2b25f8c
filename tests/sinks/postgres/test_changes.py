"""Changes of rows in a table: what is in it afterwards, whatever came in what order."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink import ConfigError, DataError, PostgresTable, SchemaError
from filesink.commit.epoch import EpochLoop
from tests.fakes import micro_batch
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import Site, commit

CHANGES = pa.schema(
    [("row_kind", pa.string()), ("id", pa.int64()), ("name", pa.string()), ("at", pa.int64())]
)
OPTIONS = {"keys": ["id"], "row_kind": "row_kind", "newest_by": "at"}
Change = tuple[str, int, str | None, int]


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table that does not have the order of its changes."""
    return Site(postgres, tmp_path, ddl="id bigint PRIMARY KEY, name text NOT NULL", options=OPTIONS)


@pytest.fixture
def ordered(site: Site) -> Site:
    """A table that has it."""
    return site.beside(ddl="id bigint PRIMARY KEY, name text, at bigint")


def changes(*given: Change | tuple[Any, ...], schema: pa.Schema = CHANGES) -> pa.RecordBatch:
    """Changes: kind, id, name, order."""
    columns = [list(column) for column in zip(*given, strict=True)] or [[]] * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )


def content(site: Site) -> dict[int, str]:
    """The names of the table by their keys."""
    return dict(site.do("SELECT id, name FROM {t}"))


def test_each_kind_does_its_work(site: Site) -> None:
    """Rows come, change and go; what is in the table is what is left in the source."""
    site.run(0, changes(("+I", 1, "a", 1), ("+I", 2, "b", 2), ("+I", 3, "c", 3)))
    site.run(1, changes(("-U", 1, "a", 4), ("+U", 1, "A", 4), ("-D", 2, "b", 5), ("+I", 4, "d", 6)))
    assert content(site) == {1: "A", 3: "c", 4: "d"}
    assert site.leftovers() == []


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([("+I", 1, "a", 1), ("+U", 1, "b", 2), ("+U", 1, "c", 3)], {1: "c"}),
        ([("+I", 1, "a", 1), ("-D", 1, None, 2)], {}),
        ([("-D", 1, None, 1), ("+I", 1, "b", 2)], {1: "b"}),
        ([("+I", 1, "a", 1), ("-D", 1, None, 2), ("+I", 1, "c", 3), ("-D", 1, None, 4)], {}),
        ([("+I", 1, "a", 1), ("-U", 1, "a", 2), ("+U", 2, "a", 2)], {2: "a"}),  # the key changes
        ([("-U", 1, "a", 2), ("+U", 2, "a", 2), ("-U", 2, "a", 3), ("+U", 1, "b", 3)], {1: "b"}),  # and back
        ([("-U", 1, "a", 2), ("+U", 1, "b", 2)], {1: "b"}),  # a pair of one order
        ([("-D", 7, None, 1)], {}),  # of what was never there
        ([("+U", 7, "new", 1)], {7: "new"}),
        ([("+I", 1, "a", 1), ("+I", 1, "a", 1)], {1: "a"}),  # the same twice, as a connector may send it
    ],
)
def test_the_last_change_of_a_key_counts(site: Site, given: list[Change], left: dict[int, str]) -> None:
    """Wherever and in whatever order they come, beside another key that nobody touches."""
    for number, tasks in enumerate(([given], [list(reversed(given))], [[one] for one in given])):
        own = site.beside(directory=site.directory / str(number))
        own.do("INSERT INTO {t} VALUES (99, 'other')")
        own.run(0, *(changes(*task) for task in tasks))
        assert content(own) == {**left, 99: "other"}
        assert own.leftovers() == []


def test_an_epoch_follows_another(site: Site) -> None:
    """If the table does not have the order, what comes in a later epoch is later."""
    site.run(0, changes(("+I", 1, "a", 9)))
    site.run(1, changes(("+U", 1, "b", 3)))
    assert content(site) == {1: "b"}
    site.run(2, changes(("-D", 1, None, 1)))
    assert content(site) == {}


def test_a_late_change_does_nothing(ordered: Site) -> None:
    """If the table has the order: neither a row nor a delete older than the row; an equal one does."""
    ordered.run(0, changes(("+I", 1, "a", 5), ("+I", 2, "b", 5), ("+I", 3, "c", 5)))
    ordered.run(1, changes(("+U", 1, "late", 4), ("-D", 2, None, 4), ("-U", 3, "c", 4), ("+U", 4, "c", 4)))
    assert content(ordered) == {1: "a", 2: "b", 3: "c", 4: "c"}
    ordered.run(2, changes(("+U", 1, "equal", 5), ("-D", 2, None, 5)))
    assert content(ordered) == {1: "equal", 3: "c", 4: "c"}
    assert ordered.do("SELECT at FROM {t} WHERE id = 1") == [(5,)]


def test_a_delete_leaves_nothing_to_compare_with(ordered: Site) -> None:
    """A change that is older than a delete of an earlier epoch brings the row back: the documented limit."""
    ordered.run(0, changes(("+I", 1, "a", 1), ("-D", 1, None, 5)))
    ordered.run(1, changes(("+U", 1, "late", 4)))
    assert content(ordered) == {1: "late"}


def simulated(history: Iterable[Change]) -> dict[int, str | None]:
    """What a source has in the end whose log this is."""
    rows: dict[int, str | None] = {}
    for kind, key, name, _ in history:
        if kind in {"+I", "+U"}:
            rows[key] = name
        else:
            rows.pop(key, None)
    return rows


def random_history(chance: random.Random) -> list[Change]:
    """The log of a source: inserts, updates, changes of keys and deletes that were possible then."""
    log: list[Change] = []
    rows: dict[int, str] = {}
    for at in range(chance.randrange(5, 60)):
        key, name = chance.randrange(6), f"n{at}"
        if key not in rows:
            log.append(("+I", key, name, at))
        elif chance.random() < 0.3:
            log.append(("-D", key, rows.pop(key), at))
            continue
        else:
            free = [one for one in range(6) if one not in rows or one == key]
            new = chance.choice(free)
            log += [("-U", key, rows.pop(key), at), ("+U", new, name, at)]
            key = new
        rows[key] = name
    return log


@pytest.mark.parametrize("kind", ["site", "ordered"])
def test_random_histories(request: pytest.FixtureRequest, kind: str) -> None:
    """A log that is cut into epochs, each in any order and in any tasks, makes the table of its source."""
    seed = random.randrange(1 << 32)  # noqa: S311 - a history, no secret
    print("seed", seed)  # noqa: T201 - shown if the test fails
    chance = random.Random(seed)  # noqa: S311
    site = request.getfixturevalue(kind)
    for number in range(5):
        own = site.beside(directory=site.directory / f"{number}")
        log = random_history(chance)
        done: list[Change] = []
        for epoch in range(3):
            size = len(log) if epoch == 2 else chance.randrange(len(log) + 1)
            part, log = log[:size], log[size:]
            done += part
            shuffled = chance.sample(part, len(part))
            tasks = [shuffled[task::2] for task in range(2)]
            own.run(epoch, *(changes(*one) for one in tasks))
            assert content(own) == simulated(done), (seed, number, epoch)


def test_a_replay_changes_nothing(site: Site) -> None:
    """A commit that is called again finds its epoch, and what has changed since stays."""
    staged = site.staged(changes(("+I", 1, "a", 1), ("-D", 2, None, 1)))
    commit(site, staged)
    site.do("UPDATE {t} SET name = 'since'; INSERT INTO {t} VALUES (2, 'since')")
    commit(site, staged)
    assert content(site) == {1: "since", 2: "since"}


def test_a_micro_batch_comes_again(site: Site) -> None:
    """In other partitions, after a restart: nothing is written."""
    one, two = changes(("+I", 1, "a", 1)), changes(("-D", 1, None, 2), ("+I", 2, "b", 3))
    site.run(0, one, two)
    site.run(1, changes(("+U", 2, "c", 4)))
    driver: EpochLoop[Any, Any, Any] = site.driver()
    assert driver.run(micro_batch(1), site.job(changes(("+U", 2, "c", 4)))).replayed
    assert content(site) == {2: "c"}


@pytest.mark.parametrize(
    "given",
    [
        [("+U", 1, "a", 5), ("+U", 1, "b", 5)],
        [("+U", 1, "a", 5), ("-D", 1, None, 5)],
        [("+I", 1, "old", 1), ("+U", 1, "a", 5), ("-U", 1, "old", 5), ("+U", 1, "b", 5)],
    ],
)
@pytest.mark.parametrize("tasks", [1, 2])
def test_two_changes_of_one_order(site: Site, given: list[Change], tasks: int) -> None:
    """If they differ nothing says which one stands: nothing is visible, and nothing is left."""
    site.run(0, changes(("+I", 7, "a", 1)))
    parts = [changes(*given)] if tasks == 1 else [changes(*given[::2]), changes(*given[1::2])]
    with pytest.raises(DataError, match=r"the same key \(id\) and the same order") as raised:
        site.run(1, *parts)
    assert raised.value.code == "DUPLICATE_KEY"
    assert content(site) == {7: "a"}
    assert site.leftovers() == []


def test_two_of_one_order_that_are_not_the_last(site: Site) -> None:
    """Nobody needs to know which one was first."""
    site.run(0, changes(("+U", 1, "a", 5), ("+U", 1, "b", 5), ("+U", 1, "c", 6)))
    assert content(site) == {1: "c"}


def test_without_an_order(site: Site) -> None:
    """A key changes once in an epoch, or it is refused; a pair is one change."""
    schema = pa.schema([field for field in CHANGES if field.name != "at"])
    options = {"newest_by": None}
    pair = changes(("-U", 1, "a"), ("+U", 1, "b"), ("-U", 2, "x"), ("+U", 3, "x"), schema=schema)
    site.run(0, pair, **options)
    assert content(site) == {1: "b", 3: "x"}
    with pytest.raises(DataError, match="nothing says which one stands") as raised:
        site.run(1, changes(("+I", 1, "a"), ("-D", 1, "a"), schema=schema), **options)
    assert raised.value.code == "DUPLICATE_KEY"


@pytest.mark.parametrize("kind", ["u", "", "+i", " +I", "INSERT", None])
def test_a_word_that_is_no_kind(site: Site, kind: str | None) -> None:
    """It is refused before the decision, without showing a value; a row is never left out in silence."""
    with pytest.raises(DataError, match=r"'row_kind' has a word, or a null") as raised:
        site.run(0, changes(("+I", 1, "hush", 1), (kind, 2, "hush", 2)))
    assert raised.value.code == "ROW_KIND"
    assert "hush" not in str(raised.value)
    assert content(site) == {}
    assert site.leftovers() == []


@pytest.mark.parametrize(
    ("bad", "column"),
    [(("+I", None, "a", 1), "id"), (("-D", None, "a", 1), "id"), (("+U", 1, "a", None), "at"),
     (("-D", 1, "a", None), "at"), (("+I", 1, None, 1), "name"), (("+U", 1, None, 1), "name")],
)  # fmt: skip
def test_a_null_where_none_can_be(site: Site, bad: tuple[Any, ...], column: str) -> None:
    """A key, an order, and what the table needs of a row that comes; of one that goes only its key counts."""
    with pytest.raises(DataError, match=f"'{column}'") as raised:
        site.run(0, changes(("-D", 5, None, 1), bad))
    assert raised.value.code == "POSTGRES_VALUE"
    assert content(site) == {}
    assert site.leftovers() == []


def test_rows_go_before_others_come(site: Site) -> None:
    """What is unique beside the key may move from one row to another, also when its key changes."""
    site.do("ALTER TABLE {t} ADD UNIQUE (name)")
    site.run(0, changes(("+I", 1, "a", 1), ("+I", 2, "b", 2)))
    site.run(1, changes(("-D", 1, "a", 3), ("+I", 3, "a", 4), ("-U", 2, "b", 5), ("+U", 4, "b", 5)))
    assert content(site) == {3: "a", 4: "b"}


def test_what_the_table_refuses(site: Site) -> None:
    """A delete, too, is rehearsed before the decision."""
    site.run(0, changes(("+I", 1, "a", 1)))
    site.do("CREATE TABLE {s}.orders (id bigint REFERENCES {t}); INSERT INTO {s}.orders VALUES (1)")
    with pytest.raises(DataError) as raised:
        site.run(1, changes(("-D", 1, "a", 2), ("+I", 2, "b", 3)))
    assert raised.value.code == "POSTGRES_VALUE"
    assert content(site) == {1: "a"}
    assert site.leftovers() == ["orders"]


@pytest.mark.parametrize("name", ['a "key"', "select", "user", "place", "s", "row_kind", "%s {}"])
def test_names_of_columns(site: Site, name: str) -> None:
    """A key with quotes, words of SQL, names that our own statements use, that of another table's kinds."""
    kind = "order" if name == "row_kind" else "row_kind"
    quoted = name.replace('"', '""').replace("{}", "{{}}")
    own = site.beside(ddl="")
    own.do(f'CREATE TABLE {{t}} ("{quoted}" bigint PRIMARY KEY, "group" text NOT NULL)')
    schema = pa.schema(
        [(kind, pa.string()), (name, pa.int64()), ("group", pa.string()), ("desc", pa.int64())]
    )
    options = {"keys": [name], "row_kind": kind, "newest_by": "desc"}
    own.run(0, changes(("+I", 1, "a", 1), ("+I", 2, "b", 1), schema=schema), **options)
    own.run(1, changes(("-D", 1, None, 2), ("-U", 2, "b", 3), ("+U", 3, "c", 3), schema=schema), **options)
    assert own.do("SELECT * FROM {t}") == [(3, "c")]


def test_a_key_of_many_columns(site: Site) -> None:
    """All of them tell rows apart."""
    own = site.beside(
        ddl="id bigint, name text, PRIMARY KEY (name, id)", options={**OPTIONS, "keys": ["id", "name"]}
    )
    own.run(0, changes(("+I", 1, "a", 1), ("+I", 1, "b", 1), ("-D", 1, "a", 2)))
    assert own.do("SELECT * FROM {t}") == [(1, "b")]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.int64()), [[1, 9], [1, 10], [2, 0]]),
        (pa.string(), ["Z", "a", "é"]),  # by bytes
        (pa.timestamp("us", "UTC"), [1, 2, 3]),
        (pa.decimal128(20, 0), [1, 2, 10]),
    ],
)
def test_types_of_an_order(site: Site, kind: pa.DataType, values: list[Any]) -> None:
    """That the table need not have: numbers, places in a log, texts."""
    schema = CHANGES.set(3, pa.field("at", kind))
    given = [("+U", 1, f"n{number}", value) for number, value in enumerate(values)]
    site.run(0, changes(*reversed(given), schema=schema))
    assert content(site) == {1: "n2"}


def test_other_columns_stay(site: Site) -> None:
    """Those that the changes do not have keep what they had."""
    site.do("ALTER TABLE {t} ADD note text DEFAULT 'none'")
    site.run(0, changes(("+I", 1, "a", 1)))
    site.do("UPDATE {t} SET note = 'kept'")
    site.run(1, changes(("-U", 1, "a", 2), ("+U", 1, "b", 2)))
    assert site.do("SELECT * FROM {t}") == [(1, "b", "kept")]


def test_a_new_table(site: Site) -> None:
    """It has the order of its changes, and not their kinds."""
    own = site.beside(ddl="")
    own.run(0, changes(("+I", 1, "a", 1), ("-D", 2, None, 1)), on_missing="create")
    assert own.do("SELECT * FROM {t}") == [(1, "a", 1)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": []}, "give keys, too"),
        ({"row_kind": "id"}, "another column than keys"),
        ({"row_kind": "at"}, "another column than keys"),
        ({"row_kind": ""}, "row_kind must be the name of a column"),
        ({"row_kind": "x" * 64}, "row_kind must have 1 to 63 bytes"),
        ({"commit": "prepared"}, "commit='prepared' has no keys"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, Any], said: str) -> None:
    """Refused when they are given: without keys a change has no row to change."""
    given = {**OPTIONS, **options}
    if not given["keys"]:
        given["newest_by"] = None
    with pytest.raises(ConfigError, match=said):
        PostgresTable("goods", **given)


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (pa.schema([one for one in CHANGES if one.name != "row_kind"]), "UNKNOWN_COLUMN"),
        (pa.schema([one for one in CHANGES if one.name != "at"]), "UNKNOWN_COLUMN"),
        (CHANGES.set(0, pa.field("row_kind", pa.int32())), "TYPE"),
        (CHANGES.set(3, pa.field("at", pa.map_(pa.string(), pa.string()))), "TYPE"),
        (CHANGES.append(pa.field("more", pa.int64())), "UNKNOWN_COLUMN"),
    ],
)
def test_columns_that_do_not_fit(site: Site, schema: pa.Schema, code: str) -> None:
    """Refused before anything is read."""
    with pytest.raises(SchemaError) as raised:
        site.tiers().prepare(schema)
    assert raised.value.code == code


def test_the_right_to_delete(site: Site) -> None:
    """It is looked at first."""
    user = f"clerk_{site.schema}"
    site.do(f"CREATE ROLE {user} LOGIN; CREATE SCHEMA {{s}}_own AUTHORIZATION {user}")
    site.do(f"GRANT USAGE ON SCHEMA {{s}} TO {user}; GRANT SELECT, INSERT, UPDATE ON {{t}} TO {user}")
    site.conninfo = site.server.conninfo.replace("user=postgres", f"user={user}")
    options = {"staging_schema": f"{site.schema}_own"}
    with pytest.raises(ConfigError, match="GRANT SELECT, DELETE") as raised:
        site.tiers(**options).prepare(CHANGES)
    assert raised.value.code == "POSTGRES_RIGHTS"
    site.do(f"GRANT DELETE ON {{t}} TO {user}")
    site.run(0, changes(("+I", 1, "a", 1), ("-D", 2, None, 1)), **options)
    assert content(site) == {1: "a"}
