"""The session's catalog keeps the contract, and Spark SQL reads what is announced.

Not collected by itself: Hive support cannot be added to the session that the other tests share, so
``test_spark_catalog`` runs this file in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, PySparkRuntimeError
from pyspark.sql import Row, SparkSession

import filesink
from examples.hive_server import HiveServer
from filesink import FileSink
from filesink.buckets.assigner import BucketAssigner
from filesink.errors import ConfigError, MetastoreConflictError, MetastoreError, SchemaError
from filesink.metastore.api import Metastore, TableKind, TableName
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import SuccessFilePolicy
from filesink.spark.catalog import metastore as catalog_module
from filesink.spark.catalog.metastore import SparkCatalog
from formats import OrcBulkWriterFactory
from formats.parquet.writer import ParquetWriterFactory
from tests.contracts.metastore_contract import MetastoreContract, MetastoreSite
from tests.metastore.test_hive import HiveSite
from tests.spark.sessions import SETTINGS

URI = os.environ["FILESINK_TEST_METASTORE"]
WAREHOUSE = Path(os.environ["FILESINK_TEST_WAREHOUSE"])


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """A session whose catalog is the metastore server."""
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=SETTINGS)
        .config("spark.hadoop.hive.metastore.uris", URI)
        .config("spark.sql.warehouse.dir", str(WAREHOUSE))
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@dataclass
class SparkSite(HiveSite):
    """The service itself is the oracle, asked by its bare stubs."""

    session: SparkSession | None = None

    def metastore(self) -> Metastore:
        return SparkCatalog(self.session)


@pytest.fixture
def site(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> MetastoreSite:
    """The server seen through the session; statements are cut short, so that some calls need several."""
    monkeypatch.setattr(catalog_module, "_BATCH", 10)
    return SparkSite(
        server=HiveServer(port=int(URI.rpartition(":")[2]), warehouse=WAREHOUSE), session=session
    )


class TestSparkCatalog(MetastoreContract):
    """The conformance suite, through Spark's session."""


def test_a_table_in_no_database(session: SparkSession, site: MetastoreSite) -> None:
    """What Spark refuses for good is a conflict, in its own words."""
    lost = replace(site.fresh_table(), name=TableName(database="no_such_db", table="t"))
    with pytest.raises(MetastoreConflictError, match="no_such_db") as caught:
        SparkCatalog(session).create_table(lost)
    assert caught.value.code == "METASTORE_REFUSED"


def test_without_a_session(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said at once, and typed; ``recover`` may be called before there is one."""
    del session

    def none() -> SparkSession:
        raise PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})

    monkeypatch.setattr(SparkSession, "active", none)
    with pytest.raises(MetastoreConflictError) as caught:
        SparkCatalog().get_table(TableName.parse("default.t"))
    assert caught.value.code == "NO_SESSION"


class OfClient(AnalysisException):
    """What Spark makes of whatever its client of Hive raises."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)

    def getCondition(self) -> str:  # noqa: N802 - Spark's name
        return "_LEGACY_ERROR_TEMP_3065"

    def __str__(self) -> str:
        return str(self.args[0])


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("MetaException(message:java.net.ConnectException: refused)", MetastoreError, "METASTORE_FAILED"),
        ("Unable to instantiate SessionHiveMetaStoreClient", MetastoreError, "METASTORE_FAILED"),
        ("MetaException(message:Permission denied: u)", MetastoreConflictError, "METASTORE_REFUSED"),
        ("NoSuchObjectException(message:t)", MetastoreConflictError, "METASTORE_REFUSED"),
    ],
)
def test_what_sparks_client_of_hive_reports(text: str, kind: type[MetastoreError], code: str) -> None:
    """Spark calls all of it analysis: a metastore that is away is asked again, a refusal is not."""

    def fail() -> None:
        raise OfClient(text)

    with pytest.raises(MetastoreError) as caught:
        catalog_module._translated(fail, "look")
    assert (type(caught.value), caught.value.code) == (kind, code)
    assert text in str(caught.value)


ROWS = [Row(id=i, name=f"n{i}", day=f"2024-01-0{i % 3 + 1}", k="a/b" if i % 2 else None) for i in range(30)]


