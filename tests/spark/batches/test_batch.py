"""Batch writes: every row once, in the right directory, as other readers see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext

from filesink import BucketAssigner, FileSink, FileSinkBuilder, OutputFileConfig, RollingPolicy
from formats import Encoder, ParquetWriterFactory
from tests.spark import outside
from tests.spark.versions import arrays_of_maps

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def parquet_sink(base: Path) -> FileSinkBuilder:
    """Everything below the base path itself."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(
        BucketAssigner.base_path_bucket_assigner()
    )


def row_sink(base: Path, encoder: Encoder) -> FileSinkBuilder:
    """The same for a row format."""
    return FileSink.for_row_format(base, encoder).with_bucket_assigner(
        BucketAssigner.base_path_bucket_assigner()
    )


def test_a_batch_write_reports_what_a_reader_finds(spark: SparkSession, tmp_path: Path) -> None:
    """Rows, sizes and paths of the report are those on the disk."""
    report = parquet_sink(tmp_path).build().write(spark.range(0, 1000, numPartitions=3))
    assert outside.parquet_ids(tmp_path) == list(range(1000))
    assert report.rows == sum(file.rows for file in report.files) == 1000
    sizes = {path: found.size for path, found in outside.visible(tmp_path).items()}
    assert {file.path: file.bytes for file in report.files} == sizes
    assert report.bytes == sum(sizes.values())
    assert outside.hidden(tmp_path) == []


def test_a_batch_write_leaves_nothing_open(spark: SparkSession, tmp_path: Path) -> None:
    """A policy that would keep parts open has no say at the end of a batch."""
    sink = row_sink(tmp_path, Encoder.json_lines()).build()
    sink.write(spark.range(0, 100, numPartitions=2))
    assert outside.hidden(tmp_path) == []
    assert sorted(row.id for row in spark.read.json(str(tmp_path)).collect()) == list(range(100))


def test_a_txn_id_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    """The second write with a txn_id, of another sink object, changes nothing; another id adds."""
    df = spark.range(0, 10, numPartitions=1)
    assert not parquet_sink(tmp_path).build().write(df, txn_id="2013-01").already_committed
    before = outside.everything(tmp_path)
    again = parquet_sink(tmp_path).build().write(df, txn_id="2013-01")
    assert again.already_committed
    assert [file.path for file in again.files] == list(outside.visible(tmp_path))
    assert outside.everything(tmp_path) == before
    parquet_sink(tmp_path).build().write(df, txn_id="2013-02")
    assert outside.parquet_ids(tmp_path) == sorted([*range(10), *range(10)])


@pytest.mark.parametrize("uid", [None, "batches"])
def test_writes_without_a_txn_id_add_up(spark: SparkSession, tmp_path: Path, uid: str | None) -> None:
    """Every call is a write of its own, and nothing written before is touched."""
    sink = parquet_sink(tmp_path)
    sink = sink.with_uid(uid) if uid else sink
    sink.build().write(spark.range(0, 10))
    first = outside.visible(tmp_path)
    built = sink.build()
    built.write(spark.range(10, 20))
    built.write(spark.range(20, 30))
    assert outside.parquet_ids(tmp_path) == list(range(30))
    assert first.items() <= outside.visible(tmp_path).items()


@pytest.mark.parametrize("empty", ["no rows", "no partitions", "optimised away"])
def test_an_empty_dataframe_makes_no_file(spark: SparkSession, tmp_path: Path, empty: str) -> None:
    """Whether there are tasks or not."""
    df = {
        "no rows": spark.range(0, 10, numPartitions=3).where("rand() < 0"),
        "no partitions": spark.createDataFrame(spark.sparkContext.emptyRDD(), "id bigint"),
        "optimised away": spark.range(10).where("false"),
    }[empty]
    report = parquet_sink(tmp_path).build().write(df)
    assert (report.rows, list(report.files)) == (0, [])
    assert outside.visible(tmp_path) == {}
    assert outside.hidden(tmp_path) == []


def test_partitions_without_rows_make_no_file(spark: SparkSession, tmp_path: Path) -> None:
    """One partition of four has rows, and there is one file."""
    df = spark.range(0, 100, numPartitions=4).where("id < 25")
    assert len(parquet_sink(tmp_path).build().write(df).files) == 1
    assert outside.parquet_ids(tmp_path) == list(range(25))


