"""A DataFrame gets the columns of a table as Spark's ``INSERT … BY NAME`` gives them, or is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array, struct

from filesink.errors import ConfigError, MetastoreConflictError, SchemaError
from filesink.metastore.api import Column, StorageFormat, Table, TableName
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.sink import FileSink
from filesink.spark.catalog.columns import in_table_order
from filesink.spark.catalog.metastore import SparkCatalog

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CSV = StorageFormat(input_format="", output_format="", serde="org.apache.hadoop.hive.serde2.OpenCSVSerde")
NOON = "timestamp_ltz'2024-07-01 12:00:00'"


def table(*columns: tuple[str, str], form: StorageFormat = HIVE_FORMATS["parquet"]) -> Table:
    """A table of Hive's."""
    return Table(
        name=TableName.parse("db.t"),
        columns=tuple(Column(name=name, type=kind) for name, kind in columns),
        partition_keys=(),
        location="/tables/t",
        format=form,
    )


def fit(spark: SparkSession, expression: str, kind: str) -> DataFrame:
    """The column ``c`` of one row as a table has it."""
    return in_table_order(spark.sql(f"select {expression} as c"), table(("c", kind)), "refuse")


@pytest.fixture
def berlin(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose zone is not that of its files."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)
    spark.conf.unset("spark.sql.timestampType")


@pytest.mark.parametrize(
    ("expression", "kind", "expected"),
    [
        ("named_struct('a', 1, 'b', 2)", "struct<b:int,a:int>", '{"b":2,"a":1}'),
        ("named_struct('a', 1, 'b', 2)", "struct<b:bigint,a:bigint>", '{"b":2,"a":1}'),
        ("named_struct('A', 1, 'b', 2)", "struct<b:int,a:int>", '{"b":2,"a":1}'),
        ("named_struct('b', 2)", "struct<a:string,b:int>", '{"b":2}'),
        ("array(named_struct('a', 1, 'b', 2), null)", "array<struct<b:int,a:int>>", '[{"b":2,"a":1},null]'),
        (
            "array(array(named_struct('a', 1, 'b', 2)))",
            "array<array<struct<b:bigint,a:int>>>",
            '[[{"b":2,"a":1}]]',
        ),
        (
            "map('k', named_struct('a', 1, 'b', 2))",
            "map<string,struct<b:int,a:bigint>>",
            '{"k":{"b":2,"a":1}}',
        ),
        ("map(1, named_struct('a', 1, 'b', 2))", "map<bigint,struct<b:int,a:int>>", '{"1":{"b":2,"a":1}}'),
        (
            "named_struct('x', array(named_struct('a', 1, 'b', 2)), 'y', 1)",
            "struct<y:int,x:array<struct<b:int,a:int>>>",
            '{"y":1,"x":[{"b":2,"a":1}]}',
        ),
        ("cast(null as struct<a:int,b:int>)", "struct<b:int,a:int>", None),
        ("array(1, null)", "array<bigint>", "[1,null]"),
        ("array()", "array<string>", "[]"),
        ("map()", "map<string,struct<a:int>>", "{}"),
        ("named_struct('a', null)", "struct<a:char(3),b:date>", "{}"),
        ("null", "array<struct<a:varchar(3)>>", None),
        ("cast(null as array<struct<a:int>>)", "array<struct<A:bigint>>", None),
    ],
)
def test_members_of_structs_go_by_name(
    spark: SparkSession, expression: str, kind: str, expected: str | None
) -> None:
    """At every depth; Spark's cast goes by their places, and would swap those of one type."""
    found = fit(spark, expression, kind)
    assert found.schema["c"].dataType.simpleString() == re.sub(r"(var)?char\(\d\)", "string", kind)
    assert found.selectExpr("to_json(c)" if expected else "c").first()[0] == expected


@pytest.mark.parametrize(
    ("expression", "kind", "code", "path"),
    [
        ("named_struct('a', 1, 'x', 2)", "struct<a:int>", "EXTRA_COLUMN", r"c\.x"),
        ("array(named_struct('x', 2))", "array<struct<a:int>>", "EXTRA_COLUMN", r"c\[\]\.x"),
        ("named_struct('a', 1L)", "struct<a:int>", "COLUMN_TYPE", r"c\.a"),
        ("named_struct('a', 1)", "struct<a:string>", "COLUMN_TYPE", r"c\.a"),
        ("map('k', 1L)", "map<string,int>", "COLUMN_TYPE", r"c\[\]"),
        ("map(1L, 1)", "map<int,int>", "COLUMN_TYPE", r"c\[key\]"),
        ("array(1)", "struct<a:int>", "COLUMN_TYPE", "c"),
        # Spark's casts take them for seconds, and its INSERT refuses them.
        ("1720000000000L", "timestamp", "COLUMN_TYPE", "c"),
        ("timestamp'2024-01-01'", "bigint", "COLUMN_TYPE", "c"),
        ("array(1720000000000L)", "array<timestamp>", "COLUMN_TYPE", r"c\[\]"),
        ("array(timestamp'2024-01-01')", "array<bigint>", "COLUMN_TYPE", r"c\[\]"),
        ("array(named_struct('a', 1, 'A', 2))", "array<struct<a:int>>", "DUPLICATE_COLUMN", r"c\[\]"),
    ],
)
def test_members_that_do_not_fit_are_refused(
    spark: SparkSession, expression: str, kind: str, code: str, path: str
) -> None:
    """As columns are, with the path to them."""
    with pytest.raises(SchemaError, match=f"'{path}'") as caught:
        fit(spark, expression, kind)
    assert caught.value.code == code


def test_files_have_the_very_names_of_the_table(spark: SparkSession) -> None:
    """Readers of Avro and JSON look for exactly those; new columns get what a metastore makes of them."""
    df = spark.sql("select 1 as ID, named_struct('X', 1) as s")
    df = df.withColumn("New", df.ID).withColumn("Inner", array(struct(df.ID.alias("Aa"))))
    columns = (("Id", "int"), ("S", "struct<x:int,Y:int>"))
    assert in_table_order(df, table(*columns), "add").schema.simpleString() == (
        "struct<Id:int,S:struct<x:int,Y:int>,new:int,inner:array<struct<aa:int>>>"
    )


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (NOON, "timestamp_ntz", "2024-07-01 12:00:00"),
        ("timestamp_ntz'2024-07-01 12:00:00'", "timestamp", "2024-07-01 12:00:00"),
        ("timestamp_ntz'2024-07-01 12:00:00'", "timestamp_ntz", "2024-07-01 12:00:00"),
        (f"named_struct('timestamp', {NOON})", "struct<timestamp:timestamp_ntz>", "{2024-07-01 12:00:00}"),
        (f"named_struct('timestamp', {NOON})", "struct<timestamp:timestamp>", "{2024-07-01 12:00:00}"),
    ],
)
@pytest.mark.parametrize("session_type", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_times_become_those_of_the_table(
    berlin: SparkSession, session_type: str, value: str, kind: str, expected: str
) -> None:
    """In the zone of the session, as with ``INSERT``; whatever the session takes ``TIMESTAMP`` for."""
    berlin.conf.set("spark.sql.timestampType", session_type)
    found = fit(berlin, value, kind)
    berlin.conf.unset("spark.sql.timestampType")
    assert found.schema["c"].dataType.simpleString() == kind
    assert found.selectExpr("cast(c as string)").first()[0] == expected


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("'ab'", "char(5)", "ab   "),
        ("'ab   '", "char(2)", "ab"),
        ("'ab'", "varchar(3)", "ab"),
        ("'äöü'", "varchar(3)", "äöü"),
        ("'abc  '", "varchar(4)", "abc "),
        ("cast(null as string)", "varchar(3)", None),
        ("cast(null as string)", "char(3)", None),
        ("array('ab')", "array<char(3)>", ["ab "]),
    ],
)
def test_text_of_limited_length(spark: SparkSession, value: str, kind: str, expected: object) -> None:
    """Padded and cut as Spark's ``INSERT`` does."""
    assert fit(spark, value, kind).first()[0] == expected


