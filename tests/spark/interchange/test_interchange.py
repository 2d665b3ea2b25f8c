"""What we write, Spark's own readers read with equal values; what Spark writes, ours do.

Rows are compared as JSON that the JVM renders, since Python knows neither the year 10,000 nor every
day before the reform of the calendar.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink import BucketAssigner, DeadLetters, FileSink
from formats import (
    AvroWriterFactory,
    BulkWriterFactory,
    Encoder,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
)
from tests.spark.versions import orc_instants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCALARS = """
    SELECT * FROM VALUES
      (1, 1Y, -2S, 9223372036854775807L, true, 'plain', 1.50BD, DATE'2024-02-29', X'00FF', 1.5F, 1e300D),
      (2, -1Y, 2S, -9223372036854775808L, false, '', -0.05BD, DATE'0001-01-01', X'', float('NaN'), -0.0D),
      (3, null, null, null, null, null, null, null, null, null, null),
      (4, 0Y, 0S, 0L, true, 'é 漢 😀', 99999999.99BD, DATE'9999-12-31', X'41', float('-Infinity'), 5e-324D),
      (5, 0Y, 0S, 0L, true, 'x', 0.00BD, DATE'1582-10-15', X'41', 0.1F, 0.1D)
    AS t(id, tiny, small, big, bool, text, money, day, raw, f, d)
"""
TIMES = """
    SELECT id, timestamp_micros(us) AS at, CAST(timestamp_micros(us) AS TIMESTAMP_NTZ) AS wall FROM VALUES
      (1, 1719837296123456), (2, 0), (3, -1), (4, -62135596800000000), (5, 253402300799999999), (7, null),
      (8, 2540000000000000), (9, -1009843200000001), (10, 1711846799999999), (11, -12219292800000001)
    AS t(id, us)
"""
NESTED = """
    SELECT id, array(id, null, 3) AS ints, array(array(1D), null) AS deep,
      named_struct('a', nullif(id, 2), 'c', named_struct('d', nullif(id, 1))) AS pair,
      map('k', id, 'n', null) AS m, map('x', named_struct('z', nullif(id, id), 'y', array('q', null))) AS ms,
      CAST(array() AS ARRAY<INT>) AS none, CAST(map() AS MAP<STRING, INT>) AS nothing,
      if(id = 2, null, array(X'00FF41', X'')) AS raw, if(id = 2, null, named_struct('a', id)) AS maybe,
      array(TIMESTAMP'2020-07-01 00:00:00') AS times, CAST(1.5 AS DECIMAL(38, 18)) AS fine
    FROM VALUES (1), (2), (3) AS t(id)
"""
MICROSECONDS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
FORMATS: dict[str, BulkWriterFactory] = {"parquet": ParquetWriterFactory(), "orc": OrcBulkWriterFactory()}


def rows(df: DataFrame) -> list[str]:
    """Every row as the JVM sees it."""
    from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does

    texts = df.select(F.to_json(F.struct("*"), {**MICROSECONDS, "ignoreNullFields": "false"}))
    return sorted(row[0] for row in texts.collect())


def write(df: DataFrame, base: Path, factory: BulkWriterFactory) -> None:
    """As any user of ours does."""
    flat = BucketAssigner.base_path_bucket_assigner()
    FileSink.for_bulk_format(base, factory).with_bucket_assigner(flat).build().write(df)


def queries(spark: SparkSession, name: str) -> Iterator[DataFrame]:
    """What both sides can write and read: docs/formats.md says what ORC cannot."""
    yield spark.sql(NESTED)
    yield spark.sql(SCALARS)
    if name == "parquet":
        yield spark.sql(TIMES)
    else:
        yield spark.sql(TIMES).drop("wall").where("at IS NULL OR id IN (1, 2, 4, 5, 8)")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("name", ["parquet", pytest.param("orc", marks=orc_instants)])
def test_spark_reads_what_we_write(spark, tmp_path, name, zone):
    """Its vectorised readers find the types that were written and equal values, in any time zone."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for number, df in enumerate(queries(spark, name)):
            write(df, tmp_path / str(number), FORMATS[name])
            found = spark.read.format(name).load(str(tmp_path / str(number)))
            assert dict(found.dtypes) == dict(df.dtypes)
            assert rows(found) == rows(df)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize("name", FORMATS)