@arrays_of_maps
def test_nested_types_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    """Structs, arrays, maps, decimals, times and nulls, read by Spark with its own schema."""
    df = spark.sql("""
        SELECT id, struct(id AS a, array(struct(cast(id AS string) AS b)) AS list) AS nested,
               map('k', array(id, null)) AS lookup, cast(id / 3 AS decimal(20, 5)) AS amount,
               timestamp_micros(id * 1234567890123) AS at, binary(cast(id AS string)) AS raw,
               cast(null AS array<map<string, date>>) AS nothing
        FROM range(0, 100, 1, 2)""")
    parquet_sink(tmp_path).build().write(df)
    back = spark.read.schema(df.schema).parquet(str(tmp_path))
    as_text = ["to_json(struct(*)) AS row"]
    assert sorted(back.selectExpr(as_text).collect()) == sorted(df.selectExpr(as_text).collect())


def test_more_buckets_than_open_files(spark: SparkSession, tmp_path: Path) -> None:
    """A task with many buckets writes them all, with fewer descriptors than buckets."""
    df = spark.range(0, 1200, numPartitions=1).selectExpr("id % 600 AS bucket", "id")
    sink = parquet_sink(tmp_path).with_bucket_assigner(BucketAssigner.partition_bucket_assigner("bucket"))
    report = sink.build().write(df)
    assert len(report.files) == 600
    assert {path.parent.name for path in tmp_path.glob("*/*.parquet")} == {
        f"bucket={bucket}" for bucket in range(600)
    }
    assert outside.parquet_ids(tmp_path) == list(range(1200))


def test_partitions_are_discovered_by_spark_and_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    """k=v directories, strange values and null among them, come back as columns."""
    df = spark.sql("""
        SELECT * FROM VALUES (1, 'a/b', date'2024-01-31'), (2, 'x=y%z', null), (3, null, date'0001-01-01'),
                             (4, 'é 漢', date'2024-01-31'), (5, '..', date'9999-12-31')
        AS t(id, name, day)""")
    assigner = BucketAssigner.partition_bucket_assigner("name", "day")
    parquet_sink(tmp_path).with_bucket_assigner(assigner).build().write(df)
    back = spark.read.schema("id int, name string, day date").parquet(str(tmp_path)).select(df.columns)
    assert sorted(back.collect()) == sorted(df.collect())
    query = "SELECT count(*) FROM read_parquet(?, hive_partitioning = true) WHERE day = DATE '2024-01-31'"
    assert duckdb.execute(query, [f"{tmp_path}/*/*/*.parquet"]).fetchall() == [(2,)]


def test_days_are_those_of_the_session_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    """The directory of a record is what Spark's own date_format says in the same session."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        df = spark.range(0, 48).selectExpr("id", "timestamp_seconds(1710028800 + id * 3600) AS at")
        assigner = BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH", column="at")
        parquet_sink(tmp_path).with_bucket_assigner(assigner).build().write(df)
        rows = df.selectExpr("id", "date_format(at, 'yyyy-MM-dd--HH') AS bucket").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    query = "SELECT id, filename FROM read_parquet(?, filename = true)"
    found = duckdb.execute(query, [f"{tmp_path}/*/*.parquet"]).fetchall()
    assert {(number, Path(name).parent.name) for number, name in found} == {
        (row.id, row.bucket) for row in rows
    }


def test_an_expression_names_the_bucket(spark: SparkSession, tmp_path: Path) -> None:
    """Spark computes the directory; the expression's column is in no file."""
    assigner = BucketAssigner.expression_bucket_assigner("concat('mod', id % 3, '/', id % 2)")
    parquet_sink(tmp_path).with_bucket_assigner(assigner).build().write(spark.range(0, 60))
    found = duckdb.execute(
        "SELECT filename, * EXCLUDE filename FROM read_parquet(?, filename = true)",
        [f"{tmp_path}/*/*/*.parquet"],
    ).fetchall()
    places = {(str(Path(name).parent.relative_to(tmp_path)), number) for name, number in found}
    assert places == {(f"mod{number % 3}/{number % 2}", number) for number in range(60)}


def test_csv_json_and_text_are_read_back_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """With a part per few rows: headers, line ends and quotes are right in every part."""
    df = spark.sql("""
        SELECT id, CASE id % 5 WHEN 0 THEN null WHEN 1 THEN 'a,"b"' ELSE concat('n', id) END AS name
        FROM range(0, 100, 1, 2)""")
    policy = RollingPolicy.default_rolling_policy(part_size=200)
    encoders = {"csv": Encoder.csv(header=True), "json": Encoder.json_lines()}
    for name, encoder in encoders.items():
        row_sink(tmp_path / name, encoder).with_rolling_policy(policy).build().write(df)
        reader = spark.read.schema(df.schema).option("header", "true").option("escape", '"')
        back = reader.format(name).load(str(tmp_path / name))
        assert sorted(back.collect()) == sorted(df.collect())
        assert len(outside.visible(tmp_path / name)) > 2
    text = df.selectExpr("concat_ws('|', id, name) AS value")
    row_sink(tmp_path / "text", Encoder.simple_string_encoder()).build().write(text)
    assert sorted(spark.read.text(str(tmp_path / "text")).collect()) == sorted(text.collect())


