"""Speed of the formats: TPC-H lineitem at scale factor 1, written flat, against Spark's own writers.

Avro has no writer in PySpark's jars; what users have is fastavro, fed with a dict a row. There the
encoders alone are compared, on the same slice of lineitem in memory.
"""

from __future__ import annotations

import argparse
import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from filesink import BucketAssigner, FileSink, FileSinkBuilder
from formats import AvroWriterFactory, BulkWriterFactory, Encoder, OrcBulkWriterFactory, ParquetWriterFactory
from lineitem import generate
from paired import Contender, compare, seconds
from sessions import start_spark

AVRO_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Pair:
    """Our format and Spark's name and options of the same."""

    ours: BulkWriterFactory | Encoder
    theirs: str
    options: dict[str, str]


PAIRS = {
    "parquet": Pair(ParquetWriterFactory(compression="snappy"), "parquet", {"compression": "snappy"}),
    "orc": Pair(OrcBulkWriterFactory(compression="zstd"), "orc", {"compression": "zstd"}),
}


def main() -> None:
    """Make the data once, then measure each format that was asked for."""
    arguments = _arguments()
    source = generate(arguments.cache, arguments.scale)
    if "avro" in arguments.formats:
        compare_avro(source, rounds=arguments.rounds)
    chosen = {name: pair for name, pair in PAIRS.items() if name in arguments.formats}
    if not chosen:
        return
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    rows = lineitem.count()
    for name, pair in chosen.items():
        out = arguments.cache / f"{name}-out"
        run = partial(_measure, out=out, rows=rows, count=partial(_rows, spark.read.format(pair.theirs)))
        compare(
            f"lineitem SF{arguments.scale} as {name}",
            baseline=Contender(
                name=f"df.write.{name}", measure=partial(run, partial(spark_write, lineitem, pair, out))
            ),
            ours=Contender(name="filesink", measure=partial(run, partial(our_write, lineitem, pair, out))),
            unit="seconds",
            rounds=arguments.rounds,
        )
    spark.stop()


def spark_write(lineitem: DataFrame, pair: Pair, out: Path) -> None:
    """Spark's writer."""
    lineitem.write.format(pair.theirs).options(**pair.options).save(str(out))


def our_write(lineitem: DataFrame, pair: Pair, out: Path) -> None:
    """Ours, one directory."""
    flat = BucketAssigner.base_path_bucket_assigner()
    _builder(pair.ours, out).with_bucket_assigner(flat).build().write(lineitem)


def compare_avro(source: Path, *, rounds: int) -> None:
    """Our encoder and fastavro on the same records, in batches as Spark sends them."""
    first = min(source.glob("*.parquet"))
    table = pq.read_table(first).slice(0, AVRO_ROWS)
    kinds = [
        field.with_type(pa.string()) if field.type == pa.string_view() else field for field in table.schema
    ]
    batches = table.cast(pa.schema(kinds)).combine_chunks().to_batches(max_chunksize=10_000)
    compare(
        f"{AVRO_ROWS:,} rows of lineitem as Avro, snappy",
        baseline=Contender(name="fastavro", measure=lambda: seconds(lambda: fastavro_write(batches))),
        ours=Contender(name="filesink", measure=lambda: seconds(lambda: our_avro(batches))),
        unit="seconds",
        rounds=rounds,
    )


def our_avro(batches: list[pa.RecordBatch]) -> bytes:
    """A file of ours, in memory."""
    output = io.BytesIO()
    writer = AvroWriterFactory(compression="snappy").create(output, batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return output.getvalue()


def fastavro_write(batches: list[pa.RecordBatch]) -> bytes:
    """The same by fastavro, with the schema of ours."""
    schema: Any = fastavro.reader(io.BytesIO(our_avro([batches[0].slice(0, 1)]))).writer_schema
    output = io.BytesIO()
    records = (row for batch in batches for row in batch.to_pylist())
    fastavro.writer(output, schema, records, codec="snappy")
    return output.getvalue()


def _builder(format_: BulkWriterFactory | Encoder, out: Path) -> FileSinkBuilder:
    if isinstance(format_, Encoder):
        return FileSink.for_row_format(str(out), format_)
    return FileSink.for_bulk_format(str(out), format_)


def _rows(reader: Any, out: Path) -> int:
    return int(reader.load(str(out)).count())


def _measure(work: Callable[[], object], *, out: Path, rows: int, count: Callable[[Path], int]) -> float:
    shutil.rmtree(out, ignore_errors=True)
    taken = seconds(work)
    found = count(out)
    if found != rows:
        raise SystemExit(f"{out} holds {found:,} rows instead of {rows:,}: nothing was measured")
    shutil.rmtree(out)
    return taken


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed of the formats on TPC-H lineitem")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "filesink-benchmarks")
    parser.add_argument("--formats", nargs="+", default=["avro", *PAIRS], choices=["avro", *PAIRS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
