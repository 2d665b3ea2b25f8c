"""A batch write on a cluster with speculation: the first attempt of one task is very slow.

    python -m tests.spark.programs.speculative_write <master> <directory>

Every attempt leaves a file in ``attempts``. Says ``done``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext

from filesink import BucketAssigner, FileSink, OutputFileConfig
from formats import Encoder
from tests.spark import sessions

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 40_000  # of 40 bytes; a task has begun its file when it comes to sleep


def main(master: str, directory: Path) -> None:
    """Write once."""
    spark = sessions.start(
        master,
        spark__speculation="true",
        spark__speculation__interval="100ms",
        spark__speculation__multiplier="1.1",
        spark__speculation__quantile="0.5",
        spark__speculation__minTaskRuntime="100ms",
        spark__executor__memory="512m",
        spark__sql__execution__arrow__maxRecordsPerBatch="1000",
    )
    attempts = directory / "attempts"

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        name = f"{context.partitionId()}-{context.attemptNumber()}"
        (attempts / name).touch()
        for number, batch in enumerate(batches):
            if name == "0-0" and number == 9:
                time.sleep(600)
            yield batch

    sink = (
        FileSink.for_row_format(directory / "out", Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_output_file_config(OutputFileConfig(part_suffix=".txt"))
        .build()
    )
    df = spark.range(0, ROWS, numPartitions=4).selectExpr("lpad(id, 40, '0') AS value")
    sink.write(df.mapInArrow(slow, df.schema))
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
