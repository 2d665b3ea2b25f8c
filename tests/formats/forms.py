"""Formats with records that their readers give back, for suites of readers.

``conftest.py`` registers them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import BinaryIO

import pyarrow as pa

from formats import BulkWriterFactory, FormatError
from formats.api import BaseEncoder, ReadableFormat, Split

Record = tuple[str, ...]
TEXTS = ["plain", 'q"q"', "é 漢 😀", "comma, semi;", "x" * 40, "back\\slash\\", "'", "#"]


def plain() -> pa.RecordBatch:
    """Eight records that every format with their types gives back as they were."""
    return pa.record_batch(
        {
            "int": pa.array([*range(7), -(2**31)], pa.int32()),
            "text": pa.array(TEXTS),
            "dictionary": pa.array(TEXTS).dictionary_encode(),
            "double": pa.array([0.5 * number for number in range(8)]),
        }
    )


@dataclass(frozen=True)
class Form:
    """A format and the records of a file of it.

    Attributes:
        format: reads the file.
        rows: what the file holds.
        is_cut_anywhere: whether any ranges of bytes are splits.
        made_by: what makes the file; ``None`` for the format itself.
        at_a_time: records that are written together, which become a unit if the format has some.
    """

    format: ReadableFormat
    rows: pa.RecordBatch
    is_cut_anywhere: bool = True
    made_by: ReadableFormat | None = None
    at_a_time: int = 3

    def of(self, rows: pa.RecordBatch) -> Form:
        """The same format with other records."""
        return replace(self, rows=rows)

    @cached_property
    def data(self) -> bytes:
        """The file."""
        output = io.BytesIO()
        starts = range(0, self.rows.num_rows, self.at_a_time)
        slices = [self.rows.slice(start, self.at_a_time) for start in starts]
        code = self.format if self.made_by is None else self.made_by
        if isinstance(code, BulkWriterFactory):
            writer = code.create(output, self.rows.schema)
            for some in slices:
                writer.write(some)
                writer.flush()
            writer.finish()
        else:
            encoder = code.start_part()
            output.write(encoder.header(self.rows.schema))
            for some in slices:
                output.write(encoder.encode(some))
        return output.getvalue()

    @cached_property
    def schema(self) -> pa.Schema | None:
        """What its reader is given: nothing if the file says it."""
        try:
            self.format.open_reader(io.BytesIO(self.data))
        except FormatError as error:
            return self.rows.schema if error.kind == "option" else None
        return None

    @property
    def written(self) -> list[Record]:
        """The records that the file was made of."""
        return _texts(self.rows)

    @cached_property
    def whole(self) -> list[Record]:
        """The records that a reader of the file finds."""
        return self.of_bytes(self.data)

    def splits(self, target: int) -> list[Split]:
        """Of the file."""
        return self.format.splits(io.BytesIO(self.data), target=target)

    def of_bytes(self, data: bytes) -> list[Record]:
        """The records that a reader of another file finds."""
        return _texts(self.format.open_reader(io.BytesIO(data), schema=self.schema).read_all())

    def read(self, splits: Iterable[Split], file: BinaryIO | None = None) -> list[Record]:
        """The records that the readers of splits find, one after the other."""
        own = io.BytesIO(self.data) if file is None else file
        readers = (self.format.open_split(own, split, schema=self.schema) for split in splits)
        return [record for reader in readers for record in _texts(reader.read_all())]


def row_form(encoder: BaseEncoder, rows: pa.RecordBatch, *, is_cut_anywhere: bool) -> Form:
    """A row format with those columns of ``rows`` that it can read back."""
    names = [name for name in rows.schema.names if _is_read(Form(encoder, rows.select([name])))]
    return Form(encoder, rows.select(names), is_cut_anywhere)


def _is_read(column: Form) -> bool:
    try:
        return len(column.whole) > 0
    except FormatError:
        return False


def _texts(rows: pa.Table | pa.RecordBatch) -> list[Record]:
    """The values as text, in which a NaN is equal to itself."""
    return [tuple(map(str, row.values())) for row in rows.to_pylist()]
