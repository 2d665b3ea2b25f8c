"""Writes rows with a long string each, in a session of Spark's default size.

    python -m tests.spark.programs.long_strings <base path> <parquet|json> <rows> <bytes of a string>

Says ``done`` when all is visible; and before it, on standard error, the most memory that JVM and worker had.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

from filesink import BucketAssigner, FileSink
from formats import Encoder, ParquetWriterFactory
from tests.spark import sessions


def main(base: Path, kind: str, rows: int, size: int) -> None:
    """Write them with two tasks at a time."""
    spark = sessions.start("local[2]")
    df = spark.range(rows).selectExpr(
        "id", "id AS other", "1 AS one", f"rpad(string(id), {size}, sha2(string(id), 512)) AS text"
    )
    row = FileSink.for_row_format(base, Encoder.json_lines())
    builder = row if kind == "json" else FileSink.for_bulk_format(base, ParquetWriterFactory())
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    assert sink.write(df).rows == rows
    jvm = next(child for child in psutil.Process().children() if child.name() == "java")
    workers = max(peak_mib(child) for child in jvm.children(recursive=True))
    sys.stderr.write(f"JVM {peak_mib(jvm)} MiB, worker {workers} MiB\n")
    sessions.say("done")
    spark.stop()


def peak_mib(process: psutil.Process) -> int:
    """The most memory that a process has had at a time; what it has now where Linux is not there to tell."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return process.memory_info().rss >> 20
    lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return max((int(line.split()[1]) >> 10 for line in lines), default=0)  # one that has ended has none


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
