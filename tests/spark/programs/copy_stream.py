"""Copies a directory with ``FileSource`` into a sink until nothing is left. Killed and restarted by tests.

    python -m tests.spark.programs.copy_stream <keep|delete> <from> <to>

State and checkpoint lie beside <to>. Says ``started`` when the query runs, ``done`` when all is visible.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from compaction import FileCompactor, FileCompactStrategy
from filesink import (
    BucketAssigner,
    FileEnumerator,
    FileSink,
    FileSource,
    ParquetWriterFactory,
    RecursiveFileEnumerator,
    Root,
    SourceFile,
)
from tests.spark import inputs
from tests.spark.programs import sessions


class Listed(FileEnumerator):
    """Whatever lies there, as if no sink had written it."""

    def enumerate_files(self, roots: Sequence[Root]) -> Iterator[SourceFile]:
        """See ``FileEnumerator.enumerate_files``."""
        return RecursiveFileEnumerator().enumerate_files(roots)


def source_of(path: Path, *, after: str, state: Path) -> FileSource:
    """Two files a batch, each read once."""
    return (
        FileSource.for_bulk_file_format(ParquetWriterFactory(), path)
        .with_schema(inputs.SCHEMA)
        .set_file_enumerator(Listed())
        .monitor_continuously(0)
        .with_max_files_per_trigger(2)
        .with_state_location(state)
        .after_reading(after)  # type: ignore[arg-type] # as on the command line
        .build()
    )


def sink_of(path: Path) -> FileSink:
    """Files of two epochs are merged before they are seen."""
    return (
        FileSink.for_bulk_format(path, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day"))
        .with_uid("copy")
        .enable_compact(FileCompactStrategy(checkpoints=2), FileCompactor.record_wise_file_compactor())
        .build()
    )


def main(after: str, source: Path, target: Path) -> None:
    """Run the stream once, to the end of its input."""
    spark = sessions.start()
    beside = target.parent / f"{target.name}-state"
    df = source_of(source, after=after, state=beside / "found").read_stream(spark)
    query = sink_of(target).start(df, checkpoint_location=beside / "checkpoint", available_now=True)
    sessions.say("started")
    query.awaitTermination()
    sessions.say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
