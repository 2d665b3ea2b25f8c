"""Batch writes through Spark: beside each other, beside a stream, and once more."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC

import pytest

from filesink import BucketAssigner, ConcurrentDriverError, ConfigError, DataError, FileSink, RepeatedTxnError
from filesink.spark import engine
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


def test_rows_of_a_day_that_was_not_named_replace_nothing(spark, tmp_path):
    """A wrong filter in a rerun costs an error, and not the rows of another day."""
    base = tmp_path / "base"
    one = sink(base)
    one.write(days(spark, ("2026-01-01", 1), ("2026-01-02", 2)))
    wrong = days(spark, ("2026-01-01", 3), ("2026-01-02", 4))
    with pytest.raises(DataError, match="2026-01-02") as raised:
        one.write(wrong, mode="overwrite_partitions", partitions=[{"day": "2026-01-01"}])
    assert raised.value.code == "OTHER_PARTITION"
    assert numbers(spark, base) == [1, 2]
    assert not [path for path in base.rglob(".*") if path.is_file() and "_filesink" not in path.parts]
    one.write(wrong, mode="overwrite_partitions", partitions=["day=2026-01-01", "day=2026-01-02"])
    assert numbers(spark, base) == [3, 4]


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


def moments(spark, *rows):
    """Rows of an hour, by the clock of the session, and a number."""
    return spark.createDataFrame(rows, "day string, n int").selectExpr("cast(day AS timestamp) AS day", "n")


def test_a_moment_that_spark_gave_names_its_partition_or_is_refused(spark, tmp_path):
    """Whatever the zone of the session is; nothing is ever passed over in silence."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        frame = moments(spark, ("2026-03-01 05:00:00", 1))
        [row] = frame.collect()
        named = {"aware": row.day.astimezone(UTC), "text": "2026-03-01T05:00:00+09:00", "plain": row.day}
        for kind, value in named.items():
            one = sink(tmp_path / kind)
            one.write(frame)
            empty = {"mode": "overwrite_partitions", "partitions": [{"day": value}]}
            if kind == "plain" and value.hour != 5:  # the clock of this machine is not that of Tokyo
                with pytest.raises(ConfigError, match="either of two partitions"):
                    one.write(frame.where("false"), **empty)
            else:
                assert one.write(frame.where("false"), **empty).replaced, kind
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_corrected_rerun_moves_rows_to_another_day(spark, tmp_path):
    """Its own rows of the first run go, also those of the other day; then the new day is overwritten."""
    base, one = tmp_path / "base", sink(tmp_path / "base")
    one.write(days(spark, ("a", 1), ("b", 2)))
    rerun = {"txn_id": "t", "mode": "overwrite_partitions"}
    one.write(days(spark, ("a", 3)), **rerun)
    one.write(days(spark, ("a", 4)))
    report = one.write(days(spark, ("b", 5)), **rerun, on_repeated_txn="replace")
    assert numbers(spark, base) == [4, 5]
    assert len(report.replaced) == 2
    assert one.write(days(spark, ("b", 5)), **rerun).already_committed


def test_other_partitions_to_be_emptied_are_another_write(spark, tmp_path):
    """The same rows with one more day named: it would stay full behind an "already committed"."""
    base, one = tmp_path / "base", sink(tmp_path / "base")
    one.write(days(spark, ("a", 1), ("b", 2), ("c", 3)))
    rerun = {"txn_id": "t", "mode": "overwrite_partitions"}
    one.write(days(spark, ("a", 4)), **rerun, partitions=[{"day": "a"}, {"day": "b"}])
    assert one.write(days(spark, ("a", 4)), **rerun, partitions=["day=b", "day=a"]).already_committed
    for other in ([{"day": "a"}, {"day": "c"}], None):
        with pytest.raises(RepeatedTxnError, match="partitions=") as raised:
            one.write(days(spark, ("a", 4)), **rerun, partitions=other)
        assert raised.value.code == "OTHER_DATA"
    assert numbers(spark, base) == [3, 4]
    one.write(days(spark, ("a", 4)), **rerun, partitions=["day=a", "day=c"], on_repeated_txn="replace")
    assert numbers(spark, base) == [4]


def test_of_two_that_replace_one_txn_the_later_one_is_told_so(spark, tmp_path, monkeypatch):
    """Not that it should say what to do with a repeat, which it has said, or that files were merged."""
    base, one = tmp_path / "base", sink(tmp_path / "base")
    one.write(days(spark, ("a", 1)), txn_id="t")
    real = engine.superseding

    def comes_second(*arguments):
        monkeypatch.setattr(engine, "superseding", real)
        sink(base).write(days(spark, ("a", 2)), txn_id="t", on_repeated_txn="replace")
        return real(*arguments)

    monkeypatch.setattr(engine, "superseding", comes_second)
    with pytest.raises(ConcurrentDriverError, match="'t' has taken the place") as raised:
        one.write(days(spark, ("a", 3)), txn_id="t", on_repeated_txn="replace")
    assert raised.value.code == "PARTITION_CONFLICT"
    assert numbers(spark, base) == [2]
    one.write(days(spark, ("a", 3)), txn_id="t", on_repeated_txn="replace")
    assert numbers(spark, base) == [3]
