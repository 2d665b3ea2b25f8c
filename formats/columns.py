"""What every format needs to know about Arrow columns: their plain form, their bytes, their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from formats.arrow import Column, Field

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
# Spark's types that Arrow sees as structs of bytes, one of which is marked; and what can be written instead.
_SPARK_ONLY: Final = {
    b"variant": ("VARIANT", "to_json"),
    b"geometry": ("GEOMETRY", "st_asbinary"),
    b"geography": ("GEOGRAPHY", "st_asbinary"),
}
_VIEW: Final = 16  # bytes of a view, the first four of which are the length of the value
_INSIDE: Final = 12  # bytes of a value that stand in the view itself
_SMALL: Final = 1 << 16  # bytes, up to which what slices share is not worth a look at the types


def plain(column: Column) -> Column:
    """The same values without dictionary, and text and bytes with 32-bit offsets.

    Raises:
        pa.ArrowException: more than 2 GiB of text; encode fewer rows at a time.
    """
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pt.is_large_string(column.type) or column.type == pa.string_view():
        return column.cast(pa.string())
    if pt.is_large_binary(column.type) or column.type == pa.binary_view() or _is_fixed_binary(column.type):
        return column.cast(pa.binary())
    return column


def offsets(column: Column) -> Offsets:
    """Where the values of a plain string or binary column begin in its data; one more than values."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):  # Arrow may leave out the offsets of an empty column
        return np.zeros(len(column) + 1, np.int64)
    return np.frombuffer(buffer, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)


def data(column: Column) -> pa.Buffer:
    """The bytes of all values of a plain string or binary column, one after the other, not copied."""
    buffer = column.buffers()[2]
    if buffer is None or not len(column):
        return pa.py_buffer(b"")
    limits = np.frombuffer(column.buffers()[1], np.int32)[[column.offset, column.offset + len(column)]]
    values: pa.Buffer = buffer.slice(int(limits[0]), int(limits[1] - limits[0]))
    return values


def data_array(column: Column) -> Bytes:
    """``data`` as an array of bytes."""
    return np.frombuffer(memoryview(data(column)), np.uint8)


def size(batch: pa.RecordBatch) -> int:
    """``batch.nbytes``, what the slice takes, for a tenth of its price: no object per column.

    Of what all slices of a batch share, the texts of views and dictionaries, a column counts for its own
    values only; inside of nested columns everything.
    """
    nbytes: int = batch.to_struct_array().nbytes
    if nbytes <= _SMALL or not any(_is_view(kind) or pt.is_dictionary(kind) for kind in batch.schema.types):
        return nbytes
    return sum(_own_size(column) for column in batch.columns)


