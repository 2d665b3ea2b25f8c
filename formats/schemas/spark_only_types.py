"""Types whose bytes only Spark understands: no format can hold them."""

from __future__ import annotations

import pyarrow as pa

from formats import columns
from formats.errors import FormatError


def refuse(schema: pa.Schema) -> None:
    """Raise if a column, or something inside one, is a VARIANT, a GEOMETRY or a GEOGRAPHY.

    Raises:
        FormatError: kind ``"schema"``; names it, with its path, and what to write instead.
    """
    for path, field in columns.walk(schema):
        found = columns.spark_only(field.type)
        if found is not None:
            name, function = found
            raise FormatError(f"column {path!r} is a {name}: write {function}({path}) instead")