def test_we_read_what_spark_writes(spark, tmp_path, name):
    """Copied by our reader and our writer, the records of Spark's files are still the same."""
    factory = FORMATS[name]
    for number, query in enumerate(queries(spark, name)):
        # Spark's ORC files hold wall-clock times of its JVM's zone and Julian days, and do not say so.
        df = query.drop("at", "times", "day") if name == "orc" else query
        theirs, ours = tmp_path / f"theirs{number}", tmp_path / f"ours{number}"
        df.coalesce(1).write.format(name).save(str(theirs))
        ours.mkdir()
        for path in theirs.glob("part-*"):
            copied(path, ours / path.name, factory)
        assert rows(spark.read.format(name).schema(df.schema).load(str(ours))) == rows(df)


def copied(source: Path, target: Path, factory: BulkWriterFactory) -> None:
    """``target`` gets the records of ``source``, through our reader and writer."""
    with source.open("rb") as file, target.open("wb") as output:
        reader = factory.open_reader(file)
        writer = factory.create(output, reader.schema)
        for batch in reader:
            writer.write(batch)
        writer.finish()


@pytest.mark.parametrize("codec", ["null", "snappy", "zstandard"])
def test_java_reads_our_avro(spark, tmp_path, codec):
    """The reference implementation takes our container, schema and values, with every codec."""
    write(spark.sql(NESTED), tmp_path, AvroWriterFactory(compression=codec))
    jvm = spark.sparkContext._jvm
    found = []
    for path in tmp_path.glob("part-*.avro"):
        datums = jvm.org.apache.avro.generic.GenericDatumReader()
        reader = jvm.org.apache.avro.file.DataFileReader(jvm.java.io.File(str(path)), datums)
        while reader.hasNext():
            found.append(reader.next().toString())
        reader.close()
    assert len(found) == 3
    second = next(text for text in found if '"id": 2' in text)
    assert '"ints": [2, null, 3], "deep": [[1.0], null], "pair": {"a": null, "c": {"d": 2}}' in second
    assert '"raw": null, "maybe": null' in second


TEXTS = """
    SELECT * FROM VALUES
      (1, 'q"q'), (2, 'back\\\\slash\\\\'), (3, 'comma, semi;'), (4, 'l\\nf'), (5, ' sp '),
      (6, 'é 漢 😀'), (7, '"'), (8, '\\\\"'), (9, null), (10, ''), (11, 'a\\\\'), (12, '#x'), (13, '"\\\\'),
      (14, ',\\\\')
    AS t(id, text)
"""
ROW_READERS = {
    "rfc4180": ("csv", Encoder.csv(header=True), {"header": "true", "multiLine": "true", "escape": '"'}),
    "spark": ("csv", Encoder.csv(header=True, dialect="spark"), {"header": "true", "multiLine": "true"}),
    "json": ("json", Encoder.json_lines(), {}),
}


@pytest.mark.parametrize("door", ["rendered by Spark", "rendered by us"])
@pytest.mark.parametrize("name", ROW_READERS)
def test_spark_reads_our_rows(spark, tmp_path, name, door):
    """With the options of the table in docs/formats.md: every text, and every microsecond.

    Of CSV Spark takes an empty text for null, in its own files too.
    """
    kind, encoder, options = ROW_READERS[name]
    for number, query in enumerate([TEXTS, TIMES]):
        df = spark.sql(query).orderBy("id")
        base = tmp_path / str(number)
        sink = FileSink.for_row_format(base, encoder)
        sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        if door == "rendered by us":
            sink = sink.on_bad_record(DeadLetters())  # for which every column crosses
        sink.build().write(df)
        found = spark.read.format(kind).options(**options).schema(df.schema).load(str(base))
        if kind == "csv" and "text" in df.columns:
            df = df.selectExpr("id", "nullif(text, '') AS text")
        assert rows(found) == rows(df)
