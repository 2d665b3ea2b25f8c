"""What the footer of an ORC file has to say and pyarrow's writer has no option for.

That is the calendar of its dates, without which readers in Java take those before 1582 for Julian ones
and move them by days; and key-value pairs of the user's.

An ORC file ends with its footer, a postscript that says how long the footer is, and one byte, the
length of the postscript. Footer and postscript are protobuf messages, and a message may be continued
by appending fields to it. So they are appended to the footer as they are, in chunks that are marked as
not compressed, and only its length has to be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from formats.varint import varint

if TYPE_CHECKING:
    from formats.api import BinaryOutput, Buffer

_VARINT, _BYTES = 0, 2  # protobuf's kinds of field
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE = 1, 2, 3  # fields of the postscript
_METADATA, _CALENDAR = 5, 11  # fields of the footer
_PROLEPTIC_GREGORIAN: Final = 2  # as in Arrow, Spark and ISO 8601
_NAME, _VALUE = 1, 2  # fields of its items


class TailOutput:
    """An output that changes the end of an ORC file: what is written between ``begin`` and ``end``.

    Args:
        output: takes the file.
        pairs: for the footer.
    """

    def __init__(self, output: BinaryOutput, pairs: Mapping[str, str]) -> None:
        self._output = output
        self._pairs = pairs
        self._tail: bytearray | None = None

    @property
    def closed(self) -> bool:
        """See ``BinaryOutput.closed``."""
        return self._output.closed

    def write(self, data: Buffer, /) -> int:
        """See ``BinaryOutput.write``."""
        if self._tail is None:
            return self._output.write(data)
        self._tail += memoryview(data)
        return memoryview(data).nbytes

    def tell(self) -> int:
        """See ``BinaryOutput.tell``."""
        return self._output.tell() + len(self._tail or b"")

    def flush(self) -> None:
        """See ``BinaryOutput.flush``."""
        self._output.flush()

    def begin(self) -> None:
        """Keep what is written from now on: at most the last stripe, and the footer."""
        self._tail = bytearray()

    def end(self) -> None:
        """Write what was kept, with calendar and pairs."""
        tail, self._tail = bytes(self._tail or b""), None
        self._output.write(completed(tail, self._pairs))


def completed(file: bytes, pairs: Mapping[str, str]) -> bytes:
    """The end of an ORC file, or a whole one, with its calendar and ``pairs`` in the footer."""
    start = len(file) - 1 - file[-1]
    postscript = _fields(file[start:-1])
    sizes = {number: value for number, value in postscript if isinstance(value, int)}
    items = b"".join(_field(_METADATA, _item(name, value)) for name, value in sorted(pairs.items()))
    items += _field(_CALENDAR, _PROLEPTIC_GREGORIAN)
    block = sizes[_BLOCK_SIZE] if sizes.get(_COMPRESSION) else 0
    added = _chunks(items, block) if block else items
    changed = b"".join(
        _field(number, value + len(added) if number == _FOOTER_LENGTH else value)
        for number, value in postscript
    )
    return b"".join((file[:start], added, changed, bytes([len(changed)])))


def values(message: bytes, number: int) -> list[Any]:
    """The numbers or bytes of every field of that number in a message of protobuf's."""
    return [value for field, value in _fields(message) if field == number]


def _item(name: str, value: str) -> bytes:
    return _field(_NAME, name.encode()) + _field(_VALUE, value.encode())


def _chunks(data: bytes, size: int) -> bytes:
    """Chunks as ORC frames them: three bytes of length, doubled; odd for bytes that are not compressed."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join((len(piece) << 1 | 1).to_bytes(3, "little") + piece for piece in pieces)


def _fields(message: bytes) -> list[tuple[int, Any]]:
    """Number and value of each field: of numbers and of bytes, since tails have no others at their top."""
    fields: list[tuple[int, Any]] = []
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        number, at = _number(message, at)
        if key & 7 == _BYTES:
            fields.append((key >> 3, message[at : at + number]))
            at += number
        else:
            fields.append((key >> 3, number))
    return fields


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at
