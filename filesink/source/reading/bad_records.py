"""Records that cannot be read: left out, or made rows of their own, while all others are read.

Where files are lines that are not compressed, a bad record is found among good ones: a range that fails is
cut where records begin, and halved until a single one is left. A range is read as a whole before any of it
is handed on, so no record comes twice. Of all other files what can be read up to the first error is kept.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from filesink.naming import shown
from filesink.source.files import FileSplit
from filesink.source.reading.codes import codec_of
from filesink.source.reading.opening import is_of_lines, records
from filesink.source.reading.plan import BadRecords, ReadPlan
from formats.api import Split
from formats.csv.options import CsvOptions
from formats.errors import FormatError
from formats.text import charsets
from formats.text.text_file import behind_feeds

_PIECE: Final = 1 << 20  # bytes of a file that are in memory as records before they are handed on
_SHOWN: Final = 1 << 16  # characters of a record that are kept
log = logging.getLogger("filesink")

#: Records that could be read, or none and the text of one that could not.
Found = tuple[pa.RecordBatch, str | None]


def lenient(plan: ReadPlan, file: BinaryIO, split: FileSplit, *, schema: pa.Schema) -> Iterator[Found]:
    """What is in a split, as batches of ``schema``; see ``BadRecords``."""
    is_kept = plan.reading.bad_records is BadRecords.PERMISSIVE
    count = 0
    for batch, text in _all(plan, file, split, schema):
        count += text is not None
        if text is None or is_kept:
            yield batch, text
    if count and not is_kept:
        log.warning("%d bad records of '%s' were left out", count, shown(split.file.path))


def _all(plan: ReadPlan, file: BinaryIO, split: FileSplit, schema: pa.Schema) -> Iterator[Found]:
    if is_of_lines(plan.code) and codec_of(split.file.path) is None:
        yield from _Lines(plan, file, split, schema).found()
        return
    try:
        for batch in records(plan.code, file, split, schema=schema):
            yield batch, None
    except FormatError as error:
        if error.kind != "value":
            raise
        yield _nulls(schema), f"the rest of the file cannot be read: {error.message}"


class _Lines:
    """A split of a file of lines."""

    def __init__(self, plan: ReadPlan, file: BinaryIO, split: FileSplit, schema: pa.Schema) -> None:
        self._code = plan.code
        self._file = file
        self._split = split
        self._schema = schema
        self._charset: str = getattr(plan.code, "charset", charsets.UTF_8)
        self._has_quotes = isinstance(plan.code, CsvOptions) and plan.code.dialect.quotes()

    def found(self) -> Iterator[Found]:
        """Its records, a piece at a time."""
        whole = self._split.range or Split(0, self._split.file.size)
        for piece in self._cut(whole, _PIECE):
            batches = self._read(piece)
            if batches is not None:
                yield from ((batch, None) for batch in batches)
            else:
                starts = self._starts(piece)
                yield from self._halved([*starts, piece.end])

    def _halved(self, places: Sequence[int]) -> Iterator[Found]:
        """The records that begin at ``places``, of which the last is behind them."""
        if len(places) < 2:
            return
        batches = self._read(Split(places[0], places[-1]))
        if batches is not None:
            yield from ((batch, None) for batch in batches)
        elif len(places) == 2:
            yield _nulls(self._schema), self._text(places[0], places[1])
        else:
            middle = len(places) // 2
            yield from self._halved(places[: middle + 1])
            yield from self._halved(places[middle:])

    def _read(self, piece: Split) -> list[pa.RecordBatch] | None:
        """The records of ``piece``; ``None`` if one is bad."""
        try:
            split = FileSplit(self._split.file, piece)
            return [*records(self._code, self._file, split, schema=self._schema)]
        except FormatError as error:
            if error.kind != "value":
                raise
            return None

    def _cut(self, piece: Split, target: int) -> list[Split]:
        """``piece`` cut where records begin, or anywhere if the format does not mind."""
        if not self._has_quotes:
            starts = range(piece.start, piece.end, target)
            return [Split(start, min(start + target, piece.end)) for start in starts]
        inside = cast("BinaryIO", _Slice(self._file, piece))
        found = self._code.splits(inside, target=target)
        return [Split(piece.start + one.start, piece.start + one.end) for one in found if one.end]

    def _starts(self, piece: Split) -> list[int]:
        """Where the records of ``piece`` begin."""
        if self._has_quotes:
            return [one.start for one in self._cut(piece, 1)]
        feed = charsets.line_feed(self._charset)
        before = max(piece.start - len(feed), 0) // len(feed) * len(feed)
        block = self._bytes(Split(before, piece.end))
        behind = [before + int(place) for place in behind_feeds(block, feed)]
        first = [0] if piece.start == 0 else []
        return [place for place in (*first, *behind) if piece.start <= place < piece.end]

    def _text(self, start: int, end: int) -> str:
        """The record that begins at ``start``; a line may go on behind ``end``, which is that of a piece."""
        self._file.seek(start)
        text = self._file.read(min(end - start, _SHOWN) if self._has_quotes else _SHOWN)
        record = text.decode(self._charset, errors="replace")
        return record.rstrip("\r\n") if self._has_quotes else record.partition("\n")[0].rstrip("\r")

    def _bytes(self, piece: Split) -> bytes:
        self._file.seek(piece.start)
        return self._file.read(piece.end - piece.start)


class _Slice(io.RawIOBase):
    """A range of a file as a file of its own."""

    def __init__(self, file: BinaryIO, piece: Split) -> None:
        self._file = file
        self._piece = piece
        self._at = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See ``io.IOBase.seek``; from the beginning, or to the end."""
        self._at = offset if whence == io.SEEK_SET else self._piece.end - self._piece.start + offset
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """See ``io.RawIOBase.read``."""
        left = self._piece.end - self._piece.start - self._at
        self._file.seek(self._piece.start + self._at)
        found = self._file.read(left if size < 0 else min(size, left))
        self._at += len(found)
        return found


def _nulls(schema: pa.Schema) -> pa.RecordBatch:
    """One record without any value."""
    nullable = pa.schema([field.with_nullable(True) for field in schema])  # noqa: FBT003
    kinds: list[Any] = schema.types
    return pa.RecordBatch.from_arrays([pa.nulls(1, kind) for kind in kinds], schema=nullable)
