"""Routes record batches to buckets, and decides how many records are routed at a time.

A batch that is one bucket, or a few runs of buckets, passes without a copy. Where records of many
buckets lie mixed, batches are gathered first: routing ten times as many records at once makes a tenth
as many slices, and slices, not records, are what costs. Each record is then copied once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from filesink.buckets import BucketAssigner, BucketContext, assign_ids, file_columns, split
from filesink.projection import RECORD_COLUMN
from formats import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

_GOOD_SLICE = 1024  # records; slices of fewer are worth gathering for
_MOST_GATHERED = 32 << 20  # bytes of Arrow data


@dataclass(slots=True)
class Router:
    """Routes the batches of one task; used by one thread.

    Args:
        assigner: names the bucket of each record.
    """

    assigner: BucketAssigner
    _columns: list[int] | None = None  # those that go into the files
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0
    _wanted: int = 0  # records to gather before routing; 0 routes every batch as it comes

    def route(self, batch: pa.RecordBatch, context: BucketContext) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take ``batch`` in; yield bucket ids with slices of what is routed now, without path columns."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._wanted:
            self._bytes += columns.size(batch)
        if self._rows >= self._wanted or self._bytes >= _MOST_GATHERED:
            yield from self.drain(context)

    def drain(self, context: BucketContext) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Route everything that waits."""
        if not self._waiting:
            return
        rows = self._rows
        pieces = self._split(context)
        mixed = len(pieces) * _GOOD_SLICE > rows and len(pieces) > 1
        self._wanted = len(pieces) * _GOOD_SLICE if mixed or (self._wanted and len(pieces) > 1) else 0
        yield from pieces

    def _split(self, context: BucketContext) -> list[tuple[str, pa.RecordBatch]]:
        """Split what waits; a function of its own, so that nobody holds the rows while copies are written."""
        waiting, self._waiting, self._rows, self._bytes = self._waiting, [], 0, 0
        batch = waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)  # type: ignore[attr-defined]
        del waiting  # three times what was gathered would be in memory
        return split(self._for_files(batch), assign_ids(self.assigner, batch, context))

    def _for_files(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._columns is None:
            names = batch.schema.names
            rendered = RECORD_COLUMN in names
            self._columns = (
                [names.index(RECORD_COLUMN)] if rendered else file_columns(self.assigner, batch.schema)
            )
        return batch if len(self._columns) == batch.num_columns else batch.select(self._columns)
