"""A look at the rows of an Excel sheet, before a library makes objects of each.

openpyxl has every element of a row in memory at once, and makes an empty row of each number that is left
out: a sheet of some bytes may name row 10^18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, Final, Self
from xml.parsers import expat

from formats.errors import FormatError
from formats.read_limits import Guard

_BLOCK: Final = 256 << 10  # bytes
_MOST_ROWS: Final = 1_048_576  # in a sheet, and columns: Excel's own limits
_MOST_CELLS: Final = 16_384
_OF_AN_ELEMENT: Final = 512  # bytes of memory, in a row


class CheckedSheet:
    """The XML of a sheet, which is looked at before it is handed on.

    Args:
        opened: opens it.
        guard: of the workbook.

    ``read`` raises ``FormatError`` of kind ``"value"``: a row that Excel cannot have, or no XML; and
    ``LimitError``: a row is larger than a record may be.
    """

    def __init__(self, opened: Callable[[], IO[bytes]], guard: Guard) -> None:
        self._sheet = opened()
        self._guard = guard
        self._rows = rows = _Rows(guard)
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = rows.start
        self._parser.EndElementHandler = rows.end
        self._parser.CharacterDataHandler = rows.text
        self._parser.StartDoctypeDeclHandler = rows.refuse_doctype
        self._read = 0

    def read(self, size: int = -1, /) -> bytes:
        """See ``io.RawIOBase.read``."""
        most = min(_BLOCK, self._guard.record)
        block = self._sheet.read(most if size < 0 else min(size, most))
        self._parser.Parse(block, not block)
        self._read += len(block)
        unread = self._read - max(self._parser.CurrentByteIndex, 0)
        self._guard.check_record(self._rows.size + unread, "a row of a sheet")
        return block

    def close(self) -> None:
        """Close the sheet."""
        self._sheet.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Rows:
    """Called by the parser; counts what a row takes."""

    def __init__(self, guard: Guard) -> None:
        self.size = 0
        self._guard = guard
        self._row = 0
        self._cells = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "row":
            self.size = self._cells = 0
            number = attributes.get("r")
            self._row = self._row + 1 if number is None else _number(number)
            if self._row > _MOST_ROWS:
                raise FormatError(f"the sheet is damaged: it has a row beyond {_MOST_ROWS}", kind="value")
        elif name == "c":
            self._cells += 1
            if self._cells > _MOST_CELLS:
                raise FormatError(
                    f"the sheet is damaged: a row has more than {_MOST_CELLS} cells", kind="value"
                )
        self._count(_OF_AN_ELEMENT + sum(map(len, attributes.values())))

    def text(self, text: str) -> None:
        self._count(len(text))

    def end(self, tag: str) -> None:
        if tag.rpartition(":")[2] == "row":
            self.size = 0

    def refuse_doctype(self, *_: Any) -> None:
        raise FormatError("a sheet has a document type, which is refused: it may be a bomb", kind="value")

    def _count(self, size: int) -> None:
        self.size += size
        self._guard.check_record(self.size, "a row of a sheet")


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise FormatError("the sheet is damaged: it has a row without a valid number", kind="value")
    return int(text)
