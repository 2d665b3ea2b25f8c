"""Columns of the input as those of a record of Kafka, with the names that Spark's own sink has. Pure.

Columns of other names are refused:

    value       STRING or BINARY          needed; null is a tombstone
    key         STRING or BINARY
    topic       STRING                    unless the sink has one topic
    partition   INT                       null leaves it to the partitioner
    headers     ARRAY<STRUCT<key STRING, value BINARY>>
    timestamp   TIMESTAMP                 null is the moment of sending; Spark's own sink has no such column
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from filesink.errors import DataError, SchemaError

_LEAST = {"partition": 0, "timestamp": 1}  # to the client, 0 is no time
_HEADERS = "ARRAY<STRUCT<key STRING, value BINARY>>"


@dataclass(frozen=True, slots=True)
class Role:
    """What a column means: its type in the words of Spark, whether one fits, and what it becomes."""

    kind: str
    fits: Callable[[Any], bool]
    becomes: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column of a schema is what: pairs of a role's name and the index of its column."""

    places: tuple[tuple[str, int], ...]

    @staticmethod
    def of(schema: pa.Schema, topic: str) -> Columns:
        """Those of ``schema``, for a sink whose topic is ``topic``; ``""`` for one without.

        Raises:
            SchemaError: ``MISSING_COLUMN``, ``UNKNOWN_COLUMN``, ``TYPE``.
        """
        places = _places(schema)
        needed = ["value"] if topic else ["value", "topic"]
        missing = [name for name in needed if name not in places]
        if missing:
            raise SchemaError(
                f"there is no column {missing[0]!r}: Kafka needs {' and '.join(map(repr, needed))}"
                + ("" if topic else "; or give the sink a topic"),
                code="MISSING_COLUMN",
            )
        for name, place in places.items():
            _check_type(name, schema.field(place).type)
        if topic:
            places.pop("topic", None)  # as with Spark's own sink, the option is stronger
        return Columns(tuple((name, places[name]) for name in ROLES if name in places))

    def of_kafka(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The records of ``batch`` as they are staged.

        Raises:
            DataError: ``KAFKA_VALUE``; a partition or a timestamp is negative or too large, a header has no
                key.
        """
        return pa.RecordBatch.from_arrays(
            [_converted(name, batch.column(place)) for name, place in self.places],
            names=[name for name, _ in self.places],
        )


def refusal(what: str) -> DataError:
    """The error of a row that Kafka would not take."""
    return DataError(f"{what}. Nothing was sent. Correct the data", code="KAFKA_VALUE")


def _places(schema: pa.Schema) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, name in enumerate(schema.names):
        role = name.lower()
        if role not in ROLES or role in places:
            why = "comes twice" if role in places else "means nothing to Kafka"
            raise SchemaError(
                f"column {name!r} {why}: there are {', '.join(ROLES)}. Leave it out; what belongs into the "
                "value can be put there with to_json(struct(…))",
                code="UNKNOWN_COLUMN",
            )
        places[role] = place
    return places


def _check_type(name: str, kind: Any) -> None:
    role = ROLES[name]
    if not role.fits(kind):
        raise SchemaError(f"column {name!r} is {kind}, and has to be {role.kind}: cast it", code="TYPE")


def _converted(name: str, column: Any) -> Any:
    try:
        found = ROLES[name].becomes(column)
    except (pa.ArrowException, ValueError):  # whose text may hold the value
        raise refusal(f"a row has a {name} that no record can have") from None
    if name in _LEAST and (least := pc.min(found).as_py()) is not None and least < _LEAST[name]:
        raise refusal(f"a row has a {name} that is less than any")
    if name == "headers":
        _check_headers(found)
    return found


def _check_headers(headers: Any) -> None:
    pairs = headers.flatten()
    if pairs.null_count or pairs.field(0).null_count:
        raise refusal("a row has a header that is null, or has no key")


def _is_text(kind: Any) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_bytes(kind: Any) -> bool:
    return bool(_is_text(kind) or pt.is_binary(kind) or pt.is_large_binary(kind))


def _is_headers(kind: Any) -> bool:
    if not (pt.is_list(kind) or pt.is_large_list(kind)) or not pt.is_struct(kind.value_type):
        return False
    pair = kind.value_type
    return (
        pair.num_fields == 2
        and [pair.field(place).name.lower() for place in range(2)] == ["key", "value"]
        and _is_text(pair.field(0).type)
        and _is_bytes(pair.field(1).type)
    )


def _as_bytes(column: Any) -> Any:
    """The same buffers; UTF-8 where it was text."""
    kind = pa.large_binary() if pt.is_large_string(column.type) else pa.binary()
    return column.cast(kind) if _is_text(column.type) else column


def _as_ms(column: Any) -> Any:
    whole = pc.floor_temporal(column, unit="millisecond")
    return whole.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())


ROLES: dict[str, Role] = {
    "value": Role("STRING or BINARY", _is_bytes, _as_bytes),
    "key": Role("STRING or BINARY", _is_bytes, _as_bytes),
    "topic": Role("STRING", _is_text, lambda column: column.cast(pa.string())),
    "partition": Role("INT", pt.is_signed_integer, lambda column: column.cast(pa.int32())),
    "headers": Role(_HEADERS, _is_headers, lambda column: column),
    "timestamp": Role("TIMESTAMP", pt.is_timestamp, _as_ms),
}
