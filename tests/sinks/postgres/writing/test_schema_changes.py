"""A table that follows the columns of the DataFrame, between two epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink import ConfigError, FilesinkError, PostgresTable, SchemaError, StorageError
from filesink.sinks.postgres.copy.types import SqlType, is_wider, new_sql_type, to_field
from filesink.sinks.postgres.target.table import read_table
from tests.fakes import micro_batch
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import SCHEMA, Site, rows

APPLY: dict[str, Any] = {"on_schema_change": "apply"}


@pytest.fixture
def site(postgres: TestServer, tmp_path: Path) -> Site:
    """A table that follows."""
    return Site(postgres, tmp_path, options=APPLY)


def batch(**columns: pa.Array[Any]) -> pa.RecordBatch:
    """A batch with these columns."""
    return pa.RecordBatch.from_pydict(columns)


def ids(*values: int) -> pa.Array[Any]:
    """Values of the column id."""
    return pa.array(values, pa.int64())


def columns_of(site: Site) -> dict[str, str]:
    """The columns of the table and their types."""
    return dict(
        site.do("SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE attrelid = "
                "'{t}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum")
    )  # fmt: skip


def refused(site: Site, batch_id: int, found: pa.RecordBatch, **options: Any) -> FilesinkError:
    """How an epoch is refused; it changes nothing, neither rows nor columns."""
    before = columns_of(site), site.multiset(), site.leftovers()
    with pytest.raises(FilesinkError) as raised:
        site.run(batch_id, found, **options)
    assert (columns_of(site), site.multiset(), site.leftovers()) == before
    return raised.value


def test_a_column_is_added(site: Site) -> None:
    """Before the first epoch that has it; rows that were there have null, and names are quoted."""
    site.run(0, rows(1))
    site.run(1, batch(id=ids(2), name=pa.array(["b"]), **{'the "new" %s': pa.array([1.5])}))
    assert columns_of(site) == {"id": "bigint", "name": "text", 'the "new" %s': "double precision"}
    assert sorted(site.do("SELECT * FROM {t}")) == [(1, "n1", None), (2, "b", 1.5)]


def test_by_default_nothing_is_altered(site: Site) -> None:
    """A column that the table lacks is refused, with its name."""
    error = refused(site, 0, batch(id=ids(1), more=ids(1)), on_schema_change="refuse")
    assert isinstance(error, SchemaError)
    assert (error.code, "'more'" in error.message) == ("UNKNOWN_COLUMN", True)


def test_what_each_change_is_without_being_asked_for(site: Site) -> None:
    """A column fewer gets its default, a narrower type fits; nothing else does, as docs/changes.md says."""
    own = site.beside(ddl="id bigint, name text DEFAULT 'none', size integer NOT NULL", options={})
    name, size = pa.array(["a"]), pa.array([1], pa.int32())
    own.run(0, batch(id=ids(1), name=name, size=size))
    for code, found in {
        "UNKNOWN_COLUMN": batch(id=ids(2), title=name, size=size),
        "MISSING_COLUMN": batch(id=ids(2), name=name),
        "TYPE": batch(id=ids(2), name=name, size=ids(1)),
    }.items():
        assert refused(own, 1, found).code == code
    own.run(1, batch(id=pa.array([2], pa.int16()), size=size))
    assert sorted(own.do("SELECT * FROM {t}")) == [(1, "a", 1), (2, "none", 1)]


WIDENED = [
    ("smallint", pa.int64(), "bigint"),
    ("integer", pa.int64(), "bigint"),
    ("integer", pa.float64(), "double precision"),
    ("integer", pa.decimal128(12, 2), "numeric(12,2)"),
    ("real", pa.float64(), "double precision"),
    ("numeric(5,2)", pa.decimal128(8, 3), "numeric(8,3)"),
    ("date", pa.timestamp("us"), "timestamp without time zone"),
    ("integer[]", pa.list_(pa.int64()), "bigint[]"),
]


@pytest.mark.parametrize(("old", "new", "becomes"), WIDENED)
def test_a_type_grows(site: Site, old: str, new: pa.DataType, becomes: str) -> None:
    """If the new one has every value of the old one."""
    own = site.beside(ddl=f"id bigint, name {old}")
    own.do("INSERT INTO {t} VALUES (1, NULL)")
    own.run(0, batch(id=ids(2), name=pa.nulls(1, new)))
    assert columns_of(own)["name"] == becomes
    assert own.ids_there() == [1, 2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", pa.float64()),
        ("bigint", pa.string()),
        ("integer", pa.decimal128(11, 2)),
        ("numeric(8,3)", pa.decimal128(8, 4)),
        ("timestamp", pa.date32()),
        ("text", pa.int64()),
        ("jsonb", pa.int32()),
        ("integer", pa.list_(pa.int64())),
    ],
)
def test_a_type_that_loses_something(site: Site, old: str, new: pa.DataType) -> None:
    """It is refused, and the table left as it is."""
    own = site.beside(ddl=f"id bigint, name {old}")
    assert refused(own, 0, batch(id=ids(2), name=pa.nulls(1, new))).code == "TYPE"


def test_a_domain_is_not_widened(site: Site) -> None:
    """It may have checks of its own."""
    site.do("CREATE DOMAIN {s}.small AS integer CHECK (VALUE < 10)")
    site.do("ALTER TABLE {t} ADD size {s}.small")
    assert refused(site, 0, batch(id=ids(1), size=ids(1))).code == "TYPE"


def test_a_narrower_type_fits(site: Site) -> None:
    """The table keeps the wider one."""
    site.run(0, rows(1))
    site.run(1, batch(id=pa.array([2], pa.int32()), name=pa.array(["b"])))
    assert columns_of(site) == {"id": "bigint", "name": "text"}


def test_a_column_that_goes_is_never_dropped_in_silence(site: Site) -> None:
    """Nobody knows whether it was dropped or has another name now: the last epoch tells that it was there."""
    site.run(0, rows(1))
    error = refused(site, 1, batch(id=ids(2), title=pa.array(["b"])))
    assert isinstance(error, SchemaError)
    assert error.code == "SCHEMA_CHANGE"
    assert "renamed={'name': …}" in error.message
    site.run(1, batch(id=ids(2), title=pa.array(["b"])), renamed={"name": "title"})
    assert sorted(site.do("SELECT id, title FROM {t}")) == [(1, "n1"), (2, "b")]
    assert columns_of(site) == {"id": "bigint", "title": "text"}


def test_a_column_that_goes_from_one_batch_write_to_the_next(site: Site) -> None:
    """Refused as in a stream, whether left out or under another name; nothing is altered or written."""
    site.write(rows(1))
    renamed = batch(id=ids(2), title=pa.array(["b"]))
    before = columns_of(site), site.multiset(), site.leftovers()
    for found in (batch(id=ids(2)), renamed):
        with pytest.raises(SchemaError, match=r"renamed=\{'name': …\}") as raised:
            site.write(found)
        assert raised.value.code == "SCHEMA_CHANGE"
        assert (columns_of(site), site.multiset(), site.leftovers()) == before
    site.write(renamed, renamed={"name": "title"})
    site.write(batch(id=ids(3)), dropped=["title"])
    assert (columns_of(site), site.ids_there()) == ({"id": "bigint"}, [1, 2, 3])


def test_batch_writes_that_leave_out_columns_by_default(site: Site) -> None:
    """They need not be those of the last write, where the table does not follow them."""
    site.write(rows(1), on_schema_change="refuse")
    site.write(batch(id=ids(2)), on_schema_change="refuse")
    assert sorted(site.do("SELECT id, name FROM {t}")) == [(1, "n1"), (2, None)]


def test_a_rename_that_is_done(site: Site) -> None:
    """It may be said for ever."""
    renamed = {"name": "title"}
    site.run(0, rows(1))
    for number in (1, 2):
        site.run(number, batch(id=ids(number + 1), title=pa.array(["b"])), renamed=renamed)
    assert site.ids_there() == [1, 2, 3]


def test_a_column_is_dropped_if_it_is_named(site: Site) -> None:
    """With its values; once it has gone there is nothing to do."""
    site.run(0, rows(1))
    for number in (1, 2):
        site.run(number, batch(id=ids(number + 1)), dropped=["name"])
    assert columns_of(site) == {"id": "bigint"}
    assert site.ids_there() == [1, 2, 3]


@pytest.mark.parametrize("options", [{"dropped": ["name"]}, {"renamed": {"name": "title"}}])
def test_a_column_that_is_still_there(site: Site, options: dict[str, Any]) -> None:
    """Or is back: what is said of it is no longer so."""
    assert refused(site, 0, rows(1), **options).code == "SCHEMA_CHANGE"


def test_a_new_name_that_is_taken(site: Site) -> None:
    """Which of the two has the values is not ours to say."""
    site.do("ALTER TABLE {t} ADD title text")
    found = batch(id=ids(1), title=pa.array(["b"]))
    assert refused(site, 0, found, renamed={"name": "title"}).code == "SCHEMA_CHANGE"


def test_a_key_gets_another_name(site: Site) -> None:
    """The index goes with it."""
    own = site.beside(ddl="id bigint PRIMARY KEY, name text", options={**APPLY, "keys": ["number"]})
    own.run(0, rows(1), keys=["id"])
    found = rows(1, name="new").rename_columns(["number", "name"])
    own.run(1, found, renamed={"id": "number"})
    assert own.do("SELECT number, name FROM {t}") == [(1, "new1")]


def test_several_at_once_are_done_or_not(site: Site) -> None:
    """A view stands in the way of one of them: the others are not done either, and nothing is written."""
    site.do("ALTER TABLE {t} ADD size integer; CREATE VIEW {s}.sizes AS SELECT size FROM {t}")
    found = batch(id=ids(1), name=pa.array(["a"]), size=ids(1), more=ids(1))
    error = refused(site, 0, found)
    assert isinstance(error, StorageError)
    assert error.code == "POSTGRES_REFUSED"
    site.do("DROP VIEW {s}.sizes")
    site.run(0, found)
    assert columns_of(site) == {"id": "bigint", "name": "text", "size": "bigint", "more": "bigint"}


def test_what_is_decided_comes_before_the_change(site: Site) -> None:
    """A driver that died after the decision has left rows with the columns of before."""
    site.run(0, rows(1))
    tiers = site.tiers()
    tiers.prepare(SCHEMA)
    site.do("ALTER TABLE {t} ADD CHECK (id <> 2)")  # so that the commit fails after the decision
    with pytest.raises(FilesinkError):
        site.driver(rehearsal="never").run(micro_batch(1), site.job(rows(2)))
    site.do("ALTER TABLE {t} DROP CONSTRAINT goods_id_check")
    found = batch(id=ids(3), title=pa.array(["c"]), more=ids(3))
    site.run(2, found, renamed={"name": "title"})
    assert sorted(site.do("SELECT * FROM {t}")) == [(1, "n1", None), (2, "n2", None), (3, "c", 3)]


def test_another_driver_was_faster(site: Site) -> None:
    """Between the plan and the lock: a second look finds nothing left to do."""
    found = batch(id=ids(1), more=ids(1))
    (_, fit) = site.tiers().pre_commit_stages()
    site.tiers().prepare(found.schema)
    planned = fit._planned
    calls: list[int] = []

    def slowly(connection: Any, schema: pa.Schema) -> Any:
        seen = planned(connection, schema)
        if not calls:
            site.do("ALTER TABLE {t} ADD more bigint")
        calls.append(len(seen))
        return seen

    fit._planned = slowly
    with site.connect() as connection:
        fit._fit(connection, found.schema)
    assert calls == [1, 0]
    assert columns_of(site)["more"] == "bigint"


def test_kinds_and_orders_are_not_added(site: Site) -> None:
    """A table of changes gets the columns of its source, and no others."""
    options = {**APPLY, "keys": ["id"], "row_kind": "kind", "newest_by": "at"}
    own = site.beside(ddl="id bigint PRIMARY KEY", options=options)
    found = batch(kind=pa.array(["+I", "-D"]), id=ids(1, 2), at=ids(1, 1), more=pa.array(["a", None]))
    own.run(0, found)
    assert own.do("SELECT * FROM {t}") == [(1, "a")]
    assert list(columns_of(own)) == ["id", "more"]


def test_only_the_owner_may_alter(site: Site) -> None:
    """Others are told before anything is read; they may write as long as nothing has to be altered."""
    user = f"clerk_{site.schema}"
    site.do(f"CREATE ROLE {user} LOGIN; CREATE SCHEMA {{s}}_own AUTHORIZATION {user}")
    site.do(f"GRANT USAGE ON SCHEMA {{s}} TO {user}; GRANT INSERT ON {{t}} TO {user}")
    site.conninfo = site.server.conninfo.replace("user=postgres", f"user={user}")
    options = {"staging_schema": f"{site.schema}_own"}
    site.run(0, rows(1), **options)
    with pytest.raises(ConfigError, match="only its owner may") as raised:
        site.tiers(**options).prepare(batch(id=ids(1), more=ids(1)).schema)
    assert raised.value.code == "POSTGRES_RIGHTS"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"renamed": {"a": "b"}}, "need on_schema_change='apply'"),
        ({"dropped": ["a"]}, "need on_schema_change='apply'"),
        ({**APPLY, "commit": "prepared"}, "would lock the table"),
        ({**APPLY, "dropped": ["id"], "keys": ["id"]}, "names that columns have now"),
        ({**APPLY, "renamed": {"id": "key"}, "keys": ["id"]}, "names that columns have now"),
        ({**APPLY, "renamed": {"a": "b", "b": "c"}}, "names that columns have now"),
        ({**APPLY, "renamed": {"a": "b"}, "dropped": ["a"]}, "names that columns have now"),
        ({**APPLY, "renamed": {"a": "c", "b": "c"}}, "the same name"),
        ({**APPLY, "renamed": ["a", "b"]}, "must be a dict"),
        ({**APPLY, "dropped": "abc"}, "must be a list of names"),
        ({"on_schema_change": "raise"}, "on_schema_change"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, Any], said: str) -> None:
    """Refused when they are given."""
    with pytest.raises(ConfigError, match=said):
        PostgresTable("goods", **options)


def test_a_new_type_is_what_the_server_makes_of_it(site: Site) -> None:
    """The catalog says of a column that was created what was planned with."""
    kinds = [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.decimal128(7, 2), pa.string(), pa.binary(), pa.date32(), pa.timestamp("us")),
        *(pa.timestamp("us", "UTC"), pa.time64("us"), pa.duration("us"), pa.list_(pa.int32())),
        pa.list_(pa.string()),
    ]
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(kinds)])
    own = site.beside(ddl="", options={"on_missing": "create"})
    own.tiers().prepare(schema)
    with own.connect() as connection:
        table = read_table(connection, own.schema, own.table)
    assert table is not None
    for field, column in zip(schema, table.columns, strict=True):
        made = new_sql_type(field)
        assert (made.base, made.element) == (column.type.base, column.type.element)
        assert made.modifier == column.type.modifier
        assert to_field(field.type, made) is not None


def test_a_numeric_without_digits_takes_all() -> None:
    """Nothing is wider."""
    anything = SqlType(text="numeric", base="numeric")
    assert not is_wider(new_sql_type(pa.field("a", pa.decimal128(38, 10))), anything)