@pytest.mark.parametrize("door", ["thrift", "catalog"])
def test_spark_sql_reads_what_is_announced(session: SparkSession, tmp_path: Path, door: str) -> None:
    """A table made by the sink is read by Spark SQL, partitions pruned, statistics seen."""
    metastore = HiveMetastore(URI) if door == "thrift" else SparkCatalog(session)
    policies = [
        MetastorePolicy(f"default.{door}", metastore, create=TableKind.EXTERNAL),
        SuccessFilePolicy(),
    ]
    sink = (
        FileSink.for_bulk_format(tmp_path / "t", ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day", "k"))
        .with_partition_commit(PartitionCommit(policies=policies))
        .with_uid("t")
        .build()
    )
    frame = session.createDataFrame(ROWS)
    sink.write(frame.where("id < 20"))
    sink.write(frame.where("id >= 20"))
    table = session.table(f"default.{door}")
    assert sorted(row.id for row in table.collect()) == list(range(30))
    assert {row.name for row in table.where("day = '2024-01-01' and k = 'a/b'").collect()} == {
        f"n{i}" for i in range(3, 30, 6)
    }
    assert table.where("k is null").count() == 15
    described = session.sql(f"describe extended default.{door} partition (day='2024-01-01', k='a/b')")
    statistics = {row.col_name: row.data_type for row in described.collect()}["Partition Statistics"]
    # Spark does not show its own catalog how many rows a partition had, so their sum is not known there.
    assert statistics.endswith("bytes, 5 rows" if door == "thrift" else "bytes")
    assert len(list((tmp_path / "t").rglob("_SUCCESS"))) == 6


def hive_table(session: SparkSession, name: str, stored_as: str, where: Path) -> str:
    """A table partitioned by day, made by SQL."""
    session.sql(
        f"create external table {name} (id bigint, name string, amount decimal(10,2)) "
        f"partitioned by (day string) stored as {stored_as} location '{where}'"
    )
    return name


@pytest.mark.parametrize("stored_as", ["parquet", "orc", "avro"])
def test_a_table_gets_its_columns_by_name(session: SparkSession, tmp_path: Path, stored_as: str) -> None:
    """Whatever their order and case; narrower types are widened, missing ones are null."""
    name = hive_table(session, f"default.by_name_{stored_as}", stored_as, tmp_path / "t")
    sink = FileSink.for_hive_table(name, metastore=HiveMetastore(URI)).with_uid("t").build()
    sink.write(session.sql("select '2024-01-01' as DAY, 'x' as Name, 1 as id"))
    sink.write(session.sql("select 2L as id, '2024-01-02' as day, cast(1.5 as decimal(4,2)) as amount"))
    rows = session.table(name).select("id", "name", "amount", "day").orderBy("id").collect()
    assert [(*tuple(row)[:2], str(row.amount), row.day) for row in rows] == [
        (1, "x", "None", "2024-01-01"),
        (2, None, "1.50", "2024-01-02"),
    ]


def test_a_table_refuses_or_takes_new_columns(session: SparkSession, tmp_path: Path) -> None:
    """Refused unless evolution is asked for; then old rows have null in them."""
    name = hive_table(session, "default.evolving", "parquet", tmp_path / "t")
    metastore = HiveMetastore(URI)
    frame = session.sql("select 1L as id, 'x' as name, 2.0 as price, '2024-01-01' as day")
    with pytest.raises(SchemaError) as caught:
        FileSink.for_hive_table(name, metastore=metastore).with_uid("t").build().write(frame)
    assert caught.value.code == "EXTRA_COLUMN"
    FileSink.for_hive_table(name, metastore=metastore).with_uid("t").build().write(frame.drop("price"))
    grown = FileSink.for_hive_table(name, metastore=metastore, on_new_columns="add").with_uid("t").build()
    grown.write(frame)
    session.catalog.refreshTable(name)
    assert sorted(str(row.price) for row in session.table(name).collect()) == ["2.0", "None"]


@pytest.mark.parametrize("stored_as", ["parquet", "orc"])
@pytest.mark.parametrize("client", ["session", "hive"])
def test_a_table_follows_types_that_grow(
    session: SparkSession, tmp_path: Path, stored_as: str, client: str
) -> None:
    """Rows of both types are read by one table, in partitions of before and of later."""
    name = f"default.wider_{client}_{stored_as}"
    metastore = SparkCatalog(session) if client == "session" else HiveMetastore(URI)
    factory = ParquetWriterFactory() if stored_as == "parquet" else OrcBulkWriterFactory()

    def write(query: str) -> None:
        policy = MetastorePolicy(name, metastore, create=TableKind.EXTERNAL, on_wider_types="alter")
        assigner = BucketAssigner.partition_bucket_assigner("day")
        builder = FileSink.for_bulk_format(str(tmp_path / "t"), factory).with_bucket_assigner(assigner)
        committing = builder.with_partition_commit(PartitionCommit(policies=[policy]))
        committing.with_uid("t").build().write(session.sql(query))

    write("select 1 as id, cast(1.5 as float) as x, 1.25bd as price, 'a' as day")
    later = f"select {2**40}L as id, 2.5d as x, cast(7.5 as decimal(8, 3)) as price, day"
    write(f"{later} from values ('a'), ('b') as t(day)")
    session.catalog.refreshTable(name)
    kinds = {field.name: field.dataType.simpleString() for field in session.table(name).schema}
    assert kinds == {"id": "bigint", "x": "double", "price": "decimal(8,3)", "day": "string"}
    found = session.table(name).orderBy("id", "day").collect()
    assert [(row.id, row.x, float(row.price), row.day) for row in found] == [
        (1, 1.5, 1.25, "a"),
        (2**40, 2.5, 7.5, "a"),
        (2**40, 2.5, 7.5, "b"),
    ]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("select 1L as id", "PARTITION_COLUMN"),
        ("select 1L as id, 'a' as day, 5 as name", "COLUMN_TYPE"),
        ("select 1L as id, 'a' as day, 1e300 as amount", "COLUMN_TYPE"),
        ("select 'text' as id, 'a' as day", "COLUMN_TYPE"),
        ("select 1L as id, 'a' as day, 2 as DAY2, 3 as day2", "DUPLICATE_COLUMN"),
    ],
)
def test_what_does_not_fit_is_refused(session: SparkSession, tmp_path: Path, query: str, code: str) -> None:
    """Before anything is written."""
    name = f"default.strict_{abs(hash(query))}"
    hive_table(session, name, "parquet", tmp_path / "t")
    sink = FileSink.for_hive_table(name, metastore=SparkCatalog(session)).with_uid("t").build()
    with pytest.raises(SchemaError) as caught:
        sink.write(session.sql(query))
    assert caught.value.code == code
    assert not list((tmp_path / "t").rglob("*.parquet"))


