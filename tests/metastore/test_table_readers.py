"""What readers of a table would take for something else is refused before a table or a file is made."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pyarrow as pa
import pytest

from filesink.errors import SchemaError
from filesink.metastore.api import Column, Table, TableKind, TableName
from filesink.metastore.hive.structs import table_of
from filesink.metastore.memory import MemoryMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.policies import Site
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.storage.memory import MemoryFiles, MemoryStore

NAME = TableName.parse("db.t")
INSTANT = pa.timestamp("us", tz="UTC")
LOCAL = pa.timestamp("us")
MILLIS = json.dumps({"type": "long", "logicalType": "timestamp-millis"})
MICROS = json.dumps({"type": "long", "logicalType": "timestamp-micros"})


def site(hive_format: str, *keys: str, avro_schema: str | None = None) -> Site:
    """A sink that writes files of one format."""
    return Site(
        store=MemoryStore(MemoryFiles()),
        base_path="/base",
        partition_columns=keys,
        hive_format=hive_format,
        avro_schema=avro_schema,
    )


def table(hive_format: str, *columns: tuple[str, str], **parameters: str) -> MemoryMetastore:
    """A metastore that has a table; ``provider`` makes it one of Spark's own."""
    metastore = MemoryMetastore()
    metastore.create_table(
        Table(
            name=NAME,
            columns=tuple(Column(name=name, type=kind) for name, kind in columns),
            partition_keys=(),
            location="file:/base",
            format=HIVE_FORMATS[hive_format],
            parameters={f"spark.sql.sources.{name}": value for name, value in parameters.items()},
        )
    )
    return metastore


@pytest.mark.parametrize("kind", [LOCAL, pa.list_(LOCAL), pa.struct([("at", LOCAL)])])
@pytest.mark.parametrize("hive_format", ["parquet", "orc", "avro", "json"])
def test_no_table_is_created_with_local_times(hive_format: str, kind: pa.DataType) -> None:
    """Hive's timestamp is a wall clock to Hive and an instant to Spark: one of them would be wrong."""
    metastore = MemoryMetastore()
    policy = MetastorePolicy("db.t", metastore, create=TableKind.EXTERNAL)
    with pytest.raises(SchemaError, match=r"column 't(\[\]|\.at)?' is a timestamp") as caught:
        policy.prepare(site(hive_format), pa.schema([("t", kind)]))
    assert caught.value.code == "HIVE_TYPE"
    assert metastore.get_table(NAME) is None


@pytest.mark.parametrize(("wanted", "given"), [("timestamp", LOCAL), ("timestamp_ntz", INSTANT)])
def test_instants_and_local_times_are_two_types(wanted: str, given: pa.DataType) -> None:
    """A reader would shift one that stands for the other by the offset of its zone."""
    metastore = table("parquet", ("t", wanted), provider="parquet")
    with pytest.raises(SchemaError, match="cast it") as caught:
        MetastorePolicy("db.t", metastore).prepare(site("parquet"), pa.schema([("t", given)]))
    assert caught.value.code == "COLUMN_TYPE"


def test_local_times_go_into_tables_that_have_them() -> None:
    """Spark's own do, and its readers of Parquet and Avro see what was written."""
    for hive_format in ("parquet", "avro", "json"):
        metastore = table(hive_format, ("t", "timestamp_ntz"), provider=hive_format)
        MetastorePolicy("db.t", metastore).prepare(site(hive_format), pa.schema([("t", LOCAL)]))


def test_spark_finds_no_local_times_in_our_orc_files() -> None:
    """It tells them by an attribute of its own."""
    metastore = table("orc", ("s", "struct<t:timestamp_ntz>"), provider="orc")
    with pytest.raises(SchemaError, match=r"'s\.t' is a timestamp_ntz") as caught:
        MetastorePolicy("db.t", metastore).prepare(site("orc"), pa.schema([("s", pa.struct([("t", LOCAL)]))]))
    assert caught.value.code == "COLUMN_TYPE"