def _own_size(column: Column) -> int:
    if pt.is_dictionary(column.type):
        whole = _own_size(column.dictionary)
        share = whole * len(column) // max(len(column.dictionary), 1)
        return int(column.indices.nbytes + min(whole, share))
    if not _is_view(column.type):
        return int(column.nbytes)
    if not len(column):
        return 0
    views = np.frombuffer(column.buffers()[1], np.int32)[:: _VIEW // 4]
    lengths = views[column.offset : column.offset + len(column)]
    if column.null_count:  # the view of a null may hold anything
        lengths = lengths[column.is_valid().to_numpy(zero_copy_only=False)]
    return _VIEW * len(column) + int(lengths[lengths > _INSIDE].sum(dtype=np.int64))


def _is_view(kind: Any) -> bool:
    return bool(pt.is_string_view(kind) or pt.is_binary_view(kind))


def children(field: Field, *, path: str) -> list[tuple[str, Field]]:
    """Path and field of what is directly inside a nested column: ``a.b``, ``list[]``, ``map.key``."""
    kind = field.type
    if pt.is_struct(kind):
        return [(f"{path}.{child.name}", child) for child in map(kind.field, range(kind.num_fields))]
    if pt.is_map(kind):
        return [(f"{path}.key", kind.key_field), (f"{path}.value", kind.item_field)]
    if is_list(kind):
        return [(f"{path}[]", kind.value_field)]
    return []


def walk(schema: pa.Schema) -> Iterator[tuple[str, Field]]:
    """Path and field of every column and of everything inside it, outermost first."""
    waiting = [(field.name, field) for field in reversed(list(schema))]
    while waiting:
        path, field = waiting.pop()
        yield path, field
        waiting.extend(reversed(children(field, path=path)))


def nullable(field: Field, leaf: Callable[[Any], Any] = lambda kind: kind) -> Field:
    """The field, and everything inside it but keys of maps, allowed to be null.

    Args:
        field: a column.
        leaf: what becomes of the types that are not nested; by default they stay.
    """
    return field.with_type(_nullable_type(field.type, leaf)).with_nullable(nullable=True)


def _nullable_type(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    if pt.is_struct(kind):
        return pa.struct([nullable(kind.field(index), leaf) for index in range(kind.num_fields)])
    if pt.is_map(kind):
        key = kind.key_field.with_type(_nullable_type(kind.key_type, leaf))
        return pa.map_(key, nullable(kind.item_field, leaf), kind.keys_sorted)
    if pt.is_large_list(kind):
        return pa.large_list(nullable(kind.value_field, leaf))
    if pt.is_fixed_size_list(kind):
        return pa.list_(nullable(kind.value_field, leaf), kind.list_size)
    return pa.list_(nullable(kind.value_field, leaf)) if pt.is_list(kind) else leaf(kind)


def without_dictionary(kind: Any) -> Any:
    """The type of the values that a dictionary stands for; any other type itself."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists of any layout; a map is not a list."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def is_nested(kind: pa.DataType) -> bool:
    """Whether values are made of other values."""
    return bool(pt.is_nested(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, in any layout."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or kind == pa.string_view())


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes, in any layout."""
    return bool(
        pt.is_binary(kind) or pt.is_large_binary(kind) or kind == pa.binary_view() or _is_fixed_binary(kind)
    )


def spark_only(kind: Any) -> tuple[str, str] | None:
    """Name of a type whose bytes only Spark understands, and the SQL function that makes them readable.

    ``None`` for every other type.
    """
    if not pt.is_struct(kind):
        return None
    marks = [mark for index in range(kind.num_fields) for mark in kind.field(index).metadata or ()]
    return next((_SPARK_ONLY[mark] for mark in marks if mark in _SPARK_ONLY), None)


def _is_fixed_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_fixed_size_binary(kind))


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """``table`` with the types of ``schema``, which has the same columns and allows all nulls that are there.

    Raises:
        pa.ArrowException: a value does not fit its new type.
    """
    if table.schema.equals(schema):
        return table
    kinds: Any = schema.types
    arrays: list[Any] = [
        pa.chunked_array([cast(chunk, kind) for chunk in column.chunks], kind)
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def cast(column: Column, kind: Any) -> Column:
    """``column.cast(kind)``, which in pyarrow 26 damages lists of nothing but null that stay such lists.

    Raises:
        pa.ArrowException: as ``column.cast`` does.
    """
    if column.type.equals(kind):
        return column
    return _cast_void(column, kind) if _has_void(column.type) else column.cast(kind)


def _cast_void(column: Column, kind: Any) -> Column:
    found = column.type
    if pt.is_null(found):
        return pa.nulls(len(column), kind)
    if pt.is_struct(found) and pt.is_struct(kind) and kind.num_fields:
        return _cast_struct(column, kind)
    if pt.is_map(found) and pt.is_map(kind):
        return rewrapped(column, kind, cast(column.keys, kind.key_type), cast(column.items, kind.item_type))
    if is_list(found) and found.id == kind.id:
        return rewrapped(column, kind, cast(column.values, kind.value_type))
    return column.cast(kind)


def _cast_struct(column: Column, kind: Any) -> Column:
    fields = [kind.field(place) for place in range(kind.num_fields)]
    names = [field.name for field in fields]
    is_same = names == [field.name for field in column.type]  # then a name may even occur twice
    places = range(len(names)) if is_same else map(column.type.get_field_index, names)
    inner = [
        pa.nulls(len(column), field.type) if place < 0 else cast(column.field(place), field.type)
        for field, place in zip(fields, places, strict=True)
    ]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(inner, fields=fields, mask=mask)


def rewrapped(column: Column, kind: Any, *inner: Column) -> Column:
    """The lists or maps of ``column``, a slice or not, around other values; of a map keys and items."""
    if pt.is_map(kind):
        inner = (pa.StructArray.from_arrays(list(inner), fields=[kind.key_field, kind.item_field]),)
    own = column.buffers()[: 1 if pt.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(
        kind, len(column), own, null_count=column.null_count, offset=column.offset, children=list(inner)
    )


def _has_void(kind: Any) -> bool:
    return any(pt.is_null(field.type) for _, field in walk(pa.schema([pa.field("", kind)])))


def without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """``schema`` with the type of the values in place of each column's dictionary; nested ones stay."""
    fields = [field.with_type(without_dictionary(field.type)) for field in schema]
    metadata: Any = schema.metadata
    return pa.schema(fields, metadata)
