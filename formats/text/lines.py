"""Row formats that are lines of text: cut into pieces, rendered column by column, framed without a copy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa

from formats import columns
from formats.api import BaseEncoder
from formats.arrow import Text, pc
from formats.errors import FormatError
from formats.text import charsets

if TYPE_CHECKING:
    from formats.api import Buffer

T = TypeVar("T")

# Arrow's text columns end at 2 GiB, and not all of its functions notice. Escapes make text up to six
# times as long, so a piece of this size (or one row) is far below; small pieces also stay in the cache.
_PIECE_BYTES: Final = 16 * 1024 * 1024
_PIECE_ROWS: Final = 262_144
#: The longest text of one column in one piece whose escaped form certainly fits.
MAX_TEXT: Final = 2**31 // 6


class LineEncoder(BaseEncoder):
    """An encoder whose records are lines, rendered as one Arrow string per record."""

    #: Python's canonical name of the charset of the files.
    charset: str = charsets.UTF_8
    writes_text = True

    @abstractmethod
    def lines(self, batch: pa.RecordBatch) -> Text:
        """Each record without its line feed; no nulls. Called with pieces of what ``encode`` gets."""

    def encode(self, batch: pa.RecordBatch) -> Buffer:
        """See ``Encoder.encode``.

        Raises:
            FormatError: kind ``"value"``; a single record is too long, or the charset has no bytes for
                a character.
        """
        pieces = list(in_pieces(batch, lambda piece: framed(self.lines(piece))))
        text = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return charsets.in_charset(self.as_text(text), self.charset)

    def as_text(self, lines: Buffer) -> Buffer:
        """What the bytes of rendered records become where they are no UTF-8: by default U+FFFD."""
        return charsets.repaired(lines)

    def encode_rendered(self, records: Text) -> Buffer:
        """See ``Encoder.encode_rendered``; what Spark has rendered is UTF-8."""
        return charsets.in_charset(framed(columns.plain(records)), self.charset)


def in_pieces(batch: pa.RecordBatch, render: Callable[[pa.RecordBatch], T]) -> Iterator[T]:
    """``render`` of ``batch``, piece by piece, each small enough for one column of Arrow's.

    Raises:
        FormatError: kind ``"value"``; a single record is too long.
    """
    for piece in _pieces(batch):
        yield from _halved(piece, render)


def _halved(batch: pa.RecordBatch, render: Callable[[pa.RecordBatch], T]) -> Iterator[T]:
    try:
        rendered = render(batch)
    except pa.ArrowCapacityError as error:
        if batch.num_rows == 1:
            raise FormatError("a record is longer than 2 GiB as text; shorten it", kind="value") from error
        middle = batch.num_rows // 2
        yield from _halved(batch.slice(0, middle), render)
        yield from _halved(batch.slice(middle), render)
    else:
        yield rendered


def framed(lines: Text) -> pa.Buffer:
    """All of ``lines``, which are not null, each with a line feed, in one copy.

    Raises:
        pa.ArrowCapacityError: more than 2 GiB.
    """
    if len(columns.data(lines)) + len(lines) >= 2**31:
        raise pa.ArrowCapacityError("more than 2 GiB of text")
    # Joined with the empty line that is added here, every other is followed by a line feed.
    starts = columns.offsets(lines)
    limits = pa.py_buffer(np.append(starts, starts[-1]).astype(np.int32).data)
    texts = pa.StringArray.from_buffers(len(lines) + 1, limits, lines.buffers()[2])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\n")
    return columns.data(joined)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    count = max(-(-columns.size(batch) // _PIECE_BYTES), -(-batch.num_rows // _PIECE_ROWS), 1)
    rows = max(-(-batch.num_rows // count), 1)
    if rows >= batch.num_rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        # Rows differ in length, so a piece of the average number of rows may still be large.
        if piece.num_rows > 1 and columns.size(piece) > 2 * _PIECE_BYTES:
            yield from _pieces(piece)
        else:
            yield piece
