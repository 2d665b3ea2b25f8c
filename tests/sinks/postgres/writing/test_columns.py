"""Columns of the DataFrame and of the table; what is looked at before anything is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from filesink import ConfigError, FilesinkError, PostgresTable, SchemaError
from filesink.sinks.postgres.copy.types import SqlType, spark_name, to_field
from tests.sinks.postgres.site import SCHEMA, Site, commit, rows


def code_of(site: Site, schema: pa.Schema = SCHEMA, **options: Any) -> str:
    """How ``prepare`` refuses ``schema``."""
    with pytest.raises(FilesinkError) as raised:
        site.tiers(**options).prepare(schema)
    assert raised.value.is_permanent
    return raised.value.code


def test_columns_are_matched_by_name(site: Site) -> None:
    """In any order, and regardless of case where that is not ambiguous; others get their default."""
    own = site.beside(ddl="name text, note text DEFAULT 'none', \"Id\" bigint, more int")
    commit(own, own.staged(rows(1)))
    assert own.do("SELECT * FROM {t}") == [("n1", "none", 1, None)]


def test_an_exact_name_comes_first(site: Site) -> None:
    """Of two that differ in case alone."""
    own = site.beside(ddl='"ID" bigint, id bigint, name text')
    commit(own, own.staged(rows(1)))
    assert own.do("SELECT * FROM {t}") == [(None, 1, "n1")]


@pytest.mark.parametrize(
    ("ddl", "code"),
    [
        ("id bigint", "UNKNOWN_COLUMN"),
        ('"ID" bigint, "Id" bigint, name text', "UNKNOWN_COLUMN"),
        ("id bigint GENERATED ALWAYS AS IDENTITY, name text", "UNKNOWN_COLUMN"),
        ("id bigint, name text GENERATED ALWAYS AS ('x') STORED", "UNKNOWN_COLUMN"),
        ("id bigint, name text, more int NOT NULL", "MISSING_COLUMN"),
        ("id integer, name text", "TYPE"),
        ("id numeric(18,0), name text", "TYPE"),
        ("id text, name text", "TYPE"),
        ("id bigint, name bytea", "TYPE"),
        ("id bigint, name inet", "TYPE"),
        ("id bigint, name text[]", "TYPE"),
    ],
)
def test_tables_that_do_not_fit(site: Site, ddl: str, code: str) -> None:
    """Each is refused before anything is read."""
    assert code_of(site.beside(ddl=ddl)) == code


def test_two_columns_for_one(site: Site) -> None:
    """Spark may tell them apart, the table does not."""
    schema = pa.schema([("id", pa.int64()), ("ID", pa.int64()), ("name", pa.string())])
    assert code_of(site, schema) == "UNKNOWN_COLUMN"


def test_a_frame_without_columns(site: Site) -> None:
    """There is nothing to write."""
    assert code_of(site, pa.schema([])) == "UNKNOWN_COLUMN"


@pytest.mark.parametrize(
    ("kind", "base", "modifier", "fits"),
    [
        (pa.decimal128(10, 2), "numeric", -1, True),
        (pa.decimal128(10, 2), "numeric", (10 << 16 | 2) + 4, True),
        (pa.decimal128(10, 2), "numeric", (12 << 16 | 2) + 4, True),
        (pa.decimal128(10, 2), "numeric", (11 << 16 | 3) + 4, True),
        (pa.decimal128(10, 2), "numeric", (10 << 16 | 3) + 4, False),
        (pa.decimal128(10, 2), "numeric", (20 << 16 | 1) + 4, False),
        (pa.decimal128(10, 2), "numeric", (10 << 16 | 0x7FE) + 4, False),  # scale -2
        (pa.int32(), "numeric", (10 << 16 | 0) + 4, True),
        (pa.int32(), "numeric", (9 << 16 | 0) + 4, False),
        (pa.int64(), "int4", -1, False),
        (pa.int32(), "int8", -1, True),
        (pa.float64(), "float4", -1, False),
        (pa.float64(), "numeric", -1, False),
        (pa.timestamp("us"), "timestamptz", -1, False),
        (pa.timestamp("us", "UTC"), "timestamp", -1, False),
        (pa.null(), "text", -1, False),
        (pa.struct([("a", pa.int8())]), "jsonb", -1, False),
    ],
)
def test_what_takes_what(kind: pa.DataType, base: str, modifier: int, *, fits: bool) -> None:
    """A type takes another one if it takes all of its values."""
    assert (to_field(kind, SqlType(text=base, base=base, modifier=modifier)) is not None) == fits
    assert spark_name(kind).isupper() or "(" in spark_name(kind)


def test_a_type_is_called_as_spark_calls_it(site: Site) -> None:
    """And the message says what to do."""
    for kind, said in [
        (pa.map_(pa.string(), pa.int8()), r"every MAP: use to_json\(…\) and a column of type jsonb"),
        (
            pa.decimal128(20, 3),
            r"is bigint and does not take every DECIMAL\(20,3\): cast it in the DataFrame",
        ),
        (pa.list_(pa.int32()), "every ARRAY<INT>"),
    ]:
        with pytest.raises(SchemaError, match=said):
            site.tiers().prepare(pa.schema([("id", kind), ("name", pa.string())]))


def test_a_new_table(site: Site) -> None:
    """Every type that is taken can be created, and takes what it was created for."""
    kinds = [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.decimal128(7, 2), pa.string(), pa.large_string(), pa.binary(), pa.date32(), pa.timestamp("us")),
        *(pa.timestamp("us", "UTC"), pa.time64("us"), pa.duration("us"), pa.list_(pa.int8())),
    ]
    schema = pa.schema([(f'column "{kind}"', kind) for kind in kinds])
    own = site.beside(ddl="", options={"on_missing": "create"})
    own.tiers().prepare(schema)
    own.tiers().prepare(schema)  # it is there
    commit(own, own.staged(pa.record_batch({one.name: pa.nulls(2, one.type) for one in schema}, schema)))
    assert own.do("SELECT count(*) FROM {t}") == [(2,)]


def test_a_new_table_without_a_type(site: Site) -> None:
    """What PostgreSQL has no type for is refused, and no table is made."""
    own = site.beside(ddl="", options={"on_missing": "create"})
    assert code_of(own, pa.schema([("a", pa.map_(pa.string(), pa.string()))])) == "TYPE"
    assert own.leftovers() == []


@pytest.mark.parametrize("options", [{"on_missing": "create"}, {"on_schema_change": "apply"}, {}], ids=str)
@pytest.mark.parametrize("name", ["", "c" * 64, "ü" * 32, "a\0b"], ids=["empty", "64", "64 bytes", "NUL"])
def test_names_that_no_table_can_have(site: Site, name: str, options: dict[str, Any]) -> None:
    """Each is refused with the reason before anything is created or altered; one of 63 bytes is taken."""
    own = site.beside(ddl="" if "on_missing" in options else "id bigint")
    schema = pa.schema([("id", pa.int64()), (name, pa.int64())])
    with pytest.raises(SchemaError, match="1 to 63 bytes") as raised:
        own.tiers(**options).prepare(schema)
    assert (raised.value.code, repr(name) in raised.value.message) == ("COLUMN_NAME", True)
    assert own.leftovers() == []
    if options:
        own.tiers(**options).prepare(pa.schema([("id", pa.int64()), ("ü" * 31 + "c", pa.int64())]))


def test_there_is_no_such_table(site: Site) -> None:
    """Nor is a view one."""
    own = site.beside(ddl="")
    assert code_of(own) == "POSTGRES_TABLE"
    own.do("CREATE VIEW {t} AS SELECT 1::bigint AS id, ''::text AS name")
    assert code_of(own) == "POSTGRES_TABLE"


def test_names_are_quoted(site: Site) -> None:
    """Whatever they are: of schema, table and columns."""
    name = f'a "b"; DROP TABLE {site.schema}.goods; --{{}} %s'[:50]
    quoted = '"' + name.replace('"', '""') + '"'
    table = f"{quoted}.{quoted}"
    with site.connect() as connection:
        connection.execute(f"CREATE SCHEMA {quoted}")
        connection.execute(f"CREATE TABLE {table} ({quoted} bigint PRIMARY KEY, name text)")
    tiers = replace(site.tiers(), table=PostgresTable(table, keys=[name], newest_by="name"))
    batch = rows(1, 2).rename_columns([name, "name"])
    tiers.prepare(batch.schema)
    writer = tiers.create_writer(site.context())
    writer.write(batch, site.context())
    assert tiers.create_committer().commit(writer.prepare_commit(0)) == []
    writer.close()
    with site.connect() as connection:
        assert connection.execute(f"TABLE {table}").fetchall() == [(1, "n1"), (2, "n2")]
        connection.execute(f"DROP SCHEMA {quoted} CASCADE")
    assert site.ids_there() == []


@pytest.fixture
def clerk(site: Site) -> Site:
    """The same table for a user who may do little."""
    user = f"clerk_{site.schema}"
    site.do(f"CREATE ROLE {user} LOGIN")
    site.do(f"GRANT USAGE ON SCHEMA {{s}} TO {user}")
    site.conninfo = site.server.conninfo.replace("user=postgres", f"user={user}")
    return site


def test_rights_are_looked_at_first(clerk: Site) -> None:
    """Those that a commit needs would be missed too late; a schema of its own is enough for the rest."""
    user = f"clerk_{clerk.schema}"
    assert code_of(clerk) == "POSTGRES_RIGHTS"
    clerk.do(f"CREATE SCHEMA {{s}}_own AUTHORIZATION {user}")
    staging = {"staging_schema": f"{clerk.schema}_own"}
    assert code_of(clerk, **staging) == "POSTGRES_RIGHTS"
    clerk.do(f"GRANT INSERT (id) ON {{t}} TO {user}")
    assert code_of(clerk, **staging) == "POSTGRES_RIGHTS"
    clerk.do(f"GRANT INSERT ON {{t}} TO {user}")
    commit(clerk, clerk.staged(rows(1), **staging))
    assert clerk.ids_there() == [1]
    clerk.do("ALTER TABLE {t} ADD PRIMARY KEY (id)")
    assert code_of(clerk, keys=["id"], **staging) == "POSTGRES_RIGHTS"
    clerk.do(f"GRANT SELECT, UPDATE ON {{t}} TO {user}")
    commit(clerk, clerk.staged(rows(1, 2), epoch=1, keys=["id"], **staging))
    assert clerk.ids_there() == [1, 2]


def test_a_table_that_goes_while_it_is_written_to(site: Site) -> None:
    """A task finds out, too."""
    site.tiers().prepare(SCHEMA)
    site.do("DROP TABLE {t}")
    writer = site.tiers().create_writer(site.context())
    with pytest.raises(ConfigError, match="has gone"):
        writer.write(rows(1), site.context())
    writer.close()
