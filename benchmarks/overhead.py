"""What the sink costs beyond the work itself: the same Arrow batches, encoded by a bare ParquetWriter.

The bare writer runs in the same tasks: it gathers 64 MiB of records for a row group as ours does, and
writes to one local file. It has no buckets, no limits, no ledger, no sync, and half a file after a
crash. Both sides get the same batches: Spark's limit of bytes is lifted for the bare writer as ours lifts
it. The second comparison is the limit of one core: pyarrow alone, from Parquet file to Parquet file,
without Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from filesink.spark.input.short_decimals import as_numbers
from lineitem import generate, ours_flat, seconds_to_write
from paired import Contender, compare, options
from sessions import batches_like_ours, start_spark

ROW_GROUP = 64 << 20  # bytes of Arrow data


def main() -> None:
    """Make the data once, then both comparisons."""
    arguments = options("Overhead of the sink over encoding the same batches", rounds=5).parse_args()
    source = generate(arguments.cache, 1)
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    out = arguments.cache / "overhead-out"
    run = partial(seconds_to_write, out=out, rows=lineitem.count())
    ours = Contender(name="filesink", measure=partial(run, lambda: ours_flat(lineitem, out)))
    bare = Contender(name="bare ParquetWriter", measure=partial(run, lambda: write_bare(lineitem, out)))
    limit = Contender(name="pyarrow, one core", measure=partial(run, lambda: write_alone(source, out)))
    for title, baseline in {
        "lineitem SF1 flat, overhead of the sink": bare,
        "lineitem SF1 flat, two cores with Spark": limit,
    }.items():
        compare(title, baseline=baseline, ours=ours, unit="seconds", rounds=arguments.rounds)
    spark.stop()


def write_bare(lineitem: DataFrame, out: Path) -> None:
    """The batches that ours would get, into one file a task."""
    out.mkdir()
    directory = str(out)

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        rows = write_file(batches, f"{directory}/{number}.parquet")
        yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})

    crossing, function = as_numbers(lineitem, encode)
    with batches_like_ours(lineitem):
        crossing.mapInArrow(function, "rows bigint").collect()


def write_file(batches: Iterator[pa.RecordBatch], path: str | pa.NativeFile) -> int:
    """One Parquet file, at a path or into a stream; returns its rows."""
    writer, gathered, size, rows = None, [], 0, 0
    for batch in batches:
        writer = writer or pq.ParquetWriter(path, batch.schema, compression="snappy")
        gathered.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
        if size >= ROW_GROUP:
            writer.write_table(pa.Table.from_batches(gathered))
            gathered, size = [], 0
    if writer is not None:
        if gathered:
            writer.write_table(pa.Table.from_batches(gathered))
        writer.close()
    return rows


def write_alone(source: Path, out: Path) -> None:
    """One thread, file by file."""
    out.mkdir()
    pa.set_cpu_count(1)
    try:
        for file in sorted(source.glob("*.parquet")):
            batches = pq.ParquetFile(file).iter_batches(10_000, use_threads=False)
            write_file(batches, str(out / file.name))
    finally:
        pa.set_cpu_count(os.cpu_count() or 1)


if __name__ == "__main__":
    main()
