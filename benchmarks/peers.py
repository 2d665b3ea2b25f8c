"""Writers without a JVM, end to end from the same Parquet files: lineitem by month of l_shipdate, and flat.

DuckDB's ``COPY … PARTITION_BY`` and delta-rs' ``write_deltalake``, on the same two cores. Neither has to
bring rows from a JVM to Python, which is the largest cost of ours; and who has a DataFrame of Spark
cannot use them on it. DuckDB syncs nothing and has no transaction over its files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lineitem import generate, ours_flat, ours_monthly, seconds_to_write
from paired import Contender, compare, options
from sessions import start_spark

_MONTH = "strftime(l_shipdate, '%Y-%m') AS l_shipmonth"


def main() -> None:
    """Each peer against ours, flat and by month."""
    arguments = options("lineitem from Parquet files by writers without a JVM", rounds=3).parse_args()
    source = generate(arguments.cache, 1)
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    out = arguments.cache / "peers-out"
    run = partial(seconds_to_write, out=out, rows=lineitem.count())
    ours = {
        "flat": Contender(name="filesink", measure=partial(run, lambda: ours_flat(lineitem, out))),
        "by month": Contender(name="filesink", measure=partial(run, lambda: ours_monthly(lineitem, out))),
    }
    peers = {
        ("flat", "DuckDB's COPY"): lambda: copy_by_duckdb(source, out),
        ("by month", "DuckDB's COPY"): lambda: copy_by_duckdb(source, out, month=_MONTH),
        ("flat", "delta-rs"): lambda: write_by_delta(source, out),
        ("by month", "delta-rs"): lambda: write_by_delta(source, out, by=("l_shipmonth",)),
    }
    for (layout, name), work in peers.items():
        compare(
            f"lineitem SF1 {layout}, {name}",
            baseline=Contender(name=name, measure=partial(run, work)),
            ours=ours[layout],
            unit="seconds",
            rounds=arguments.rounds,
        )
    spark.stop()


def copy_by_duckdb(source: Path, out: Path, *, month: str = "") -> None:
    """From files to files, in one statement."""
    columns, options = ("*", "FILE_SIZE_BYTES '1GB'")
    if month:
        columns, options = f"*, {month}", "PARTITION_BY (l_shipmonth)"
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.execute(
            f"COPY (SELECT {columns} FROM read_parquet('{source}/*.parquet')) TO '{out}' "  # noqa: S608
            f"(FORMAT parquet, COMPRESSION snappy, {options})"
        )


def write_by_delta(source: Path, out: Path, *, by: tuple[str, ...] = ()) -> None:
    """Batches of the files, read by pyarrow, into one version of a new table."""
    files = sorted(source.glob("*.parquet"))
    schema = pq.read_schema(files[0])
    if by:
        schema = schema.append(pa.field("l_shipmonth", pa.string()))

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(100_000):
                yield with_month(batch) if by else batch

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    properties = deltalake.WriterProperties(compression="SNAPPY")
    deltalake.write_deltalake(str(out), reader, partition_by=list(by) or None, writer_properties=properties)


def with_month(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch and its month; as text it begins with it."""
    months = batch.column("l_shipdate").cast(pa.string())
    return batch.append_column("l_shipmonth", pc.utf8_slice_codeunits(months, 0, 7))


if __name__ == "__main__":
    main()
