"""XML of records back as record batches, by Expat, one piece of the file at a time.

Values are text in XML, so a schema says what they are; what has more than one form as text (bytes, times
of day, intervals) is refused rather than guessed. A document type is refused as well: with it come
entities, which may be of any size once they are expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from formats import reading
from formats.arrow import pc
from formats.errors import FormatError
from formats.read_limits import Guard, guard_of
from formats.text import line_reader

XmlLayout = Literal["elements", "attributes"]

_BLOCK: Final = 256 << 10  # bytes
_LARGER: Final = 4  # times as much, of what is long
_OF_A_PIECE: Final = 64  # bytes of memory of a text or name, besides its characters
_SHORTEST: Final = 4  # bytes of an element without anything in it
Value = str | bytes  # bytes are UTF-8
_WHITE: Final = " \t\r\n"


def open_reader(
    file: BinaryIO, *, tags: tuple[str, str], layout: XmlLayout, schema: pa.Schema | None
) -> pa.RecordBatchReader:
    """See ``BulkWriterFactory.open_reader``. ``schema`` is needed; ``tags``: of the root, and of a row."""
    wanted = line_reader.require_columns(schema, "XML", others=(pt.is_date32, pt.is_timestamp))
    records = _Records(tags, layout, wanted, guard_of(file))
    return reading.reader(wanted, lambda: _batches(file, records), wanted=None, guard=records.guard)


def _batches(file: BinaryIO, records: _Records) -> Iterator[pa.RecordBatch]:
    file.seek(0)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = records.start
    parser.EndElementHandler = records.end
    parser.CharacterDataHandler = records.text
    parser.StartDoctypeDeclHandler = records.refuse_doctype
    # Elements of nothing are the most records that a block can hold.
    size = least = max(1, min(_BLOCK, records.guard.record, records.most * _SHORTEST))
    read = 0
    while block := file.read(size):
        before = parser.CurrentByteIndex
        _parse(parser, block)
        read += len(block)
        is_long = parser.CurrentByteIndex == before
        # What is long is looked at again with each piece, so larger pieces of it cost less.
        size = min(2 * size, _LARGER * least) if is_long else least
        records.check(read - max(parser.CurrentByteIndex, 0))
        yield from records.taken()
    _parse(parser, b"")
    yield from records.taken()


def _parse(parser: expat.XMLParserType, block: bytes) -> None:
    """Have the parser call the records; an empty block is the end."""
    try:
        parser.Parse(block, not block)
    except FormatError:
        raise
    except expat.ExpatError as error:
        where = f"line {error.lineno}, column {error.offset}"
        raise FormatError(f"the file is no XML, damaged or cut off ({where})", kind="value") from error
    except (LookupError, ValueError) as error:
        raise FormatError("the file is in an encoding that cannot be read here", kind="value") from error


class _Records:
    """Called by the parser; keeps the text of each column until somebody takes it."""

    def __init__(self, tags: tuple[str, str], layout: XmlLayout, schema: pa.Schema, guard: Guard) -> None:
        self.guard = guard
        self.most = reading.most_rows(schema, guard)
        self._size = 0  # of the record that is being read
        self._tags = tags
        self._in_attributes = layout == "attributes"
        self._schema = schema
        self._found: dict[str, list[Value | None]] = {name: [] for name in schema.names}
        self._record: dict[str, Value] = {}
        self._open: list[str] = []
        self._text = bytearray()  # of a value so far; pieces of text would take more

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        depth = len(self._open)
        if depth > 2 or (depth == 2 and (self._in_attributes or tag in self._record)):
            raise FormatError(f"element <{tag[:80]}> stands where no value can be: give layout", kind="value")
        if attributes and (depth == 2 or (depth == 1 and not self._in_attributes)):
            raise FormatError(f"element <{tag[:80]}> has attributes: give layout", kind="value")
        if depth < 2 and tag != self._tags[depth]:
            raise FormatError(
                f"element <{tag[:80]}> stands where <{self._tags[depth]}> should be: give both tags",
                kind="value",
            )
        if depth == 1:
            self._record = dict(attributes) if self._in_attributes else {}
            self._size = 0
        self._count(len(tag) + sum(map(len, attributes)) + sum(map(len, attributes.values())))
        self._open.append(tag)

    def text(self, text: str) -> None:
        if len(self._open) > 2:
            data = text.encode()
            self._text += data
            self._count(len(data))
        elif text.strip(_WHITE):
            raise FormatError("there is text outside of values", kind="value")

    def check(self, unread: int) -> None:
        """Raise ``LimitError`` if the record takes too much with ``unread`` bytes that no event came of."""
        self.guard.check_record(self._size + unread)

    def _count(self, size: int) -> None:
        self._size += _OF_A_PIECE + size
        self.guard.check_record(self._size)

    def end(self, tag: str) -> None:
        self._open.pop()
        if len(self._open) == 2:
            self._record[tag] = bytes(self._text)
            self._text = bytearray()
        elif len(self._open) == 1:
            for name, values in self._found.items():
                values.append(self._record.get(name))

    def refuse_doctype(self, *_: object) -> None:
        raise FormatError("the XML has a document type, which is refused: it may be a bomb", kind="value")

    def taken(self) -> Iterator[pa.RecordBatch]:
        """What has been found since, in small batches."""
        arrays = [_typed(self._found[field.name], field) for field in self._schema]
        for values in self._found.values():
            values.clear()
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        for start in range(0, batch.num_rows, reading.BATCH_ROWS):
            yield batch.slice(start, reading.BATCH_ROWS)


def _text(values: list[Value | None]) -> Any:
    """As Arrow's, whose own way takes up to three times as much of what is long."""
    if not any(value is not None and len(value) > _BLOCK for value in values):
        return pa.array(values, pa.string())
    encoded = [value.encode() if isinstance(value, str) else value or b"" for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    data = pa.py_buffer(encoded[0] if len(encoded) == 1 else b"".join(encoded))
    text = pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends.data), data])
    if None not in values:
        return text
    return pc.if_else(pa.array([value is not None for value in values]), text, None)


def _typed(values: list[Value | None], field: Any) -> Any:
    text: Any = _text(values)
    try:
        return text.cast(reading.with_fractions(field.type)).cast(field.type)
    except pa.ArrowException as error:
        raise FormatError(
            f"column {field.name!r} holds text that is no {field.type}", kind="value"
        ) from error
