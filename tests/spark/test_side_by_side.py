"""Batch writes through Spark: beside each other, beside a stream, and once more."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from filesink import BucketAssigner, ConfigError, FileSink, RepeatedTxnError
from formats import ParquetWriterFactory

pytestmark = pytest.mark.spark


def days(spark, *rows):
    """Rows of a day and a number."""
    return spark.createDataFrame(rows, "day string, n int")


def sink(base, uid="u"):
    """One directory per day."""
    builder = FileSink.for_bulk_format(base, ParquetWriterFactory())
    builder = builder.with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
    return (builder.with_uid(uid) if uid else builder).build()


def numbers(spark, base):
    """What any reader sees."""
    return sorted(row.n for row in spark.read.parquet(str(base)).collect())


@pytest.mark.parametrize("uid", ["u", None])
def test_appends_of_four_threads_succeed_beside_a_stream(spark, tmp_path, uid):
    """None of them needs what the others do, and the stream goes on."""
    base = tmp_path / "base"
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    frame = stream.selectExpr("'s' AS day", "cast(1000 + value AS int) AS n")
    query = sink(base).start(frame, checkpoint_location=tmp_path / "cp", processing_time="1 second")
    one = sink(base, uid)
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda n: one.write(days(spark, ("b", n))), range(8)))
    while query.isActive and len(query.reports) < 2:  # batches that came beside the appends, or after them
        time.sleep(0.1)
    assert query.isActive
    query.stop()
    assert query.exception() is None
    assert [report.visible_rows for report in reports] == [1] * 8
    assert [n for n in numbers(spark, base) if n < 1000] == list(range(8))


def test_a_repeat_tells_of_files_that_are_gone(spark, tmp_path, caplog):
    """An operator removed a day and cleared the task: it is green again, and the log says what is missing."""
    base = tmp_path / "base"
    frame = days(spark, ("2026-01-01", 1), ("2026-01-02", 2))
    sink(base).write(frame, txn_id="t")
    assert sink(base).write(frame, txn_id="t").already_committed
    assert "gone since" not in caplog.text
    shutil.rmtree(base / "day=2026-01-01")
    assert sink(base).write(frame, txn_id="t").already_committed
    assert "1 of its 2 files are gone since, such as 'day=2026-01-01/" in caplog.text


def test_a_backfill_of_days_four_at_a_time(spark, tmp_path):
    """Overwrites of different days take turns with the files at hand; days of others stay."""
    base = tmp_path / "base"
    sink(base).write(days(spark, *((f"2026-01-{day:02}", -day) for day in range(1, 10))))

    def backfill(day):
        frame = days(spark, (f"2026-01-{day:02}", day))
        return sink(base).write(frame, mode="overwrite_partitions", txn_id=f"day {day}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(backfill, range(1, 9)))
    assert numbers(spark, base) == [-9, *range(1, 9)]


def test_a_day_that_becomes_empty(spark, tmp_path):
    """An overwrite that has no rows for a day empties it if that is asked for, and else leaves it."""
    base = tmp_path / "base"
    one = sink(base)
    one.write(days(spark, ("2026-01-01", 1), ("2026-01-02", 2), ("2026-01-03", 3)))
    nothing = days(spark, ("x", 0)).where("n > 0")
    one.write(nothing, mode="overwrite_partitions")
    assert numbers(spark, base) == [1, 2, 3]
    report = one.write(
        nothing, mode="overwrite_partitions", partitions=[{"day": "2026-01-01"}, "day=2026-01-02"]
    )
    assert numbers(spark, base) == [3]
    assert len(report.replaced) == 2


@pytest.mark.parametrize(
    ("partitions", "mode"),
    [
        ([{"days": "1"}], "overwrite_partitions"),
        ([{"day": "1", "n": 1}], "overwrite_partitions"),
        ({"day": "1"}, "overwrite_partitions"),
        (["../x"], "overwrite_partitions"),
        ([7], "overwrite_partitions"),
        (7, "overwrite_partitions"),
        ([{"day": object()}], "overwrite_partitions"),
        ([{"day": "1"}], "append"),
    ],
)
def test_partitions_that_are_none_of_the_sink_are_refused(spark, tmp_path, partitions, mode):
    """Before anything is written, with what would be right."""
    with pytest.raises(ConfigError, match="partitions"):
        sink(tmp_path / "base").write(days(spark, ("1", 1)), mode=mode, partitions=partitions)
    assert not (tmp_path / "base").exists()


def test_the_same_data_in_another_order_are_the_same(spark, tmp_path):
    """Whatever the partitions and the order of rows."""
    base, one = tmp_path / "base", sink(tmp_path / "base")
    rows = [(f"{n % 3}", n) for n in range(100)]
    one.write(days(spark, *rows), txn_id="t")
    again = one.write(days(spark, *reversed(rows)).repartition(7), txn_id="t")
    assert again.already_committed
    assert again.rows == 100
    assert numbers(spark, base) == list(range(100))


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "other", [[("a", 1), ("a", 3)], [("a", 1)], [("b", 1), ("a", 2)], [("a", 1), ("a", 2), ("a", 2)]]
)
def test_a_corrected_rerun_is_no_repeat(spark, tmp_path, other, ansi):
    """Other values in as many rows, fewer, another day, a row twice: refused, and the ways are named."""
    base, one = tmp_path / "base", sink(tmp_path / "base")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        one.write(days(spark, ("a", 1), ("a", 2)), txn_id="t")
        with pytest.raises(RepeatedTxnError, match="on_repeated_txn") as raised:
            one.write(days(spark, *other), txn_id="t")
        assert raised.value.code == "OTHER_DATA"
        assert numbers(spark, base) == [1, 2]
        assert one.write(days(spark, *other), txn_id="t", on_repeated_txn="skip").already_committed
        assert numbers(spark, base) == [1, 2]
        one.write(days(spark, ("z", 9)))
        assert not one.write(days(spark, *other), txn_id="t", on_repeated_txn="replace").already_committed
        assert numbers(spark, base) == sorted([9, *(n for _, n in other)])
        assert one.write(days(spark, *other), txn_id="t").already_committed
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_columns_that_cannot_be_hashed_are_left_out(spark, tmp_path, caplog):
    """Maps have no hash in Spark: rows are compared without them, and the log says so."""
    one = FileSink.for_bulk_format(tmp_path / "base", ParquetWriterFactory()).build()
    frame = spark.sql("SELECT map('k', 1) AS m, 7 AS n")
    one.write(frame, txn_id="t")
    assert "'m'" in caplog.text
    assert one.write(spark.sql("SELECT map('k', 2) AS m, 7 AS n"), txn_id="t").already_committed
    with pytest.raises(RepeatedTxnError):
        one.write(spark.sql("SELECT map('k', 1) AS m, 8 AS n"), txn_id="t")
