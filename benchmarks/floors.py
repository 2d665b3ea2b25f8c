"""What no sink in Python goes below: the same rows cross from the JVM to Python, and are dropped there.

Nothing is encoded, written, synced or committed. The rows are those that ours gets: Arrow columns, or
one column that Spark renders where the format is text; Spark's limit of bytes a batch is lifted as ours
lifts it. Spark's writer, this floor and ours take turns, so that two ratios come of one run: how far the
floor is below Spark's writer, and how far ours is above the floor.

The last comparison is about 2,000 buckets in one task: there the rows cross, and pyarrow writes them to
2,000 files as if the rows of each lay side by side. Nobody routes them, and nothing is synced.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.streaming import StreamingQuery

from file_formats import CASES, write
from filesink.spark.input.short_decimals import as_numbers
from flink import FILES, make_lines
from formats import Encoder
from lineitem import generate
from many_buckets import FEW, MANY, PARTS, numbered
from many_buckets import write as write_buckets
from micro_batch import WARM_UP, make_source, milliseconds_of_a_batch, start_ours, start_spark_sink
from paired import Comparison, Contender, measure, options, report, seconds
from sessions import batches_like_ours, start_spark

DROPPED = "rows dropped in Python"
ROWS, BATCHES = 10_000, 60


def main() -> None:
    """Batch writes of each format, then micro-batches, then files without Spark."""
    arguments = options("What a sink that does nothing would take", rounds=3).parse_args()
    source = generate(arguments.cache, 1)
    out = arguments.cache / "floors-out"
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    lines = spark.read.text(str(make_lines(arguments.cache, parts=FILES)))
    for title, name, rows, crossing in (
        ("lineitem SF1 as parquet", "parquet", lineitem, lineitem),
        ("lineitem SF1 as csv", "csv", lineitem, rendered(lineitem, Encoder.csv())),
        ("lineitem SF1 as json lines", "json lines", lineitem, rendered(lineitem, Encoder.json_lines())),
        ("766 MB of lines as text", "text", lines, lines),
    ):
        case = CASES[name]
        compare_floor(
            title,
            Contender(
                name=f"df.write.{name.split()[0]}",
                measure=partial(_measure, partial(case.spark, rows, str(out)), out),
            ),
            Contender(name=DROPPED, measure=partial(_measure, partial(drop, crossing), out)),
            Contender(name="filesink", measure=partial(_measure, partial(write, case, rows, out), out)),
            unit="seconds",
            rounds=arguments.rounds,
        )
    compare_micro_batches(spark, rounds=arguments.rounds)
    parts = map(str, sorted(source.glob("*.parquet"))[:PARTS])
    compare_buckets(spark.read.parquet(*parts).coalesce(1), out, rounds=arguments.rounds)
    spark.stop()


def rendered(rows: DataFrame, encoder: Encoder) -> DataFrame:
    """The one column that crosses in place of all."""
    names = pa.schema([pa.field(name, pa.string()) for name in rows.columns])
    expression = encoder.sql_expression(names)
    assert expression is not None  # noqa: S101 - for every schema of more than one column
    return rows.select(F.expr(expression))


def drop(rows: DataFrame) -> None:
    """Count the rows of each task in Python."""
    crossing, count = as_numbers(rows, _count)
    with batches_like_ours(rows):
        crossing.mapInArrow(count, "rows bigint").collect()


def compare_floor(
    title: str, peer: Contender, floor: Contender, ours: Contender, *, unit: str, rounds: int
) -> None:
    """The floor over the peer, and ours over the floor."""
    values = measure([peer, floor, ours], rounds=rounds)
    for name, upper, lower in (("the floor", floor, peer), ("ours, above the floor", ours, floor)):
        report(
            Comparison(
                title=f"{title}: {name}",
                unit=unit,
                ours=upper.name,
                baseline=lower.name,
                our_values=values[upper.name],
                baseline_values=values[lower.name],
            )
        )


def compare_micro_batches(spark: SparkSession, *, rounds: int) -> None:
    """A query that drops the rows of its micro-batches, between Spark's own file sink and ours."""
    work = Path(tempfile.mkdtemp(prefix="filesink-floors-"))
    make_source(work / "source", batches=BATCHES + WARM_UP, rows=ROWS)
    run = partial(milliseconds_of_a_batch, spark=spark, work=work)
    try:
        compare_floor(
            f"micro-batch of {ROWS:,} rows",
            Contender(name="Spark's parquet sink", measure=partial(run, start=start_spark_sink)),
            Contender(name=DROPPED, measure=partial(run, start=start_dropping)),
            Contender(name="filesink", measure=partial(run, start=start_ours)),
            unit="ms per addBatch",
            rounds=rounds,
        )
    finally:
        shutil.rmtree(work)


def start_dropping(stream: DataFrame, work: Path) -> StreamingQuery:
    """One job over each micro-batch."""
    writer = stream.writeStream.foreachBatch(lambda rows, _: drop(rows))
    return writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()


def compare_buckets(rows: DataFrame, out: Path, *, rounds: int) -> None:
    """The rows that ``many_buckets.py`` writes, in one task."""
    few, many = (
        Contender(
            name=f"{count:,} files of pyarrow",
            measure=partial(_measure, partial(write_slices, numbered(rows, count), count, out), out),
        )
        for count in (FEW, MANY)
    )
    ours = partial(write_buckets, rows, MANY, out)
    compare_floor(
        f"one task, {MANY:,} buckets in place of {FEW}",
        few,
        many,
        Contender(name="filesink", measure=partial(_measure, ours, out)),
        unit="seconds",
        rounds=rounds,
    )


def write_slices(rows: DataFrame, files: int, out: Path) -> None:
    """All rows of a task in its memory, a slice of them in each file, and not the bucket's number."""
    out.mkdir()
    directory = str(out)

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(list(batches)).drop_columns(["bucket"]).combine_chunks()
        for number in range(files):
            first, end = (table.num_rows * place // files for place in (number, number + 1))
            with pq.ParquetWriter(
                f"{directory}/{number}.parquet",
                table.schema,
                compression="snappy",
                store_decimal_as_integer=True,
            ) as writer:
                writer.write_table(table.slice(first, end - first))
        yield pa.RecordBatch.from_pydict({"rows": pa.array([table.num_rows], pa.int64())})

    with batches_like_ours(rows):
        rows.mapInArrow(encode, "rows bigint").collect()


def _measure(work: Callable[[], object], out: Path) -> float:
    shutil.rmtree(out, ignore_errors=True)
    taken = seconds(work)
    shutil.rmtree(out, ignore_errors=True)
    return taken


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})


if __name__ == "__main__":
    main()
