"""``FileSink`` on a local disk: what readers see who skip what is hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from compaction import FileCompactor, FileCompactStrategy
from filesink import BucketAssigner, Encoder, FileSink, ParquetWriterFactory, RollingPolicy
from filesink.api import Sink
from filesink.sink import FileSinkBuilder
from property_tests.real_epochs import hidden_files, rows_of, visible_files
from property_tests.torture.destination import Delivery, Destination, Place

_BUCKETS = 3


def _lines(path: str) -> FileSinkBuilder:
    """Parts stay open across epochs."""
    policy = RollingPolicy.default_rolling_policy(part_size=60)
    return FileSink.for_row_format(path, Encoder.simple_string_encoder()).with_rolling_policy(policy)


def _parquet(path: str) -> FileSinkBuilder:
    policy = RollingPolicy.on_checkpoint_rolling_policy(max_rows=5)
    return FileSink.for_bulk_format(path, ParquetWriterFactory()).with_rolling_policy(policy)


def _merged_lines(path: str) -> FileSinkBuilder:
    return _lines(path).enable_compact(
        FileCompactStrategy(checkpoints=2), FileCompactor.concat_file_compactor()
    )


def _merged_parquet(path: str) -> FileSinkBuilder:
    return _parquet(path).enable_compact(
        FileCompactStrategy(checkpoints=2), FileCompactor.record_wise_file_compactor()
    )


_KINDS: dict[str, Callable[[str], FileSinkBuilder]] = {
    "lines": _lines,
    "parquet": _parquet,
    "merged lines": _merged_lines,
    "merged parquet": _merged_parquet,
}


class Files(Destination):
    """A directory, read file by file."""

    kinds = tuple(_KINDS)

    def place(self, kind: str, directory: Path, server: Any) -> Place:
        """See ``Destination.place``."""
        del kind, server
        return {"path": str(directory / "out")}

    def arrived(self, place: Place) -> list[Delivery]:
        """See ``Destination.arrived``; a file that is not whole raises."""
        base = Path(place["path"])
        found = [(path, int(row)) for path in visible_files(base) for row in rows_of(path)]
        return [Delivery(row if path.parent.name == _bucket(row) else -1) for path, row in found]

    def left(self, place: Place) -> list[str]:
        """See ``Destination.left``."""
        return [str(path) for path in hidden_files(Path(place["path"]))]

    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """See ``Destination.sink``."""
        assigner = BucketAssigner.partition_bucket_assigner("bucket")
        return _KINDS[place["kind"]](place["path"]).with_bucket_assigner(assigner).with_uid("u").tiers()

    def batch(self, rows: Sequence[int]) -> pa.RecordBatch:
        """See ``Destination.batch``."""
        names = [str(row) for row in rows]
        buckets = [f"b{row % _BUCKETS}" for row in rows]
        return pa.record_batch(
            {"bucket": pa.array(buckets, pa.string()), "row": pa.array(names, pa.string())}
        )


def _bucket(row: int) -> str:
    """The directory of a row."""
    return f"bucket=b{row % _BUCKETS}"
