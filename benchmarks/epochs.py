"""Does an epoch cost more after 2,000 of them? It must not: old records are folded into a mark.

Two queries of 2,000 micro-batches of ten rows: one closes its part file at every epoch, the other
lets it stay open for a minute, so that its state and its cost rise and fall with the part's
segments. Compared are the medians of durationMs.addBatch of micro-batches 100 to 699 and of the
last 600; printed is the size of the ledger, too.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from filesink import BucketAssigner, FileSink, RollingPolicy
from formats import Encoder
from paired import early_and_late, keep
from sessions import start_spark


def main() -> None:
    """Run both queries; print the medians, their ratio and the ledger's size."""
    epochs: int = _arguments().epochs
    base = Path(tempfile.mkdtemp(prefix="filesink-epochs-"))
    spark = start_spark(spark_sql_streaming_numRecentProgressUpdates=str(epochs * 2))
    try:
        for name, policy in {
            "parts close at every epoch": RollingPolicy.on_checkpoint_rolling_policy(),
            "a part stays open for a minute": RollingPolicy.default_rolling_policy(),
        }.items():
            query = start(spark, base / name, policy)
            taken = wait_for(query, epochs)
            query.stop()
            report(name, taken, ledger_size(base / name / "out" / "_filesink"))
    finally:
        spark.stop()
        shutil.rmtree(base)


def start(spark: SparkSession, work: Path, policy: RollingPolicy) -> StreamingQuery:
    """A query without end that makes tiny micro-batches as fast as it can."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    sink = (
        FileSink.for_row_format(str(work / "out"), Encoder.json_lines())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(policy)
        .build()
    )
    return sink.start(rows, checkpoint_location=str(work / "checkpoint"), processing_time="0 seconds")


def wait_for(query: StreamingQuery, epochs: int) -> list[int]:
    """Milliseconds of addBatch of the first ``epochs`` micro-batches, once they are done."""
    while query.isActive and (query.lastProgress or {"batchId": 0})["batchId"] < epochs:
        time.sleep(1)
    if query.exception() is not None:
        raise SystemExit(f"the query failed: {query.exception()}")
    done = {
        progress["batchId"]: progress["durationMs"].get("addBatch", 0) for progress in query.recentProgress
    }
    return [done[number] for number in range(epochs)]


def ledger_size(directory: Path) -> tuple[int, int]:
    """Number of files below the ledger's directory, and their bytes."""
    sizes = [file.stat().st_size for file in directory.rglob("*") if file.is_file()]
    return len(sizes), sum(sizes)


def report(name: str, taken: list[int], ledger: tuple[int, int]) -> None:
    """Print and keep what was found."""
    early, late = early_and_late(taken)
    files, size = ledger
    print(f"\n{len(taken):,} epochs, {name}")
    print(f"  median addBatch of epochs 100 to 699: {early:.0f} ms")
    print(f"  median addBatch of the last 600: {late:.0f} ms   (ratio {late / early:.2f})")
    print(f"  ledger: {files} files, {size:,} bytes")
    keep(f"epochs {name}", {"milliseconds": taken, "ledger_files": files, "ledger_bytes": size})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Cost of an epoch after many of them")
    parser.add_argument("--epochs", type=int, default=2000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
