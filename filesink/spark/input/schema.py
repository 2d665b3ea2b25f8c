"""The Arrow schema that batches of a DataFrame will have; differs a little between versions of Spark."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.pandas import types
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StructType,
    UserDefinedType,
)

from filesink.api import SHORT_INTERVAL
from filesink.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Convert = Callable[[StructType], pa.Schema]


def arrow_schema(schema: StructType, *, time_zone: str = "UTC") -> pa.Schema:
    """Schema of the record batches in which Spark hands rows of ``schema`` to a task.

    Columns carry in their metadata what their types lose on the way; see ``filesink.api``.

    Raises:
        SchemaError: ``TYPE``; Spark cannot send a column to Python.
    """
    convert: Any = types.to_arrow_schema
    # 4.3 takes the session's zone; before, every timestamp was given UTC.
    zone = {"timezone": time_zone} if "timezone" in inspect.signature(convert).parameters else {}
    try:
        converted: pa.Schema = convert(schema, **zone)
    except (PySparkException, ValueError) as error:
        raise _refused(schema, lambda part: convert(part, **zone)) from error
    for index, field in enumerate(schema.fields):
        short = _short_interval(field.dataType, path=field.name)
        if short is not None:
            known = converted.field(index)
            marked: dict[Any, Any] = {**(known.metadata or {}), SHORT_INTERVAL: short.encode()}
            converted = converted.set(index, known.with_metadata(marked))
    return converted


def time_zone_of(session: SparkSession) -> str:
    """The name of the time zone in which a session shows timestamps."""
    return str(session.conf.get("spark.sql.session.timeZone"))


def check_twins(df: DataFrame) -> None:
    """Raise if Spark could not tell two columns, or two members of a struct at any depth, apart.

    It does so regardless of case by default.

    Raises:
        SchemaError: ``DUPLICATE_COLUMN``; names both.
    """
    if str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true":
        return
    for path, struct in _structs(df.schema, path=""):
        seen: dict[str, str] = {}
        for name in struct.fieldNames():
            twin = seen.setdefault(name.lower(), name)
            if twin != name:
                raise SchemaError(
                    f"columns {path + twin!r} and {path + name!r} differ only in case, and are one to Spark "
                    "and many readers: rename or drop one",
                    code="DUPLICATE_COLUMN",
                )


def _structs(kind: DataType, *, path: str) -> Iterator[tuple[str, StructType]]:
    """Every struct in ``kind``, itself included, with what goes before the names of its members."""
    match kind:
        case StructType():
            yield path and f"{path}.", kind
            for field in kind.fields:
                below = f"{path}.{field.name}" if path else field.name
                yield from _structs(field.dataType, path=below)
        case ArrayType():
            yield from _structs(kind.elementType, path=f"{path}[]")
        case MapType():
            yield from _structs(kind.keyType, path=f"{path}.key")
            yield from _structs(kind.valueType, path=f"{path}.value")
        case UserDefinedType():
            yield from _structs(kind.sqlType(), path=path)


def _refused(schema: StructType, convert: Convert) -> SchemaError:
    """The error for the first column that cannot be converted."""
    for field in schema.fields:
        try:
            convert(StructType([field]))
        except PySparkException:
            return SchemaError(
                f"Spark cannot hand column {field.name!r} of type {field.dataType.simpleString()} to Python: "
                "cast or drop it",
                code="TYPE",
            )
        except ValueError:  # Arrow has no VOID that is never null
            return SchemaError(
                f"column {field.name!r} of type {field.dataType.simpleString()} holds VOID that is never "
                "null, as array() and map() do: cast it, as in CAST(… AS ARRAY<STRING>), or drop it",
                code="TYPE",
            )
    return SchemaError("Spark cannot hand this DataFrame to Python: cast or drop columns", code="TYPE")


def _short_interval(kind: DataType, *, path: str) -> str | None:
    """Path and type of the first interval that does not go from days to seconds; ``None`` if there is none.

    Keys of maps do not count: as text they are microseconds, whatever their type.
    """
    inner: list[tuple[str, DataType]] = []
    match kind:
        case DayTimeIntervalType():
            whole = kind == DayTimeIntervalType()
            return None if whole else f"{path!r} of type {kind.simpleString().upper()}"
        case ArrayType():
            inner = [(f"{path}[]", kind.elementType)]
        case MapType():
            inner = [(f"{path}.value", kind.valueType)]
        case StructType():
            inner = [(f"{path}.{field.name}", field.dataType) for field in kind.fields]
        case UserDefinedType():
            inner = [(path, kind.sqlType())]
    found = (_short_interval(child, path=below) for below, child in inner)
    return next((short for short in found if short is not None), None)
