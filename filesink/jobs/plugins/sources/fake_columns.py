"""Made-up values as expressions of Spark's SQL: the same at each run, and made by the tasks. Pure.

``id`` is the number of the row. Two columns differ by a salt, elements of a list by their own numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from filesink.jobs.model.column_types import quoted, sql_text

_LETTERS = 26
_DAYS = 3_650  # back from 2026-01-01
_WHOLE = {
    pa.int8(): 127,
    pa.int16(): 32_767,
    pa.int32(): 2_147_483_647,
    pa.int64(): 9_223_372_036_854_775_807,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How large made-up values are.

    Attributes:
        text_length: characters.
        bytes_length: bytes.
        array_size, map_size: elements.
    """

    text_length: int
    bytes_length: int
    array_size: int
    map_size: int

    def columns(self, schema: pa.Schema) -> list[str]:
        """An expression with its name for each column."""
        return [
            f"{self.value(field.type, f'id, {number}')} AS {quoted(field.name)}"
            for number, field in enumerate(schema)
        ]

    def value(self, kind: pa.DataType, seed: str) -> str:  # noqa: PLR0911 - a table of types
        """An expression of ``kind``; ``seed`` is what it depends on, with commas."""
        number = f"xxhash64({seed})"
        if kind in _WHOLE:
            return f"CAST(pmod({number}, {_WHOLE[kind]}) AS {_SQL[kind]})"
        if pa.types.is_string(kind):
            return self._text(seed, self.text_length)
        if pa.types.is_binary(kind):
            return f"CAST({self._text(seed, self.bytes_length)} AS BINARY)"
        if pa.types.is_boolean(kind):
            return f"(pmod({number}, 2) = 0)"
        if pa.types.is_floating(kind):
            return f"CAST(pmod({number}, 1000000007) / 1000.0 AS {_SQL[kind]})"
        if pa.types.is_decimal(kind):
            whole = f"CAST(pmod({number}, {10 ** min(kind.precision, 18)}) AS DECIMAL(38, 0))"
            power = f"CAST('1{'0' * kind.scale}' AS DECIMAL(38, 0))"
            return f"CAST({whole} / {power} AS DECIMAL({kind.precision}, {kind.scale}))"
        if pa.types.is_date(kind):
            return f"date_sub(DATE '2026-01-01', CAST(pmod({number}, {_DAYS}) AS INT))"
        if pa.types.is_timestamp(kind):
            sql = "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
            return f"CAST(timestamp_seconds(1767225600 - pmod({number}, {_DAYS * 86_400})) AS {sql})"
        return self._nested(kind, seed)

    def _nested(self, kind: pa.DataType, seed: str) -> str:
        if pa.types.is_struct(kind):
            inner: Sequence[str] = [
                f"{sql_text(field.name)}, {self.value(field.type, f'{seed}, {number}')}"
                for number, field in enumerate(kind)
            ]
            return f"named_struct({', '.join(inner)})"
        name = f"i{seed.count(',')}"  # of the number of an element; lists may lie in one another
        if pa.types.is_list(kind):
            element = self.value(kind.value_type, f"{seed}, {name}")
            return f"transform({_numbers(self.array_size)}, {name} -> {element})"
        numbers = _numbers(self.map_size)
        pair: Any = kind
        values = self.value(pair.item_type, f"{seed}, {name}")
        keys = self._key(pair.key_type, seed, name)
        keys, values = (f"transform({numbers}, {name} -> {one})" for one in (keys, values))
        return f"map_from_arrays({keys}, {values})"

    def _key(self, kind: pa.DataType, seed: str, name: str) -> str:
        """Keys of a map have to differ."""
        if pa.types.is_string(kind):
            return f"concat({self._text(f'{seed}, {name}', self.text_length)}, '-', {name})"
        if kind in _WHOLE:
            return f"CAST({name} AS {_SQL[kind]})"
        return self.value(kind, f"{seed}, {name}")

    @staticmethod
    def _text(seed: str, length: int) -> str:
        letter = f"chr(97 + pmod(xxhash64({seed}, letter), {_LETTERS}))"
        return f"array_join(transform({_numbers(length)}, letter -> {letter}), '')"


def _numbers(count: int) -> str:
    return f"sequence(1, {count})" if count else "array_remove(array(1), 1)"


_SQL = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
}
