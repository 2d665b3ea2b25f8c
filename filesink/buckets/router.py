"""Routes record batches to buckets, and decides how many records are routed at a time.

A batch that is one bucket, or a few runs of buckets, passes without a copy. Where records of many
buckets lie mixed, batches are gathered first: routing ten times as many records at once makes a tenth
as many slices, and slices, not records, are what costs. Each record is then copied once more.

Where there are so many buckets that slices would be small all the same, records wait here in *groups* of
buckets, as in the partitions of a hash join, and leave a whole group at a time, split by bucket only
then. Each record is copied twice more, but in pieces that are worth it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from filesink.buckets.contract import (
    BaseBucketAssigner,
    BucketContext,
    assign_ids,
    file_columns,
    split,
    take_each,
)
from filesink.buckets.projection import RECORD_COLUMN
from filesink.errors import BucketError
from filesink.storage.bucket_ids import Encoded, Refusal, encode_ids, refusal
from formats import columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_GOOD_SLICE = 1024  # records; slices of fewer are worth gathering for
_GOOD_BYTES = 64 << 10  # larger slices are not worth a group, however few their records are
_GROUPS = 64
# What may be gathered is the memory that may wait, over this.
_GATHERED = 4
# The same, once it goes to groups. A group that is larger, as that of a bucket with most of the records, goes
# on at once: it is copied as a whole.
_GROUPED = 16


@dataclass(slots=True)
class _Group:
    """Records of some buckets; the last column is the number of the bucket."""

    pieces: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0  # bytes


@dataclass(slots=True)
class Router:
    """Routes the batches of one task; used by one thread.

    Args:
        assigner: names the bucket of each record.
        memory: bytes of records that may wait in the task, here and elsewhere.
        refuse: takes records that have no bucket, with all columns of the input, and why. It may raise.
        why_not: see ``encode_ids``.

    Attributes:
        held: bytes of the records that wait in groups; ``release`` makes them fewer.
    """

    assigner: BaseBucketAssigner
    memory: int
    refuse: Callable[[pa.RecordBatch, BucketError], None]
    why_not: Callable[[str], Refusal | None] = refusal
    held: int = 0
    _columns: list[int] | None = None  # those that go into the files
    _waiting: list[pa.RecordBatch] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0
    _wanted: int = 0  # records to gather before routing; 0 routes every batch as it comes
    _groups: dict[int, _Group] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)  # of the buckets whose records were in groups

    def route(self, batch: pa.RecordBatch, context: BucketContext) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Take ``batch`` in; yield bucket ids with slices of what is routed now, without path columns."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._wanted:
            self._bytes += columns.size(batch)
        if self._rows >= self._wanted or self._is_full():
            yield from self._route_waiting(context)

    def drain(self, context: BucketContext) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Route everything that waits."""
        if self._waiting:
            yield from self._route_waiting(context)
        while self.held:
            yield from self.release()

    def release(self) -> list[tuple[str, pa.RecordBatch]]:
        """Route what waits in the largest group. Called while ``held``."""
        group = self._groups.pop(max(self._groups, key=self._size))
        self.held -= group.size
        batch = _joined(group.pieces)
        numbers, codes = np.unique(batch.column(batch.num_columns - 1).to_numpy(), return_inverse=True)
        names = list(self._numbers)
        records = batch.select(list(range(batch.num_columns - 1)))
        pieces = take_each(records, codes, len(numbers))
        return [(names[number], piece) for number, piece in zip(numbers.tolist(), pieces, strict=True)]

    def _is_full(self) -> bool:
        return self._bytes >= self.memory // (_GROUPED if self.held else _GATHERED)

    def _route_waiting(self, context: BucketContext) -> Iterator[tuple[str, pa.RecordBatch]]:
        pieces = self._split(context)
        # Before pieces come older records of the same buckets.
        most = 0 if pieces else self.memory // _GROUPED
        while any(group.size > most for group in self._groups.values()):
            yield from self.release()
        yield from pieces

    def _split(self, context: BucketContext) -> list[tuple[str, pa.RecordBatch]]:
        """Split what waits, or put it into groups.

        A function of its own, so that nobody holds the rows while copies are written.
        """
        waiting, self._waiting, self._rows = self._waiting, [], 0
        batch = _joined(waiting)
        del waiting  # three times what was gathered would be in memory
        found = encode_ids(assign_ids(self.assigner, batch, context), self.why_not)
        batch, found = self._without_refused(batch, found) if found.refused else (batch, found)
        count, rows = len(found.names), batch.num_rows
        is_mixed = count > 1 and count * _GOOD_SLICE > rows
        is_gathering, self._wanted = self._wanted > 0, 0
        if is_mixed or (is_gathering and count > 1):
            self._wanted = count * _GOOD_SLICE
        size, self._bytes = self._bytes or (columns.size(batch) if is_mixed else 0), 0
        records = self._for_files(batch)
        if self._are_too_many(count, row_size=size / max(rows, 1)):
            self._put_into_groups(records, found)
            return []
        return split(records, found)

    def _without_refused(self, batch: pa.RecordBatch, found: Encoded) -> tuple[pa.RecordBatch, Encoded]:
        """Hand over the records that have no bucket; what is left."""
        derived = self.assigner.derived_columns()
        given = batch.select([name for name in batch.schema.names if name not in derived])
        for why in dict.fromkeys(found.refused.values()):
            those = [index for index, its in found.refused.items() if its == why]
            error = BucketError(f"{self.assigner.origin(why.level)} {why.why}", code=why.code)
            self.refuse(given.filter(pa.array(np.isin(found.codes, those))), error)
        kept = [index for index in range(len(found.names)) if index not in found.refused]
        number = np.full(len(found.names), -1)
        number[kept] = np.arange(len(kept))
        codes = number[found.codes]
        names = [found.names[index] for index in kept]
        return batch.filter(pa.array(codes >= 0)), Encoded(names=names, codes=codes[codes >= 0], refused={})

    def _are_too_many(self, buckets: int, *, row_size: float) -> bool:
        """Whether slices of so many buckets were small even if all that may be gathered was."""
        good = min(_GOOD_SLICE * row_size, _GOOD_BYTES)
        return buckets * good > self.memory // _GATHERED

    def _put_into_groups(self, records: pa.RecordBatch, found: Encoded) -> None:
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in found.names]
        of_records = np.array(numbers, np.int32)[found.codes]
        numbered = records.append_column("", pa.array(of_records))
        for number, piece in enumerate(take_each(numbered, (of_records % _GROUPS).astype(np.uint8), _GROUPS)):
            if piece.num_rows:
                group = self._groups.setdefault(number, _Group())
                size = columns.size(piece)
                group.pieces.append(piece)
                group.size += size
                self.held += size

    def _size(self, number: int) -> int:
        return self._groups[number].size

    def _for_files(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._columns is None:
            names = batch.schema.names
            rendered = RECORD_COLUMN in names
            self._columns = (
                [names.index(RECORD_COLUMN)] if rendered else file_columns(self.assigner, batch.schema)
            )
        return batch if len(self._columns) == batch.num_columns else batch.select(self._columns)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined: pa.RecordBatch = pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)  # type: ignore[attr-defined]
    return joined
