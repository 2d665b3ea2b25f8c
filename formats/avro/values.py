"""Arrow columns as Avro's binary encoding, whole columns at a time.

Avro lays out records one after the other, each value with its own length. So every column becomes
*pieces* that hold its bytes for all rows: a table of as many cells as the longest value takes, with
the number that counts in each row, or an Arrow column of bytes. Pieces side by side are joined row by
row by Arrow, and the result is again a column of bytes: that of the items of a list, or the records.

No library does it: polars cannot write an instant, a map or a small integer, and fastavro takes rows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.arrow import Column, pc
from formats.columns import Bytes
from formats.errors import FormatError
from formats.text import ragged
from formats.text.ragged import Piece, Present

Json = Any
_END: Final = 0  # of an array or a map


def records(batch: pa.RecordBatch, schema: Json) -> Column:
    """The bytes of every record of ``batch``, a column of binary without nulls.

    Args:
        batch: with the columns and types of ``avro_types.arrow_schema(schema)``.
        schema: Avro's, without references to named types.

    Raises:
        pa.ArrowCapacityError: they are more than 2 GiB; encode fewer records at a time.
        FormatError: kind ``"value"``; a null or a text that the schema does not allow.
    """
    pieces: list[Piece] = []
    for column, field in zip(batch.columns, schema["fields"], strict=True):
        pieces += _field(column, field["type"], path=field["name"], present=None)
    return ragged.joined(pieces, rows=batch.num_rows)


def decimal_size(precision: int) -> int:
    """Bytes of the largest number of ``precision`` digits, with its sign."""
    return int(10**precision - 1).bit_length() // 8 + 1


def _field(column: Column, kind: Json, *, path: str, present: Present | None) -> list[Piece]:
    """A value behind the branch of its union; nothing in rows that are not ``present``.

    Those are inside a struct that is null, and null themselves.
    """
    valid = np.asarray(column.is_valid()) if column.null_count else None
    branches = kind if isinstance(kind, list) else [kind]
    null = branches.index("null") if "null" in branches else None
    if null is None and valid is not None and (present is None or np.any(valid != present)):
        raise FormatError(f"column {path!r} is null, and the Avro schema does not allow it", kind="value")
    value = next((at for at in range(len(branches)) if at != null), None)
    pieces = [] if value is None else _value(column, branches[value], path=path, valid=valid)
    if not isinstance(kind, list):
        return pieces
    at_value, at_null = (2 * (at or 0) for at in (value, null))  # zigzag numbers
    branch = np.full((len(column), 1), at_null if value is None else at_value, np.uint8)
    if valid is not None and null is not None:
        branch[~valid] = at_null
    return [ragged.fixed(branch, present), *pieces]


def _value(column: Column, kind: Json, *, path: str, valid: Present | None) -> list[Piece]:
    """The value without its branch; nothing where it is null."""
    name = kind if isinstance(kind, str) else kind["type"]
    match name:
        case "record":
            return _struct(column, kind, path=path, valid=valid)
        case "array" | "map":
            return _items(column, kind, path=path, valid=valid)
        case "string" | "bytes" | "fixed" if not pt.is_decimal(column.type):
            return _texts(column, fixed=name == "fixed", valid=valid)
        case str():
            return [_number(column, kind, path=path, valid=valid)]
        case _:  # one more pair of braces around a type
            return _value(column, name, path=path, valid=valid)


def _number(column: Column, kind: Json, *, path: str, valid: Present | None) -> Piece:
    name = kind if isinstance(kind, str) else kind["type"]
    match name:
        case "boolean":
            return ragged.fixed(_filled(column).astype(np.uint8).reshape(-1, 1), valid)
        case "int" | "long":
            return ragged.zigzag(_whole(column), valid)
        case "enum":
            return ragged.zigzag(_symbols(column, kind["symbols"], path=path), valid)
        case "float" | "double":
            return ragged.fixed(_cells(_filled(column)), valid)
        case _:
            return ragged.fixed(_decimals(column, size=kind.get("size")), valid)


def _struct(column: Column, kind: Json, *, path: str, valid: Present | None) -> list[Piece]:
    pieces: list[Piece] = []
    for child, field in zip(column.flatten(), kind["fields"], strict=True):
        pieces += _field(child, field["type"], path=f"{path}.{field['name']}", present=valid)
    return pieces


def _texts(column: Column, *, fixed: bool, valid: Present | None) -> list[Piece]:
    raw = column.cast(pa.binary())
    raw = raw.fill_null(b"") if raw.null_count else raw
    return [raw] if fixed else [ragged.zigzag(np.diff(columns.offsets(raw)), valid), raw]


def _symbols(column: Column, symbols: list[str], *, path: str) -> npt.NDArray[np.int64]:
    places = pc.index_in(column, value_set=pa.array(symbols, pa.string()))
    if places.null_count > column.null_count:
        raise FormatError(f"column {path!r} holds a text that is not one of its Avro symbols", kind="value")
    return np.asarray(places.fill_null(0)).astype(np.int64)


def _decimals(column: Column, *, size: int | None) -> Bytes:
    """Big-endian two's complement, as many bytes as the precision needs behind their number, or ``size``."""
    width = column.type.byte_width
    wanted = decimal_size(column.type.precision) if size is None else size
    start = column.offset * width
    raw = np.frombuffer(column.buffers()[1], np.uint8)[start : start + len(column) * width]
    given = raw.reshape(-1, width)[:, ::-1]
    cells = np.empty((len(column), wanted + 1), np.uint8)
    cells[:, 0] = 2 * wanted  # a zigzag number of one byte
    cells[:, 1:] = (given[:, :1] >> 7) * 0xFF  # the sign
    kept = min(width, wanted)
    cells[:, wanted + 1 - kept :] = given[:, width - kept :]
    return cells if size is None else cells[:, 1:]