@pytest.mark.parametrize("failing_batch", [0, 3, 1000], ids=["at once", "in the middle", "at the end"])
def test_a_retried_task_counts_once(spark: SparkSession, tmp_path: Path, failing_batch: int) -> None:
    """First attempts of both tasks fail, some with files on disk: each row once, and no leftovers."""
    base, attempts = tmp_path / "out", tmp_path / "attempts"
    attempts.mkdir()

    def fail_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        attempt = context.attemptNumber()
        (attempts / f"{context.partitionId()}-{attempt}").touch()
        for number, batch in enumerate(batches):
            if attempt == 0 and number == failing_batch:
                raise ValueError("the first attempt fails")
            yield batch
        if attempt == 0:
            raise ValueError("the first attempt fails at its end")

    rows = 20_000  # of 40 bytes; a file is begun with its first 256 KiB
    df = spark.range(0, rows, numPartitions=2).selectExpr("lpad(id, 40, '0') AS value")
    policy = RollingPolicy.default_rolling_policy(part_size="300KiB")
    names = OutputFileConfig(part_suffix=".txt")
    sink = row_sink(base, Encoder.simple_string_encoder()).with_rolling_policy(policy)
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    try:
        report = sink.with_output_file_config(names).build().write(df.mapInArrow(fail_first, df.schema))
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(before))
    assert {path.name for path in attempts.iterdir()} == {"0-0", "1-0", "0-1", "1-1"}
    assert outside.lines(base, ".txt") == [f"{i:040}" for i in range(rows)]
    assert report.rows == rows
    outside.eventually(lambda: outside.hidden(base) == [])  # the failed attempts' go with their workers


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_records_that_spark_renders_are_those_of_its_own_writer(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    """Partition columns in the path, all others in the records, with a header in every part."""
    df = spark.range(0, 100, numPartitions=2).selectExpr(
        "id % 3 AS k",
        "id",
        "if(id % 7 = 0, null, concat('n \"', id)) AS `na, me`",
        "CAST(id AS DECIMAL(9, 2)) AS d",
    )
    encoder = Encoder.json_lines() if kind == "json" else Encoder.csv(header=True, dialect="spark")
    by_k = BucketAssigner.partition_bucket_assigner("k")
    row_sink(tmp_path / "ours", encoder).with_bucket_assigner(by_k).build().write(df)
    df.write.partitionBy("k").option("header", "true").format(kind).save(str(tmp_path / "theirs"))
    for k in range(3):
        ours, theirs = (
            sorted(path.read_text() for path in (tmp_path / side / f"k={k}").glob("part-*"))
            for side in ("ours", "theirs")
        )
        assert ours == theirs


NAMES = ["a.b", "a`b", "*", "`c`", "d.*", "", "e f", "ü", "b+", "x"]


@pytest.mark.parametrize("patterns", ["false", "true"])
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_columns_may_have_any_name(spark: SparkSession, tmp_path: Path, kind: str, patterns: str) -> None:
    """Those that PySpark reads as paths or patterns as well; they name buckets, too."""
    df = spark.range(0, 4, numPartitions=1).selectExpr(*(f"id + {n} AS c{n}" for n in range(len(NAMES))))
    df = df.toDF(*NAMES)
    sink = parquet_sink(tmp_path) if kind == "parquet" else row_sink(tmp_path, Encoder.json_lines())
    spark.conf.set("spark.sql.parser.quotedRegexColumnNames", patterns)
    try:
        sink.with_bucket_assigner(BucketAssigner.partition_bucket_assigner("a.b")).build().write(df)
    finally:
        spark.conf.unset("spark.sql.parser.quotedRegexColumnNames")
    if kind == "parquet":
        found = {path.parent.name: pq.read_table(path).to_pylist() for path in tmp_path.glob("*/part-*")}
    else:
        found = {path.parent.name: [json.loads(path.read_text())] for path in tmp_path.glob("*/part-*")}
    assert found == {
        f"a.b={number}": [{name: number + n for n, name in enumerate(NAMES) if n}] for number in range(4)
    }