@pytest.mark.parametrize("kind", ["char(3)", "varchar(3)", "array<varchar(3)>", "struct<x:char(3)>"])
def test_text_that_is_too_long_fails_the_job(spark: SparkSession, kind: str) -> None:
    """Readers would cut it or refuse it; the message has no value of a record."""
    value = {"a": "array('secret')", "s": "named_struct('x', 'secret')"}.get(kind[0], "'secret'")
    with pytest.raises(PySparkException, match=r"more than 3 characters, and table db\.t has") as caught:
        fit(spark, value, kind).collect()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", ["a\\nb", "a\\r", "\\r\\n"])
def test_a_line_break_in_csv_fails_the_job(spark: SparkSession, value: str) -> None:
    """Readers split lines before they look for quotes."""
    wanted = table(("id", "string"), ("c", "string"), form=CSV)
    good = in_table_order(spark.sql("select 'a' as c, '1' as id"), wanted, "refuse")
    assert tuple(good.first()) == ("1", "a")
    with pytest.raises(PySparkException, match="'c' has a line break"):
        in_table_order(spark.sql(f"select '1' as id, '{value}' as c"), wanted, "refuse").collect()


@pytest.fixture
def own(spark: SparkSession) -> Iterator[str]:
    """The name of a table that a test makes with ``USING`` in the session's own catalog."""
    name = "default.own_table"
    yield name
    spark.sql(f"drop table if exists {name}")


