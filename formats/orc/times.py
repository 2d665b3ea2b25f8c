"""Timestamps that pyarrow's ORC writer would damage.

It splits an instant before 1970 with a fraction of a second into seconds and *negative* nanoseconds;
pyarrow and pyorc take them back, readers in Java (Spark, Hive, Trino) fail. So they are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.arrow import Column, pc
from formats.errors import FormatError

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def check_times(table: pa.Table) -> None:
    """Raise if a timestamp of ``table`` cannot be written so that every reader takes it.

    Raises:
        FormatError: kind ``"value"``; names the column, with its path.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if not any(pt.is_timestamp(inner.type) for _, inner in columns.walk(pa.schema([field]))):
            continue
        for chunk in column.chunks:
            for path, values in _timestamps(chunk, path=field.name):
                if _is_damaged(values):
                    raise FormatError(
                        f"column {path!r} has a time before 1970 with a fraction of a second, and readers of "
                        "ORC in Java would fail: cut it to seconds, or write Parquet",
                        kind="value",
                    )


def _timestamps(column: Column, *, path: str) -> Iterator[tuple[str, Column]]:
    kind: Any = column.type
    if pt.is_timestamp(kind):
        yield path, column
    elif pt.is_struct(kind):
        for index, child in enumerate(column.flatten()):
            yield from _timestamps(child, path=f"{path}.{kind.field(index).name}")
    elif pt.is_map(kind):
        entries = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))).flatten()
        for name, child in zip(("key", "value"), entries.flatten(), strict=True):
            yield from _timestamps(child, path=f"{path}.{name}")
    elif columns.is_list(kind):
        yield from _timestamps(column.flatten(), path=f"{path}[]")


def _is_damaged(column: Column) -> bool:
    numbers = column.view(pa.int64())
    earliest = pc.min(numbers).as_py()
    if earliest is None or earliest >= 0:
        return False
    unit = _PER_SECOND[column.type.unit]
    seconds = pc.multiply(pc.divide(numbers, unit), unit)
    return bool(pc.any(pc.and_(pc.less(numbers, 0), pc.not_equal(seconds, numbers))).as_py())
