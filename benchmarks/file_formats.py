"""What each format costs: TPC-H lineitem into one directory, against Spark's writer of the same format.

Both sides write the same codec. PySpark's jars have no writer of Avro; what users have is fastavro, fed
with a dict a row. There the encoders alone are compared, on a slice of lineitem in memory.

Ours returns when everything is on disk, Spark's writer when it is in memory. So each format is reported
twice: against the writer as it is, and against the same measurements with the time added that an
``fsync`` of its files takes.

The program must not have the name of one of our packages: its directory is the first to be searched.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyspark.sql import DataFrame

from filesink import BucketAssigner, FileSink, FileSinkBuilder
from formats import AvroWriterFactory, Encoder, OrcBulkWriterFactory, ParquetWriterFactory
from lineitem import generate
from paired import Contender, compare, options, report, seconds
from sessions import start_spark

_PIECE = 16 << 20
_AVRO = "avro"
_AVRO_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One format, and how each side writes it.

    Attributes:
        columns: of lineitem; all of them if empty.
        count: the records of one file.
    """

    spark: Callable[[DataFrame, str], None]
    ours: Callable[[str], FileSinkBuilder]
    count: Callable[[Path], int]
    columns: tuple[str, ...] = ()


def lines(path: Path) -> int:
    """The line feeds of a file."""
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(partial(file.read, _PIECE), b""))


CASES = {
    "parquet": Case(
        spark=lambda df, out: df.write.parquet(out, compression="snappy"),
        ours=lambda out: FileSink.for_bulk_format(out, ParquetWriterFactory(compression="snappy")),
        count=lambda path: pq.ParquetFile(path).metadata.num_rows,
    ),
    "orc": Case(
        spark=lambda df, out: df.write.orc(out, compression="zstd"),
        ours=lambda out: FileSink.for_bulk_format(out, OrcBulkWriterFactory(compression="zstd")),
        count=lambda path: int(orc.ORCFile(path).nrows),
    ),
    "json lines": Case(
        spark=lambda df, out: df.write.json(out),
        ours=lambda out: FileSink.for_row_format(out, Encoder.json_lines()),
        count=lines,
    ),
    "csv": Case(
        spark=lambda df, out: df.write.csv(out),
        ours=lambda out: FileSink.for_row_format(out, Encoder.csv()),
        count=lines,
    ),
    "text": Case(
        spark=lambda df, out: df.write.text(out),
        ours=lambda out: FileSink.for_row_format(out, Encoder.simple_string_encoder()),
        count=lines,
        columns=("l_comment",),
    ),
}


def main() -> None:
    """Make the data once, then measure the chosen formats."""
    arguments = _arguments()
    source = generate(arguments.cache, arguments.scale)
    chosen = arguments.format or [_AVRO, *CASES]
    if _AVRO in chosen:
        compare_avro(source, rounds=arguments.rounds)
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    out, rows = arguments.cache / "formats-out", lineitem.count()
    for name, case in CASES.items():
        if name not in chosen:
            continue
        df = lineitem.select(*case.columns) if case.columns else lineitem
        run = partial(_measure, out=out, rows=rows, count=case.count)
        writer = f"df.write.{name.split()[0]}"
        durable: list[float] = []
        comparison = compare(
            f"lineitem SF{arguments.scale} as {name}",
            baseline=Contender(
                name=writer,
                measure=partial(run, partial(case.spark, df, str(out)), durable=durable),
            ),
            ours=Contender(name="filesink", measure=partial(run, partial(write, case, df, out))),
            unit="seconds",
            rounds=arguments.rounds,
        )
        report(
            replace(
                comparison,
                title=f"{comparison.title}, both on disk",
                baseline=f"{writer}, then fsync",
                baseline_values=durable[-arguments.rounds :],
            )
        )
    spark.stop()


def compare_avro(source: Path, *, rounds: int) -> None:
    """Our writer and fastavro on the same records, in batches as Spark sends them."""
    table = pq.read_table(min(source.glob("*.parquet"))).slice(0, _AVRO_ROWS)
    kinds = [
        field.with_type(pa.string()) if field.type == pa.string_view() else field for field in table.schema
    ]
    batches = table.cast(pa.schema(kinds)).combine_chunks().to_batches(max_chunksize=10_000)
    compare(
        f"{_AVRO_ROWS:,} rows of lineitem as Avro, snappy",
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


def write(case: Case, df: DataFrame, out: Path) -> None:
    """Ours, into one directory."""
    flat = BucketAssigner.base_path_bucket_assigner()
    case.ours(str(out)).with_bucket_assigner(flat).build().write(df)


def _measure(
    work: Callable[[], object],
    *,
    out: Path,
    rows: int,
    count: Callable[[Path], int],
    durable: list[float] | None = None,
) -> float:
    """Seconds that ``work`` takes; with those of ``_sync`` added they go into ``durable``."""
    shutil.rmtree(out, ignore_errors=True)
    taken = seconds(work)
    if durable is not None:
        durable.append(taken + seconds(lambda: _sync(out)))
    found = sum(count(path) for path in out.glob("part-*"))
    if found != rows:
        raise SystemExit(f"{out} holds {found:,} rows instead of {rows:,}: nothing was measured")
    shutil.rmtree(out)
    return taken


def _sync(directory: Path) -> None:
    """Wait until the files of ``directory``, their names and its own name are on disk."""
    for path in (*directory.iterdir(), directory, directory.parent):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def _arguments() -> argparse.Namespace:
    parser = options("Batch throughput of each format on TPC-H lineitem", rounds=5)
    parser.add_argument(
        "--format", action="append", choices=[_AVRO, *CASES], help="only this; may be repeated"
    )
    parser.add_argument("--scale", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
