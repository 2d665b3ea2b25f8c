"""Rows of Spark for a program: through ``CollectSink``, which survives both sides, and straight from the JVM.

Both halves count the rows and add up a column. What the client takes by itself, from files that are there,
is shown as rows a second.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from filesink import CollectSink
from paired import Contender, compare, keep, measure, seconds

_ROWS = ("id", "id / 1e6 AS discount", "concat('note of row ', id) AS note")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The rows, and a directory for everything else."""

    spark: SparkSession
    directory: Path
    rows: int

    def through_sink(self, take: Callable[[CollectSink], int]) -> float:
        """From the first task to the last row of the client."""
        sink = self._sink()
        return seconds(lambda: self._check(self._write(sink, take)))

    def by_itself(self, take: Callable[[CollectSink], int]) -> float:
        """The client alone."""
        sink = self._sink()
        sink.write(self._given())
        return seconds(lambda: self._check(take(sink)))

    def from_jvm(self, take: Callable[[Any], int]) -> float:
        """Spark's own way."""
        return seconds(lambda: self._check(take(self._given())))

    def _write(self, sink: CollectSink, take: Callable[[CollectSink], int]) -> int:
        sink.write(self._given())
        return take(sink)

    def _given(self) -> Any:
        return self.spark.read.parquet(str(self.directory / "rows"))

    def _sink(self) -> CollectSink:
        return CollectSink(tempfile.mkdtemp(dir=self.directory))

    def _check(self, total: int) -> None:
        if total != self.rows * (self.rows - 1) // 2:
            raise SystemExit("rows are missing, or came twice: nothing was measured")


def compare_collect(spark: SparkSession, rows: int, rounds: int) -> None:
    """Measure both, as rows and as Arrow."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(spark=spark, directory=Path(name), rows=rows)
        given = spark.range(0, rows, numPartitions=8).selectExpr(*_ROWS)
        given.write.parquet(str(bench.directory / "rows"))
        takes = {
            "rows": (lambda df: _sum_of(df.toLocalIterator(prefetchPartitions=True)), _take_rows),
            "Arrow": (lambda df: _sum_in(df.toArrow()), _take_table),
        }
        for kind, (theirs, ours) in takes.items():
            compare(
                f"{rows:,} rows to a program, as {kind}",
                baseline=Contender(name="straight from the JVM", measure=partial(bench.from_jvm, theirs)),
                ours=Contender(name="CollectSink", measure=partial(bench.through_sink, ours)),
                unit="seconds",
                rounds=rounds,
            )
            _show_client(kind, bench, ours, rounds)


def _show_client(kind: str, bench: Bench, take: Callable[[CollectSink], int], rounds: int) -> None:
    alone = Contender(name="client", measure=partial(bench.by_itself, take))
    taken = statistics.median(measure([alone], rounds=rounds)["client"])
    rate = round(bench.rows / taken)
    print(f"  the client alone takes {rate:,} rows a second, as {kind}")
    keep(f"{bench.rows:,} collected rows, as {kind}, the client alone", {"facts": {"rows a second": rate}})


def _take_rows(sink: CollectSink) -> int:
    return _sum_of(sink.results())


def _take_table(sink: CollectSink) -> int:
    return _sum_in(sink.results().to_arrow())


def _sum_of(rows: Iterable[Any]) -> int:
    return sum(row["id"] for row in rows)


def _sum_in(table: Any) -> int:
    return sum(table["id"].to_numpy().tolist())
