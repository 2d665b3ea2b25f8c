"""Spark is asked for every rule that filesink claims to share with it."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext, assign_ids
from filesink.buckets.partition_paths import escape, fragment, texts, unescape

pytestmark = pytest.mark.spark

VALUES = """
    cast(1 as tinyint) i8, cast(-32768 as smallint) i16, 2147483647 i32, -9223372036854775808L i64,
    true yes, false no, 'a b/é' text,
    date'2024-02-29' d1, date'1969-12-31' d2, date'-0044-03-15' d3, date'+12345-01-02' d4,
    timestamp'2024-03-10 09:59:59.120' t1, timestamp'2050-07-01 12:00:00' t2,
    timestamp'1900-01-01 00:00:00.000001' t3, timestamp'0001-01-01 12:00:00' t4,
    timestamp'-0044-03-15 01:02:03.100' t5, timestamp'+12345-07-01 00:00:00' t6,
    timestamp_ntz'2024-01-01 00:00:00.000010' n1, timestamp_ntz'1969-12-31 23:59:59.999999' n2,
    1e-7BD dec1, cast(0 as decimal(20, 18)) dec2, cast(-1.50 as decimal(38, 2)) dec3,
    0.0d f1, -0.0d f2, 1e7d f3, 9999999.5d f4, 0.001d f5, 0.00099d f6, 1.5e300d f7, 0.1d f8, 4.9e-324d f9,
    double('Infinity') f10, double('-Infinity') f11,
    float(0.1) g1, float(3.4e5) g2, float(3.4028235e38) g3, float(16777216) g4, float(1.4e-45) g5
"""


def test_escaping(spark):
    """Each character below U+0180 but NUL, alone and between others, there and back."""
    utils = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    for text in [form.format(chr(code)) for code in range(1, 0x180) for form in ("{}", "a{}b")]:
        assert escape(text) == utils.escapePathName(text)
    for text in ("%", "%4", "%zz", "%+1", "%e9", "%E9%", "%%41", "a%2fb", "%2", "é%41"):
        assert unescape(text) == utils.unescapePathName(text)


@pytest.mark.parametrize("value", ["/etc", "..", "", None, "a=b", " ", "%", "\n", "a\\b", "}{", "😀"])
def test_fragments(spark, value):
    """``k=v`` with odd columns and values, as Spark's own writer names it."""
    utils = spark._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    for column in ("k", "k:v", "ü"):
        assert fragment(column, value) == utils.getPartitionPathString(column, value)


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kathmandu", "+01:30"])
def test_casts(spark, zone):
    """Every supported type as Spark's cast to string shows it, in several session zones."""
    frame = spark.sql(f"select {VALUES}")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        values = frame.toArrow()
        expected = frame.selectExpr(*[f"cast({name} as string) {name}" for name in frame.columns]).first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    found = {name: texts(values.column(name).chunk(0), zone)[0] for name in frame.columns}
    assert found == expected.asDict()


def test_random_floats(spark):
    """Doubles and floats of every magnitude, as Java writes them.

    Old releases of Java write a digit too many for some; so where the text differs it must be
    shorter and name the same number.
    """
    rng = random.Random(26)  # noqa: S311 - repeatable
    doubles = [rng.uniform(-1, 1) * 10 ** rng.randint(-12, 12) for _ in range(500)]
    frame = spark.createDataFrame([(value,) for value in doubles], "d double")
    rows = frame.selectExpr("d", "float(d) f", "string(d) ds", "string(float(d)) fs").toArrow()
    for column, text in (("d", "ds"), ("f", "fs")):
        values = rows.column(column).combine_chunks()
        for ours, theirs in zip(texts(values, "UTC"), rows.column(text).to_pylist(), strict=True):
            assert ours == theirs or (
                len(ours) < len(theirs)
                and pa.scalar(ours).cast(values.type) == pa.scalar(theirs).cast(values.type)
            )


def test_directories(spark, tmp_path):
    """The directories that Spark's own partitioned write makes are the buckets we would use."""
    frame = spark.sql(
        "select * from values ('a/b', date'2024-01-01', 1), (null, null, 2), ('', date'1969-12-31', 3),"
        " ('ü %', date'2024-01-01', 4) as t(text, day, n)"
    )
    frame.write.partitionBy("text", "day").parquet(str(tmp_path / "out"))
    theirs = {
        str(path.parent.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.parquet")
    }
    context = BucketContext(processing_time_ms=0, time_zone="UTC")
    assigner = BucketAssigner.partition_bucket_assigner("text", "day")
    [batch] = frame.toArrow().combine_chunks().to_batches()
    assert set(assign_ids(assigner, batch, context).to_pylist()) == theirs