@pytest.mark.parametrize(
    ("ddl", "code"),
    [
        ("(id int, t timestamp_ntz) using parquet", "SPARK_TABLE"),
        ("(id int) using parquet clustered by (id) into 2 buckets", "BUCKETED_TABLE"),
        ("(id int) clustered by (id) into 2 buckets stored as parquet", "BUCKETED_TABLE"),
        ("(id int) partitioned by (k char(3)) stored as parquet", "KEY_TYPE"),
    ],
)
def test_what_readers_would_not_find_is_refused(session: SparkSession, ddl: str, code: str) -> None:
    """What Spark writes into the service of tables of its own tells enough."""
    name = f"default.unreadable_{abs(hash(ddl))}"
    session.sql(f"create table {name} {ddl}")
    with pytest.raises(MetastoreConflictError) as caught:
        FileSink.for_hive_table(name, metastore=HiveMetastore(URI))
    assert caught.value.code == code


def test_names_in_avro_are_those_that_readers_look_for(session: SparkSession) -> None:
    """Spark's reader looks for its own spelling, which only its catalog tells."""
    name = "default.spelled"
    frame = session.sql("select 1 as id, named_struct('username', 'x') as s")
    session.sql(f"create table {name} (Id int, s struct<userName:string>) stored as avro")
    with pytest.raises(SchemaError) as caught:
        FileSink.for_hive_table(name, metastore=HiveMetastore(URI)).with_uid("a").build().write(frame)
    assert caught.value.code == "COLUMN_NAME"
    FileSink.for_hive_table(name, metastore=SparkCatalog(session)).with_uid("a").build().write(frame)
    assert [(row.Id, row.s.userName) for row in session.table(name).collect()] == [(1, "x")]