def test_a_table_of_sparks_own_gets_what_insert_gives_it(
    berlin: SparkSession, own: str, tmp_path: Path
) -> None:
    """Local times, structs in another order, padded text: read back, they are what was written."""
    berlin.sql(
        f"create table {own} (id int, t timestamp_ntz, u timestamp_ntz, s struct<b:int,a:int>, c char(4)) "
        f"using parquet location '{tmp_path}/t'"
    )
    sink = FileSink.for_hive_table(own, metastore=SparkCatalog(berlin)).with_uid("u").build()
    query = f"select 1 as id, timestamp_ntz'2024-07-01 12:00:00' as t, {NOON} as u, 'ab' as c"
    sink.write(berlin.sql(f"{query}, named_struct('a', 10, 'b', 20) as s"))
    rows = berlin.table(own).selectExpr("string(t)", "string(u)", "s.a", "s.b", "c").collect()
    assert [tuple(row) for row in rows] == [("2024-07-01 12:00:00", "2024-07-01 12:00:00", 10, 20, "ab  ")]
    [file] = (tmp_path / "t").glob("part-*")
    assert [tuple(row) for row in berlin.read.parquet(str(file)).select("c").collect()] == [("ab  ",)]
    with pytest.raises(PySparkException, match="more than 4 characters"):
        sink.write(berlin.sql("select 2 as id, 'abcdef' as c"))
    assert len(list((tmp_path / "t").glob("part-*"))) == 1


def test_a_table_of_json_gets_local_times_and_its_own_names(
    berlin: SparkSession, own: str, tmp_path: Path
) -> None:
    """Spark's reader looks for exactly these names."""
    berlin.sql(f"create table {own} (Id int, At timestamp_ntz) using json location '{tmp_path}/t'")
    sink = FileSink.for_hive_table(own, metastore=SparkCatalog(berlin)).with_uid("u").build()
    sink.write(berlin.sql(f"select 1 as id, {NOON} as at"))
    rows = berlin.table(own).selectExpr("id", "string(at)").collect()
    assert [tuple(row) for row in rows] == [(1, "2024-07-01 12:00:00")]


@pytest.mark.parametrize(
    ("ddl", "kind", "code"),
    [
        ("(id int) using parquet clustered by (id) into 4 buckets", MetastoreConflictError, "BUCKETED_TABLE"),
        ("(id int, c char(5)) using parquet partitioned by (c)", MetastoreConflictError, "KEY_TYPE"),
        ("(id int, d date) using json options (dateFormat 'dd.MM.yyyy')", ConfigError, "TABLE_FORMAT"),
    ],
)
def test_tables_whose_readers_want_more_are_refused(
    spark: SparkSession, own: str, tmp_path: Path, ddl: str, kind: type[Exception], code: str
) -> None:
    """Before a file is written."""
    spark.sql(f"create table {own} {ddl} location '{tmp_path}/t'")
    with pytest.raises(kind) as caught:
        FileSink.for_hive_table(own, metastore=SparkCatalog(spark))
    assert getattr(caught.value, "code", None) == code


def test_local_times_in_orc_are_refused(spark: SparkSession, own: str, tmp_path: Path) -> None:
    """Spark could not read the table any more."""
    spark.sql(f"create table {own} (t timestamp_ntz) using orc location '{tmp_path}/t'")
    sink = FileSink.for_hive_table(own, metastore=SparkCatalog(spark)).with_uid("u").build()
    with pytest.raises(SchemaError, match="'t' is a timestamp_ntz"):
        sink.write(spark.sql(f"select {NOON} as t"))
    assert not list((tmp_path / "t").glob("part-*"))
