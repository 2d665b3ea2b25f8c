"""A value in the type that a table has for it: members of structs by name at every depth.

Spark's own cast goes by the place of a member, and would put one into another of the same type. So a
struct is taken apart and made anew, in arrays and maps as well; only what has no members is cast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from filesink.errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from filesink.metastore.api import TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value is, for errors: its path from the column on, and the table that it is for."""

    path: str
    table: TableName
    session: SparkSession

    def inside(self, name: str) -> Place:
        """A member, or the elements of an array or map."""
        return replace(self, path=f"{self.path}{name}")


def fitted(value: Column, source: DataType, target: DataType, place: Place) -> Column:
    """``value``, which is of type ``source``, as ``target``; the very same object if it is that already.

    Members that ``source`` lacks are null. Text that is too long for ``char(n)`` or ``varchar(n)`` fails
    the job that reads it, but for blanks at its end, as with Spark's ``INSERT``.

    Raises:
        SchemaError: ``COLUMN_TYPE``, ``EXTRA_COLUMN``, ``DUPLICATE_COLUMN``.
    """
    if source.simpleString() == target.simpleString() and not isinstance(target, CharType | VarcharType):
        return value
    match source, target:
        case StructType(), StructType():
            return _struct(value, source, target, place)
        case ArrayType(), ArrayType():
            inside = place.inside("[]")
            return F.transform(value, lambda one: fitted(one, source.elementType, target.elementType, inside))
        case MapType(), MapType():
            return _map(value, source, target, place)
        case _:
            return _limited(_cast(value, source, target, place), target, place)


def by_name(names: list[str], what: str) -> dict[str, str]:
    """``names`` by their form in lower case; ``what`` has them.

    Raises:
        SchemaError: ``DUPLICATE_COLUMN``.
    """
    found = {name.lower(): name for name in names}
    if len(found) != len(names):
        raise SchemaError(
            f"two {what} differ only in case, which a table cannot hold; rename one", code="DUPLICATE_COLUMN"
        )
    return found


def without_limits(kind: DataType) -> DataType:
    """Text of limited length is text; Spark itself has such types for columns of tables only."""
    return _rebuilt(kind, leaf=lambda one: StringType() if isinstance(one, CharType | VarcharType) else one)


def in_lower_case(kind: DataType) -> DataType:
    """The same with members of structs named in lower case, as metastores keep them."""
    return _rebuilt(kind, name=str.lower)


def _rebuilt(
    kind: DataType,
    *,
    leaf: Callable[[DataType], DataType] = lambda one: one,
    name: Callable[[str], str] = lambda one: one,
) -> DataType:
    """``kind`` with other types where nothing is inside, and other names of members; all may be null."""
    inside = partial(_rebuilt, leaf=leaf, name=name)
    match kind:
        case ArrayType():
            return ArrayType(inside(kind.elementType))
        case MapType():
            return MapType(inside(kind.keyType), inside(kind.valueType))
        case StructType():
            return StructType([StructField(name(field.name), inside(field.dataType)) for field in kind])
        case _:
            return leaf(kind)


def _struct(value: Column, source: StructType, target: StructType, place: Place) -> Column:
    given = by_name(source.fieldNames(), f"members of {place.path!r}")
    wanted = by_name(target.fieldNames(), f"members of {place.path!r} in {place.table}")
    extra = [name for lower, name in given.items() if lower not in wanted]
    if extra:
        inner = place.inside(f".{extra[0]}").path
        raise SchemaError(
            f"table {place.table} has no {inner!r}; drop it, with "
            f"withColumn(…, col(…).dropFields({extra[0]!r})), or add it to the table",
            code="EXTRA_COLUMN",
        )
    members = []
    for field in target:
        name = given.get(field.name.lower())
        if name is None:
            member = F.lit(None).cast(without_limits(field.dataType))
        else:
            inner_place = place.inside(f".{name}")
            member = fitted(value.getField(name), source[name].dataType, field.dataType, inner_place)
        members.append(member.alias(field.name))
    return F.when(value.isNotNull(), F.struct(*members))  # else a struct of nulls in place of null


def _map(value: Column, source: MapType, target: MapType, place: Place) -> Column:
    keys = partial(fitted, source=source.keyType, target=target.keyType, place=place.inside("[key]"))
    values = partial(fitted, source=source.valueType, target=target.valueType, place=place.inside("[]"))
    return F.transform_values(
        F.transform_keys(value, lambda key, _: keys(key)), lambda _, inner: values(inner)
    )


def _cast(value: Column, source: DataType, target: DataType, place: Place) -> Column:
    plain = without_limits(target)
    if source.simpleString() == plain.simpleString():
        return value
    if not _can_widen(source, plain, place.session):
        raise SchemaError(
            f"column {place.path!r} is {source.simpleString()} and table {place.table} has "
            f"{target.simpleString()}; cast it yourself if nothing gets lost",
            code="COLUMN_TYPE",
        )
    return value.cast(plain)


def _can_widen(source: DataType, target: DataType, session: Any) -> bool:
    """Spark's own rule for ``INSERT``, as far as it widens.

    It takes anything for a string, which is no widening between columns but of nulls. An upcast alone is
    not enough: it makes seconds of a timestamp, and a timestamp of any whole number.
    """
    if isinstance(target, StringType):
        return isinstance(source, NullType)
    parse = session._jsparkSession.parseDataType  # noqa: SLF001 - Python has no other way to the rule
    cast = session._jvm.org.apache.spark.sql.catalyst.expressions.Cast  # noqa: SLF001
    types = parse(source.json()), parse(target.json())
    return bool(cast.canANSIStoreAssign(*types) and cast.canUpCast(*types))


def _limited(text: Column, target: DataType, place: Place) -> Column:
    """``text`` as ``char(n)`` or ``varchar(n)`` has it; anything else as it is."""
    if not isinstance(target, CharType | VarcharType):
        return text
    length = target.length
    too_long = F.raise_error(
        F.lit(
            f"column '{place.path}' has text of more than {length} characters, and table {place.table} has "
            f"{target.simpleString()}; nothing was written. Shorten it, or use a table that has it as string"
        )
    )
    fits = (
        F.when(text.isNull() | (F.length(text) <= length), text)
        .when(F.length(F.rtrim(text)) <= length, F.substring(text, 1, length))
        .otherwise(too_long)
    )
    return F.rpad(fits, length, " ") if isinstance(target, CharType) else fits
