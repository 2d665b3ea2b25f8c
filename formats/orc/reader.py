"""ORC files back as record batches, a stripe at a time.

By pyarrow, which makes columns of a stripe; pyorc would make a tuple of each record. Where stripes begin
pyarrow keeps to itself, but it hands out the tail of the file as liborc has read it, expanded, whatever its
codec: a protobuf message, in which that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import orc

from formats import columns, reading
from formats.orc import tail as orc_tail
from formats.read_limits import guard_of
from formats.splitting import Split, Units

_FOOTER: Final = 2  # field of the tail
_STRIPES: Final = 3  # field of the footer
_OFFSET: Final = 1  # field of a stripe


def open_reader(
    file: BinaryIO, *, schema: pa.Schema | None, split: Split | None = None
) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader`` and, for a split, ``BulkWriterFactory.open_split``."""
    source, found = _opened(file)
    stripes = range(found.nstripes) if split is None else _stripes(found).of(split)
    return reading.reader(
        found.schema, lambda: source.checked(_batches(found, stripes)), wanted=schema, guard=guard_of(file)
    )


def splits(file: BinaryIO, *, target: int) -> list[Split]:
    """See ``BulkWriterFactory.splits``."""
    _, found = _opened(file)
    return _stripes(found).splits(target)


def _opened(file: BinaryIO) -> tuple[reading.Source, orc.ORCFile]:
    source = reading.Source(file)
    with source.as_damage("no readable ORC file"):
        lent: Any = source
        found = orc.ORCFile(lent)
        _ = found.schema  # which may be one that Arrow does not have
        return source, found


def _stripes(file: orc.ORCFile) -> Units:
    known: Any = file
    footers = orc_tail.values(known.reader.serialized_file_tail(), _FOOTER)
    stripes = [stripe for footer in footers for stripe in orc_tail.values(footer, _STRIPES)]
    return Units.at([sum(orc_tail.values(stripe, _OFFSET)) for stripe in stripes], size=known.file_length)


def _batches(file: orc.ORCFile, stripes: range) -> Iterator[pa.RecordBatch]:
    for number in stripes:
        stripe: Any = file.read_stripe(number)
        rows = reading.rows_per_batch(columns.size(stripe), stripe.num_rows)
        for start in range(0, stripe.num_rows, rows):
            yield stripe.slice(start, rows)