@pytest.mark.parametrize("avro_schema", [None, MICROS])
@pytest.mark.parametrize("kind", [INSTANT, pa.struct([("at", INSTANT)])])
def test_hive_reads_no_microseconds_from_avro(kind: pa.DataType, avro_schema: str | None) -> None:
    """It takes them for milliseconds; so neither a new table has them nor one that is there."""
    schema, where = pa.schema([("t", kind)]), site("avro", avro_schema=avro_schema)
    there = table("avro", ("t", "timestamp" if kind == INSTANT else "struct<at:timestamp>"))
    new = MemoryMetastore()
    for policy in (MetastorePolicy("db.t", there), MetastorePolicy("db.t", new, create=TableKind.EXTERNAL)):
        with pytest.raises(SchemaError, match="microseconds for milliseconds") as caught:
            policy.prepare(where, schema)
        assert caught.value.code == "COLUMN_TYPE"
    assert new.get_table(NAME) is None


@pytest.mark.parametrize(
    ("kind", "declared", "path"),
    [
        (INSTANT, "timestamp", "c"),
        (pa.binary(), "binary", "c"),
        (pa.map_(pa.date32(), pa.int32()), "map<date,int>", "c.key"),
        (pa.map_(INSTANT, pa.int32()), "map<timestamp,int>", "c.key"),
        (pa.struct([("x", pa.list_(INSTANT))]), "struct<x:array<timestamp>>", "c.x[]"),
        (pa.map_(pa.string(), pa.large_binary()), "map<string,binary>", "c.value"),
    ],
    ids=str,
)
def test_hive_reads_no_times_bytes_or_days_as_keys_from_json(
    kind: pa.DataType, declared: str, path: str
) -> None:
    """Its serde fails at them; neither a new table has them nor one that is there. Spark's own may."""
    schema, new = pa.schema([("c", kind)]), MemoryMetastore()
    there = table("json", ("c", declared))
    for policy in (MetastorePolicy("db.t", there), MetastorePolicy("db.t", new, create=TableKind.EXTERNAL)):
        with pytest.raises(SchemaError, match=f"column {re.escape(repr(path))} .*JsonSerDe") as caught:
            policy.prepare(site("json"), schema)
        assert caught.value.code == "COLUMN_TYPE"
    assert new.get_table(NAME) is None
    MetastorePolicy("db.t", table("json", ("c", declared), provider="json")).prepare(site("json"), schema)


def test_hive_reads_days_and_other_keys_from_json() -> None:
    """Values that are days have the text that its serde wants, and so have numbers that are keys."""
    schema = pa.schema([("d", pa.date32()), ("m", pa.map_(pa.int32(), pa.date32()))])
    there = table("json", ("d", "date"), ("m", "map<int,date>"))
    MetastorePolicy("db.t", there).prepare(site("json"), schema)


def test_milliseconds_in_a_schema_of_ones_own_are_what_hive_reads() -> None:
    """The way to have times in a Hive table of Avro."""
    metastore = MemoryMetastore()
    policy = MetastorePolicy("db.t", metastore, create=TableKind.EXTERNAL)
    policy.prepare(site("avro", avro_schema=MILLIS), pa.schema([("t", INSTANT)]))
    assert metastore.get_table(NAME) is not None


def test_partition_keys_of_times_are_not_in_avro_files() -> None:
    """They are text in the path."""
    metastore = MemoryMetastore()
    policy = MetastorePolicy("db.t", metastore, create=TableKind.EXTERNAL)
    policy.prepare(site("avro", "Day"), pa.schema([("id", pa.int64()), ("Day", INSTANT)]))
    assert metastore.get_table(NAME) is not None


def test_sparks_own_table_of_avro_has_microseconds() -> None:
    """Spark's reader looks at the logical type, and for names in any case."""
    metastore = table("avro", ("userName", "string"), ("t", "timestamp"), provider="avro")
    schema = pa.schema([("userName", pa.string()), ("t", INSTANT)])
    MetastorePolicy("db.t", metastore).prepare(site("avro"), schema)


