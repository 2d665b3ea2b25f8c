"""What bulk writers share: records wait in a buffer, with little memory, until a row group is full."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from formats import columns
from formats.api import BulkWriter
from formats.sizes import MAX_SIZE

# A slice costs some 5 KB of its own with 16 columns. Small ones are copied together when this many wait;
# fewer at a time take less memory and more copying.
_SMALL_SLICES: Final = 4
_SMALL_ROWS: Final = 1024
# A slice keeps the whole batch it is from alive, however few rows it has: one that is less than this part
# of its batch is copied, so that what waits takes no more memory than a few times what is counted.
_LEAST_PART: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the buffer is full: ``rows`` records at most, or ``size`` bytes in Arrow's form."""

    rows: int = MAX_SIZE
    size: int = MAX_SIZE


class BufferedBulkWriter(BulkWriter):
    """Buffers slices and hands them on as one table when a limit is reached.

    Args:
        schema: of every batch.
        limits: of one table.
    """

    def __init__(self, schema: pa.Schema, limits: Limits) -> None:
        self._schema = schema
        self._limits = limits
        self._waiting: list[pa.RecordBatch] = []
        self._small = 0  # how many of the last waiting slices are small
        self._rows = 0
        self._bytes = 0
        self._begun = False

    def _begin(self) -> None:
        """Write what begins a file, or open its writer. Called once, before anything else is written."""

    @abstractmethod
    def _put(self, table: pa.Table) -> None:
        """Write ``table``, never empty, to the output."""

    def _end(self) -> None:
        """Write the footer. Called once, last; there may have been no records."""

    @property
    def buffered_bytes(self) -> int:
        """See ``BulkWriter.buffered_bytes``; what the slices take, not the batches they are from."""
        return self._bytes

    def write(self, batch: pa.RecordBatch) -> None:
        """See ``BulkWriter.write``. Flushes whenever a limit is reached."""
        while self._rows + batch.num_rows > self._limits.rows:
            room = self._limits.rows - self._rows
            self._keep(batch.slice(0, room))
            self.flush()
            batch = batch.slice(room)
        self._keep(batch)
        if self._bytes >= self._limits.size or self._rows == self._limits.rows:
            self.flush()

    def flush(self) -> None:
        """See ``BulkWriter.flush``."""
        if self._rows:
            self._begin_once()
            self._put(pa.Table.from_batches(self._waiting, self._schema))
            self._waiting, self._small, self._rows, self._bytes = [], 0, 0, 0

    def finish(self) -> None:
        """See ``BulkWriter.finish``. Without any record, a valid file of no rows."""
        self.flush()
        self._begin_once()
        self._end()

    def _begin_once(self) -> None:
        if not self._begun:
            self._begun = True
            self._begin()

    def _keep(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        size = columns.size(batch)
        if batch.get_total_buffer_size() > _LEAST_PART * size:
            batch = self._copied(batch)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += size
        self._small = self._small + 1 if batch.num_rows < _SMALL_ROWS else 0
        if self._small == _SMALL_SLICES:
            self._merge()

    def _merge(self) -> None:
        """Copy the small slices at the end into one batch of their own."""
        merged = self._joined(self._waiting[-self._small :])
        self._waiting[-self._small :] = merged
        self._small = int(sum(one.num_rows for one in merged) < _SMALL_ROWS)

    def _copied(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows without the rest of their batch. Two pieces, since one would not be copied."""
        half = batch.num_rows // 2
        (copied,) = self._joined([batch.slice(0, half), batch.slice(half)])
        return copied

    def _joined(self, pieces: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return pa.Table.from_batches(pieces, self._schema).combine_chunks().to_batches()
