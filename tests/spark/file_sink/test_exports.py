"""Exports with Spark: sinks that follow their epochs, and Spark as a reader of its own log."""

from __future__ import annotations

from collections import Counter

import pytest

import filesink
from filesink import (
    BucketAssigner,
    DeltaExport,
    ExportError,
    FileSink,
    ParquetWriterFactory,
    SparkMetadataExport,
)
from tests.contracts.exporter_contract import ODD
from tests.exports.lists import Names, away

pytestmark = pytest.mark.spark


def sink_of(base, *exporters, action="lag"):
    """Parquet in directories by ``k``."""
    builder = (
        FileSink.for_bulk_format(base, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("k"))
        .with_uid("exported")
        .on_export_failure(action)
    )
    for exporter in exporters:
        builder = builder.with_export(exporter)
    return builder.build()


def read(spark, base):
    """What Spark reads of the path, by its log if there is one."""
    found = spark.read.schema("value string, more bigint, k string").parquet(str(base))
    return Counter((row.k, row.value, row.more) for row in found.collect())


def test_spark_reads_its_log(spark, tmp_path):
    """Batches of every kind, with names that have to be escaped; what no export names stays unseen."""
    base = tmp_path / "a b é"
    sink = sink_of(base, SparkMetadataExport(), DeltaExport())
    rows = [(k, str(number)) for number, k in enumerate(ODD)]
    report = sink.write(spark.createDataFrame(rows, "k string, value string"))
    assert report.behind == {"spark-metadata": 0, "delta": 0}
    expected = Counter((k, value, None) for k, value in rows)
    assert read(spark, base) == expected
    for number in range(12):
        sink.write(spark.createDataFrame([("x", str(number), number)], "k string, value string, more bigint"))
        expected["x", str(number), number] += 1
        assert read(spark, base) == expected
    frame = spark.createDataFrame([("x", "new", 1)], "k string, value string, more bigint")
    sink.write(frame, mode="overwrite_partitions")
    expected = Counter({row: n for row, n in expected.items() if row[0] != "x"}) + Counter([("x", "new", 1)])
    assert read(spark, base) == expected
    sink_of(base).write(frame)
    assert read(spark, base) == expected
    filesink.drop_export(base, SparkMetadataExport())
    assert read(spark, base) == expected + Counter([("x", "new", 1)])


def test_spark_streams_from_its_log(spark, tmp_path):
    """``readStream`` on the path sees each file once, with the columns of directories."""
    base = tmp_path / "base"
    sink = sink_of(base, SparkMetadataExport())
    seen = []
    for number in range(3):
        sink.write(spark.createDataFrame([("a", str(number))], "k string, value string"))
        stream = spark.readStream.schema("value string, k string").parquet(str(base))
        query = (
            stream.writeStream.foreachBatch(lambda df, _: seen.extend(df.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert [(row.k, row.value) for row in seen] == [("a", "0"), ("a", "1"), ("a", "2")]


def test_a_replayed_batch_exports_what_its_first_run_could_not(spark, tmp_path):
    """With ``fail`` the query ends, its files are visible, and its restart exports them."""
    source, base = tmp_path / "source", tmp_path / "base"
    spark.createDataFrame([("a", "1")], "k string, value string").write.parquet(str(source))
    names = Names(fails=away())

    def run():
        stream = spark.readStream.schema("k string, value string").parquet(str(source))
        sink = sink_of(base, names, action="fail")
        query = sink.start(stream, checkpoint_location=str(tmp_path / "checkpoint"), available_now=True)
        query.awaitTermination()
        return query

    with pytest.raises(Exception, match="export names failed") as raised:
        run()
    assert isinstance(raised.value.__cause__, ExportError)
    assert filesink.open(base).snapshot().rows == 1
    names.fails = None
    assert run().reports[-1].behind == {"names": 0}
    assert filesink.open(base).snapshot().rows == 1
    assert names.at == 1


def test_a_failed_export_fails_no_batch(spark, tmp_path):
    """By default: the report says how far behind it is."""
    names = Names(fails=away())
    sink = sink_of(tmp_path / "base", names)
    frame = spark.createDataFrame([("a", "1")], "k string, value string")
    assert sink.write(frame).behind == {"names": None}
    names.fails = None
    assert sink.write(frame).behind == {"names": 0}
    names.fails = away()
    report = sink.write(frame)
    assert report.behind == {"names": 1}
    assert "export names is behind by 1 version" in report.line()
    names.fails = None
    sink.recover()
    assert names.at == 3