@pytest.mark.parametrize(
    "schema",
    [pa.schema([("userName", pa.string())]), pa.schema([("s", pa.struct([("Id", pa.int64())]))])],
)
def test_hive_finds_lower_case_names_only_in_avro(schema: pa.Schema) -> None:
    """Columns of any other name would be null, in every row."""
    metastore = MemoryMetastore()
    policy = MetastorePolicy("db.t", metastore, create=TableKind.EXTERNAL)
    with pytest.raises(SchemaError, match=r"'(userName|s)' would be null in table db\.t") as caught:
        policy.prepare(site("avro"), schema)
    assert caught.value.code == "COLUMN_NAME"
    assert metastore.get_table(NAME) is None


@pytest.mark.parametrize("kind", ["struct<Id:bigint>", "array<struct< Id : bigint>>"])
def test_names_of_a_table_of_avro_are_compared_to_the_letter(kind: str) -> None:
    """Spark's catalog tells names as Spark's reader looks for them, and those may have upper-case letters."""
    metastore = table("avro", ("Name", kind))

    def prepare(name: str, member: str) -> None:
        inner = pa.struct([(member, pa.int64())])
        schema = pa.schema([(name, pa.list_(inner) if kind.startswith("array") else inner)])
        MetastorePolicy("db.t", metastore).prepare(site("avro"), schema)

    prepare("Name", "Id")
    for name, member in (("name", "Id"), ("Name", "id")):
        with pytest.raises(SchemaError) as caught:
            prepare(name, member)
        assert caught.value.code == "COLUMN_NAME"


def test_members_of_a_new_column_of_avro_are_in_lower_case() -> None:
    """The metastore will have them so, and is not changed before that is known."""
    metastore = table("avro", ("name", "string"))
    policy = MetastorePolicy("db.t", metastore, on_new_columns="add")
    with pytest.raises(SchemaError, match="'new' would be null") as caught:
        policy.prepare(site("avro"), pa.schema([("new", pa.struct([("Aa", pa.int64())]))]))
    assert caught.value.code == "COLUMN_NAME"
    found = metastore.get_table(NAME)
    assert found is not None
    assert [column.name for column in found.columns] == ["name"]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_table_of_avro_that_spark_spells_in_another_way_is_refused(parts: int) -> None:
    """Hive's service has its names in lower case, and Spark would look for its own."""
    text = json.dumps({"type": "struct", "fields": [{"name": "userName", "type": "string"}]})
    size = -(-len(text) // parts)
    pieces = {f"schema.part.{i}": text[i * size : (i + 1) * size] for i in range(parts)}
    spelled = {"schema": text} if parts == 1 else {"schema.numParts": str(parts), **pieces}
    metastore = table("avro", ("username", "string"), **spelled)
    with pytest.raises(SchemaError, match=r"'userName' for Spark.*SparkCatalog\(\)") as caught:
        MetastorePolicy("db.t", metastore).prepare(site("avro"), pa.schema([("username", pa.string())]))
    assert caught.value.code == "COLUMN_NAME"
    parquet = table("parquet", ("username", "string"), **spelled)
    MetastorePolicy("db.t", parquet).prepare(site("parquet"), pa.schema([("username", pa.string())]))


def test_buckets_of_a_table_are_known() -> None:
    """The service tells them beside the columns."""
    serde = SimpleNamespace(serializationLib="x", parameters=None)
    storage = SimpleNamespace(
        cols=[],
        location="file:/base",
        inputFormat="",
        outputFormat="",
        serdeInfo=serde,
        bucketCols=["id"],
    )
    found = SimpleNamespace(sd=storage, partitionKeys=None, tableType="EXTERNAL_TABLE", parameters=None)
    assert table_of(NAME, found).bucket_columns == ("id",)
    storage.bucketCols = None
    assert table_of(NAME, found).bucket_columns == ()