def test_csv_gives_back_every_character(session: SparkSession, tmp_path: Path) -> None:
    """As ``OpenCSVSerde`` reads it, with escapes of its own in the values."""
    name, texts = (
        "default.as_csv",
        ["C:\\temp", "a\\,b", 'said "x"', " lead", "", "end\\", '\\"q\\"', "#h", "it's"],
    )
    session.sql(
        f"create external table {name} (s string, id string) row format serde "
        f"'org.apache.hadoop.hive.serde2.OpenCSVSerde' stored as textfile location '{tmp_path}/t'"
    )
    frame = session.createDataFrame([Row(id=str(i), s=text) for i, text in enumerate(texts)])
    FileSink.for_hive_table(name, metastore=HiveMetastore(URI)).with_uid("c").build().write(frame)
    assert [row.s for row in session.table(name).orderBy("id").collect()] == texts


def test_a_stream_announces_as_it_goes(session: SparkSession, tmp_path: Path) -> None:
    """Each epoch of a stream into a table; a text table that nothing here writes is refused."""
    name = hive_table(session, "default.streamed", "parquet", tmp_path / "t")
    frame = session.createDataFrame(ROWS).select("id", "name", "day")
    frame.repartition(3).write.parquet(str(tmp_path / "in"))
    stream = session.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1)
    sink = FileSink.for_hive_table(name, metastore=HiveMetastore(URI)).with_uid("s").build()
    query = sink.start(
        stream.parquet(str(tmp_path / "in")), checkpoint_location=tmp_path / "cp", available_now=True
    )
    query.awaitTermination()
    assert sorted(row.id for row in session.table(name).collect()) == list(range(30))
    text = hive_table(session, "default.plain_text", "textfile", tmp_path / "text")
    with pytest.raises(ConfigError) as caught:
        FileSink.for_hive_table(text, metastore=HiveMetastore(URI))
    assert caught.value.code == "TABLE_FORMAT"


def test_the_data_source_announces_with_each_epoch(session: SparkSession, tmp_path: Path) -> None:
    """Its commit gets a pickle of the writer: a batch and a stream are seen by the table."""
    filesink.register(session)
    name = hive_table(session, "default.by_data_source", "parquet", tmp_path / "t")
    options = {"table": name, "metastore": URI, "bucketColumns": "day"}
    frame = session.createDataFrame(ROWS).selectExpr("id", "name", "day")
    frame.write.format("filesink").mode("append").options(**options).save(str(tmp_path / "t"))
    assert session.table(name).count() == 30
    frame.selectExpr("id + 30 as id", "name", "'2025-01-01' as day").write.parquet(str(tmp_path / "in"))
    stream = session.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    query = stream.writeStream.format("filesink").options(**options, checkpointLocation=str(tmp_path / "cp"))
    query.trigger(availableNow=True).start(str(tmp_path / "t")).awaitTermination()
    assert session.table(name).where("day = '2025-01-01'").count() == 30


def test_the_data_source_makes_a_table_and_extends_it(session: SparkSession, tmp_path: Path) -> None:
    """Both only where it is asked for; then Spark SQL reads old rows and new ones, the new column null."""
    filesink.register(session)
    where, name = str(tmp_path / "made"), "default.made_by_data_source"
    options = {"table": name, "metastore": URI, "bucketColumns": "day"}
    frame = session.createDataFrame(ROWS).selectExpr("id", "name", "day")
    grown = frame.selectExpr("id + 30 as id", "name", "cast(id as double) as price", "day")
    writer = frame.write.format("filesink").mode("append").options(**options)
    with pytest.raises(PySparkException, match="TABLE_NOT_FOUND"):
        writer.save(where)
    writer.option("createTable", "external").save(where)
    writer = grown.write.format("filesink").mode("append").options(**options)
    with pytest.raises(PySparkException, match="EXTRA_COLUMN"):
        writer.save(where)
    writer.option("onNewColumns", "add").save(where)
    session.catalog.refreshTable(name)
    rows = session.table(name).select("id", "price", "day").orderBy("id").collect()
    assert [row.id for row in rows] == list(range(60))
    assert [row.price for row in rows] == [None] * 30 + [float(i) for i in range(30)]