def _items(column: Column, kind: Json, *, path: str, valid: Present | None) -> list[Piece]:
    """One block of all the items, if there are any, and the end."""
    is_map = pt.is_map(column.type)
    if is_map:  # Arrow takes apart lists only
        fields = [column.type.key_field, column.type.item_field]
        entries = pa.StructArray.from_arrays([column.keys, column.items], fields=fields)
        column = columns.rewrapped(column, pa.list_(entries.type), entries)
    counts = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    items = column.flatten()
    pieces: list[Piece]
    if not len(items):
        pieces = []
    elif is_map:
        keys, values = items.flatten()
        pieces = _texts(keys, fixed=False, valid=None)
        pieces += _field(values, kind["values"], path=f"{path}.value", present=None)
    else:
        pieces = _field(items, kind["items"], path=f"{path}[]", present=None)
    data = ragged.joined(pieces, rows=len(items))
    starts = columns.offsets(data)
    ends = np.concatenate(([0], np.cumsum(counts)))
    block = ragged.binary(starts[ends] - starts[0], columns.data(data))
    end = ragged.fixed(np.full((len(column), 1), _END, np.uint8), valid)
    return [ragged.zigzag(counts, counts > 0), block, end]


def _whole(column: Column) -> npt.NDArray[np.int64]:
    """Whole numbers; days, or units of time, of what is a date, time, timestamp or interval."""
    if pt.is_date32(column.type) or pt.is_time32(column.type):
        column = column.view(pa.int32())
    elif pt.is_temporal(column.type):
        column = column.view(pa.int64())
    return _filled(column).astype(np.int64, copy=False)


def _filled(column: Column) -> npt.NDArray[Any]:
    """The values as numbers; zero where they are null."""
    if column.null_count:
        column = column.fill_null(pa.scalar(0).cast(column.type))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _cells(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    little = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))
    return little.view(np.uint8).reshape(len(values), -1)
