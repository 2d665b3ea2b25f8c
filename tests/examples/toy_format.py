"""A format as small as can be, finished: lines of ``name:value``, with tabs between them (LTSV).

The entry ``"toy"`` of ``ROW_FORMATS`` in ``tests/formats/conftest.py`` enrols it in the suite of row formats.
"""

import pyarrow.compute as pc

from formats import FormatError, LineEncoder, columns
from formats.text import render

ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n"}  # the backslash first


class ToyEncoder(LineEncoder):
    """A null is left out. What stands between records or values is escaped in them."""

    extension = ".ltsv"

    def lines(self, batch):
        named = zip(batch.schema.names, batch.columns, strict=True)
        fields = [pc.binary_join_element_wise(name, self._text(column), ":") for name, column in named]
        return pc.binary_join_element_wise("", *fields, "\t", null_handling="skip")

    def check_schema(self, schema):
        for field in schema:
            if columns.is_nested(field.type):
                raise FormatError(f"column {field.name!r} of type {field.type} is nested: use to_json")
            render.check_scalar(field.type, path=field.name)

    def _text(self, column):
        text = render.text(column, style=render.Style.CSV)
        for character, escaped in ESCAPES.items():
            text = pc.replace_substring(text, character, escaped)
        return text
