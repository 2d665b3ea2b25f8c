"""What each format costs: TPC-H lineitem into one directory, against Spark's writer of the same format.

Both sides write the same codec. Formats that Spark's distribution does not have are not here.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame

from filesink import BucketAssigner, FileSink, FileSinkBuilder
from formats import Encoder
from lineitem import generate
from paired import Contender, compare, seconds
from sessions import start_spark

_PIECE = 16 << 20


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
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    out, rows = arguments.cache / "formats-out", lineitem.count()
    for name in arguments.format or CASES:
        case = CASES[name]
        df = lineitem.select(*case.columns) if case.columns else lineitem
        run = partial(_measure, out=out, rows=rows, count=case.count)
        compare(
            f"lineitem SF{arguments.scale} as {name}",
            baseline=Contender(
                name=f"df.write.{name.split()[0]}",
                measure=partial(run, partial(case.spark, df, str(out))),
            ),
            ours=Contender(name="filesink", measure=partial(run, partial(_write, case, df, out))),
            unit="seconds",
            rounds=arguments.rounds,
        )
    spark.stop()


def _write(case: Case, df: DataFrame, out: Path) -> None:
    flat = BucketAssigner.base_path_bucket_assigner()
    case.ours(str(out)).with_bucket_assigner(flat).build().write(df)


def _measure(work: Callable[[], object], *, out: Path, rows: int, count: Callable[[Path], int]) -> float:
    shutil.rmtree(out, ignore_errors=True)
    taken = seconds(work)
    found = sum(count(path) for path in out.glob("part-*"))
    if found != rows:
        raise SystemExit(f"{out} holds {found:,} rows instead of {rows:,}: nothing was measured")
    shutil.rmtree(out)
    return taken


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Batch throughput of each format on TPC-H lineitem")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "filesink-benchmarks")
    parser.add_argument("--format", action="append", choices=sorted(CASES), help="only this; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
