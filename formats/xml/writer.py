"""XML: one element per record below a root, columns as elements or attributes of it.

A null is left out. Values have the text that JSON gives them, bytes are base64. Characters that XML 1.0
does not have, such as most control characters, cannot be written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, cast, get_args

import pyarrow as pa

from formats import columns
from formats.api import BulkWriter, BulkWriterFactory
from formats.arguments import one_of
from formats.arrow import Column, Text, pc
from formats.buffered_bulk_writer import BufferedBulkWriter, Limits
from formats.errors import FormatError
from formats.sizes import parse_size
from formats.text import charsets, render
from formats.text.lines import MAX_TEXT, framed, in_pieces
from formats.xml import reader as xml_reader
from formats.xml.reader import XmlLayout

if TYPE_CHECKING:
    from formats.api import BinaryOutput

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# The regular expressions of Arrow are RE2's; lone surrogates are no UTF-8 and never come here.
_FORBIDDEN: Final = "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\ufffe\uffff]"
# A reader turns line breaks and tabs of attributes into spaces, and a carriage return into a line feed.
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_IN_ATTRIBUTES: Final = {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"}


@dataclass(frozen=True, kw_only=True)
class XmlWriterFactory(BulkWriterFactory):
    """XML files of columns that are not nested.

    Attributes:
        root_tag: the outermost element.
        row_tag: the element of a record.
        layout: ``"elements"``, ``<RECORD><a>1</a></RECORD>``, or ``"attributes"``, ``<RECORD a="1"/>``.
        block_size: records are written when this much waits, in Arrow's form.

    Raises:
        FormatError: kind ``"option"``; a tag that is no XML name, an unknown layout, or no size.
    """

    root_tag: str = "RECORDS"
    row_tag: str = "RECORD"
    layout: XmlLayout = "elements"
    block_size: int | str = "1MiB"

    extension = ".xml"
    writes_text = True

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("root_tag", "row_tag"):
            if not isinstance(getattr(self, name), str) or not _NAME.fullmatch(getattr(self, name)):
                raise FormatError(f"{name} must be an XML name such as 'RECORD'", kind="option")
        one_of(self.layout, get_args(XmlLayout), name="layout")
        object.__setattr__(self, "block_size", parse_size(self.block_size, name="block_size"))

    def create(self, output: BinaryOutput, schema: pa.Schema) -> BulkWriter:
        """See ``BulkWriterFactory.create``."""
        return XmlWriter(output, schema, self)

    def signature(self) -> str:
        """See ``BulkWriterFactory.signature``."""
        return f"xml {self.root_tag} {self.row_tag} {self.layout}"

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BulkWriterFactory.check_schema``."""
        if not len(schema):
            raise FormatError("XML needs at least one column")
        for field in schema:
            if columns.is_nested(field.type):
                raise FormatError(
                    f"column {field.name!r} of type {field.type} is nested: use to_json or to_xml"
                )
            if not _NAME.fullmatch(field.name) or field.name.lower().startswith("xml"):
                raise FormatError(f"column {field.name!r} has a name that XML does not allow: rename it")
            render.check_scalar(field.type, path=field.name)

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``BulkWriterFactory.open_reader``; ``schema`` is needed."""
        return xml_reader.open_reader(
            file, tags=(self.root_tag, self.row_tag), layout=self.layout, schema=schema
        )

    def records(self, batch: pa.RecordBatch) -> Text:
        """The element of each record."""
        fields = [
            self._field(column, name) for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        if self.layout == "attributes":
            return pc.binary_join_element_wise(f"<{self.row_tag}", *fields, "/>", "", null_handling="skip")
        start, end = f"<{self.row_tag}>", f"</{self.row_tag}>"
        return pc.binary_join_element_wise(start, *fields, end, "", null_handling="skip")

    def _field(self, column: Column, name: str) -> Text:
        text = render.text(column, style=render.Style.JSON)
        in_attribute = self.layout == "attributes"
        if columns.is_text(columns.plain(column).type):
            text = _escaped(text, name, _ESCAPES | _IN_ATTRIBUTES if in_attribute else _ESCAPES)
        if in_attribute:
            return pc.binary_join_element_wise(f' {name}="', text, '"', "")
        return pc.binary_join_element_wise(f"<{name}>", text, f"</{name}>", "")


class XmlWriter(BufferedBulkWriter):
    """Writes what has been collected as elements.

    Args:
        output: the file.
        schema: of the records.
        factory: its options.
    """

    def __init__(self, output: BinaryOutput, schema: pa.Schema, factory: XmlWriterFactory) -> None:
        super().__init__(schema, Limits(size=cast("int", factory.block_size)))
        self._output = output
        self._factory = factory

    def _put(self, table: pa.Table) -> None:
        pieces = [
            piece
            for batch in table.to_batches()
            for piece in in_pieces(batch, lambda rows: framed(self._factory.records(rows)))
        ]
        for piece in pieces:
            self._output.write(charsets.repaired(piece))

    def _end(self) -> None:
        self._output.write(f"</{self._factory.root_tag}>\n".encode())

    def _begin(self) -> None:
        start = f'<?xml version="1.0" encoding="UTF-8"?>\n<{self._factory.root_tag}>\n'
        self._output.write(start.encode())


def _escaped(text: Text, name: str, escapes: dict[str, str]) -> Text:
    if pc.any(pc.match_substring_regex(text, _FORBIDDEN)).as_py():
        raise FormatError(
            f"column {name!r} holds a character that XML does not have: remove control characters",
            kind="value",
        )
    present = [character for character in escapes if pc.any(pc.match_substring(text, character)).as_py()]
    # Arrow's replacement would not notice that its result is too long.
    if present and len(columns.data(text)) > MAX_TEXT:
        raise pa.ArrowCapacityError("text may exceed 2 GiB when it is escaped")
    for character in present:  # the ampersand is the first
        text = pc.replace_substring(text, character, escapes[character])
    return text
