"""Copies a directory with ``FileSource`` into a sink until nothing is left. Killed and restarted by tests.

    python -m tests.spark.programs.copy_stream <sink|keep|delete> <from> <to>

``sink``: what a sink has written is followed by its inventory; else files of any directory are found, and
kept or deleted. State and checkpoint lie beside <to>. Says ``started`` when the query runs, ``done`` when all
is visible.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compaction import FileCompactor, FileCompactStrategy
from filesink import BucketAssigner, FileSink, FileSource, ParquetWriterFactory
from tests.spark import inputs, sessions


def source_of(path: Path, *, kind: str, state: Path) -> FileSource:
    """A few files a batch, each read once."""
    source = (
        FileSource.for_bulk_file_format(ParquetWriterFactory(), path)
        .with_schema(inputs.SCHEMA)
        .monitor_continuously(0)
    )
    if kind == "sink":
        return source.with_max_files_per_trigger(7).build()
    source = source.with_max_files_per_trigger(2)
    return source.with_state_location(state).after_reading(kind).build()  # type: ignore[arg-type]


def sink_of(path: Path) -> FileSink:
    """Files of two epochs are merged before they are seen."""
    return (
        FileSink.for_bulk_format(path, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .with_uid("copy")
        .enable_compact(FileCompactStrategy(checkpoints=2), FileCompactor.record_wise_file_compactor())
        .build()
    )


def main(kind: str, source: Path, target: Path) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    beside = target.parent / f"{target.name}-state"
    df = source_of(source, kind=kind, state=beside / "found").read_stream(spark)
    query = sink_of(target).start(df, checkpoint_location=beside / "checkpoint", available_now=True)
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
