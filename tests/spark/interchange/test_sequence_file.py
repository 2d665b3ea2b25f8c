"""SequenceFiles are read by Hadoop's own reader with the pairs that were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filesink import BucketAssigner, FileSink
from formats import CompressWriterFactory, Encoder, SequenceFileWriterFactory

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

LONG = "é" * 40_000  # more bytes than two bytes can count


def write(df: DataFrame, base: Path, factory: SequenceFileWriterFactory | CompressWriterFactory) -> None:
    """All of it, flat."""
    flat = BucketAssigner.base_path_bucket_assigner()
    FileSink.for_bulk_format(base, factory).with_bucket_assigner(flat).build().write(df)


@pytest.mark.parametrize(
    ("compression", "codec"), [("none", "zlib"), ("record", "gzip"), ("block", "zlib"), ("block", "bzip2")]
)
def test_hadoop_reads_the_pairs(spark: SparkSession, tmp_path: Path, compression: str, codec: str) -> None:
    """Every length that a VInt has a form for, more than one sync marker, and more than one block."""
    sizes = [0, 1, 100, 127, 128, 255, 256, 65_535, 65_536, 200_000]
    rows = [(size, "x" * size) for size in sizes] + [(-1, LONG)] + [(n, f"value {n}") for n in range(3000)]
    df = spark.createDataFrame(rows, "k long, v string").coalesce(1)
    factory = SequenceFileWriterFactory(key="k", compression=compression, codec=codec, block_size="64KiB")
    write(df, tmp_path, factory)
    assert sorted(spark.sparkContext.sequenceFile(str(tmp_path / "part-*")).collect()) == sorted(rows)


def test_every_writable_is_hadoops(spark: SparkSession, tmp_path: Path) -> None:
    """Text, bytes, long and int, as keys and values; without a key, nothing stands for it."""
    df = spark.sql("SELECT 'ü' AS t, X'00FF' AS b, -5L AS l, 7 AS i")
    for key, value, expected in [
        ("t", "b", ("ü", b"\x00\xff")),
        ("b", "l", (b"\x00\xff", -5)),
        ("i", "t", (7, "ü")),
    ]:
        base = tmp_path / key
        write(df.select(key, value), base, SequenceFileWriterFactory(key=key, value=value))
        (found,) = spark.sparkContext.sequenceFile(str(base / "part-*")).collect()
        assert tuple(bytes(part) if isinstance(part, bytearray) else part for part in found) == expected
    write(df.select("t"), tmp_path / "none", SequenceFileWriterFactory())
    assert spark.sparkContext.sequenceFile(str(tmp_path / "none" / "part-*")).collect() == [(None, "ü")]


@pytest.mark.parametrize(
    ("codec", "count"),
    [(None, 5_000), ("DefaultCodec", 5_000), ("GzipCodec", 5_000), ("BZip2Codec", 300)],  # it is slow
)
def test_files_of_hadoop_are_read(spark: SparkSession, tmp_path: Path, codec: str | None, count: int) -> None:
    """Records with sync markers, and blocks of each codec, as Hadoop's own writer lays them out."""
    rows = [(n, "ü" * (n % 300)) for n in range(count)]
    name = None if codec is None else f"org.apache.hadoop.io.compress.{codec}"
    spark.sparkContext.parallelize(rows, 1).saveAsSequenceFile(str(tmp_path / "theirs"), name)
    with (tmp_path / "theirs" / "part-00000").open("rb") as file:
        found = SequenceFileWriterFactory(key="k").open_reader(file).read_all()
    assert found.to_pylist() == [{"k": key, "value": value} for key, value in rows]


@pytest.mark.parametrize("codec", ["gzip", "bzip2"])
def test_spark_reads_compressed_lines(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    """Spark knows the codec by the name of the file and reads all members."""
    df = spark.range(0, 50_000, numPartitions=1)
    write(df, tmp_path, CompressWriterFactory(encoder=Encoder.json_lines(), codec=codec, block_size="64KiB"))
    back = spark.read.schema("id long").json(str(tmp_path))
    assert (back.count(), back.selectExpr("sum(id)").first()[0]) == (50_000, sum(range(50_000)))
