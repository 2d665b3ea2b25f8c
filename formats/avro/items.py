"""What the arrays and maps of an Avro block take in memory, counted before anybody makes them.

A length in Avro is a claim, and items may take no bytes at all: nine bytes say 10^18 nulls. Where the bytes
of a block bound its items well enough nothing is counted; else every value is stepped over, in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from formats.errors import FormatError
from formats.read_limits import Guard

_OF_AN_ITEM: Final = 40  # bytes: Python's number and a place in a list, then Arrow's
_OF_A_FIELD: Final = 104  # bytes: of a dict, the place of a key, the value, and its hash table
_FIXED: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}

Skip = Callable[["_Walk"], None]


class _Walk:
    """A place in the bytes of a block, and what the items before it take."""

    def __init__(self, data: bytes, guard: Guard) -> None:
        self.data = data
        self.at = 0
        self.cost = 0
        self._guard = guard

    def number(self) -> int:
        number = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise damaged()
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)

    def skip(self, size: int) -> None:
        if not 0 <= size <= len(self.data) - self.at:
            raise damaged()
        self.at += size

    def pay(self, cost: int) -> None:
        self.cost += cost
        self._guard.check_record(self.cost, "a block with all the items of its arrays and maps")


def damaged() -> FormatError:
    """The error for bytes that do not fit their schema."""
    return FormatError("a block of the Avro file does not fit its schema", kind="value")


def check_items(avro: Any, count: int, data: bytes, guard: Guard) -> None:
    """Raise ``LimitError`` if the items in a block take more than a record may.

    Args:
        avro: the schema of the records, without names of types.
        count: of records.
        data: of the block, expanded.
        guard: of the file.

    Raises:
        FormatError: kind ``"value"``; the bytes do not fit the schema.
    """
    costs = _costs(avro)
    if not costs or (min(costs)[0] and len(data) * max(cost for _, cost in costs) <= guard.record):
        return
    walk, skip = _Walk(data, guard), _skip(avro)
    for _ in range(count):
        skip(walk)


def _costs(avro: Any) -> list[tuple[int, int]]:  # noqa: PLR0911 - one of each kind of type
    """For each array and map: the fewest bytes of an item in the file, and its size in memory."""
    if isinstance(avro, list):
        return [cost for branch in avro for cost in _costs(branch)]
    if not isinstance(avro, dict):
        return []
    match avro["type"]:
        case "array":
            items = avro["items"]
            return [(_least(items), _cost(items)), *_costs(items)]
        case "map":
            return [(1, _OF_A_FIELD + _cost(avro["values"])), *_costs(avro["values"])]
        case "record":
            return [cost for field in avro["fields"] for cost in _costs(field["type"])]
        case "enum" | "fixed":
            return []
        case inner:
            return _costs(inner)


def _least(avro: Any) -> int:
    """The fewest bytes of a value: 0 or more, and exact if it is 0."""
    if isinstance(avro, dict) and avro["type"] == "record":
        return sum(_least(field["type"]) for field in avro["fields"])
    if isinstance(avro, dict) and avro["type"] == "fixed":
        return int(avro["size"])
    if isinstance(avro, dict) and avro["type"] not in {"array", "map", "enum"}:
        return _least(avro["type"])
    return 0 if avro == "null" else 1


def _cost(avro: Any) -> int:
    if isinstance(avro, list):
        return max(map(_cost, avro), default=_OF_AN_ITEM)
    if not isinstance(avro, dict):
        return _OF_AN_ITEM
    match avro["type"]:
        case "record":
            return _OF_AN_ITEM + sum(_OF_A_FIELD + _cost(field["type"]) for field in avro["fields"])
        case "array" | "map" | "enum" | "fixed":
            return 2 * _OF_AN_ITEM
        case inner:
            return _cost(inner)


def _skip(avro: Any) -> Skip:  # noqa: PLR0911 - one of each kind of type
    """Steps over one value of the schema."""
    if isinstance(avro, list):
        return _skip_union([_skip(branch) for branch in avro])
    if isinstance(avro, dict):
        match avro["type"]:
            case "record":
                return _skip_record([_skip(field["type"]) for field in avro["fields"]])
            case "array":
                return _skip_items(_skip(avro["items"]), _cost(avro["items"]))
            case "map":
                pair = _skip_record([_skip("string"), _skip(avro["values"])])
                return _skip_items(pair, _OF_A_FIELD + _cost(avro["values"]))
            case "enum":
                return _skip("int")
            case "fixed":
                size = int(avro["size"])
                return lambda walk: walk.skip(size)
            case inner:
                return _skip(inner)
    if avro in _FIXED:
        return lambda walk: walk.skip(_FIXED[avro])
    if avro in {"bytes", "string"}:
        return lambda walk: walk.skip(walk.number())
    return lambda walk: walk.skip(walk.number() * 0)


def _skip_union(branches: list[Skip]) -> Skip:
    def skip(walk: _Walk) -> None:
        place = walk.number()
        if not 0 <= place < len(branches):
            raise damaged()
        branches[place](walk)

    return skip


def _skip_record(fields: list[Skip]) -> Skip:
    def skip(walk: _Walk) -> None:
        for field in fields:
            field(walk)

    return skip


def _skip_items(item: Skip, cost: int) -> Skip:
    def skip(walk: _Walk) -> None:
        while count := walk.number():
            if count < 0:  # then it says its size, too
                count, _ = -count, walk.number()
            walk.pay(count * cost)
            for _ in range(count):
                item(walk)

    return skip
