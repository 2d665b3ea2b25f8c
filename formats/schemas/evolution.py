"""Which schema may follow which: columns that come to be, and types that grow.

A type may take the place of another if every value of the old one is a value of the new one, in files
that lie side by side: the rules that Spark, Iceberg and Delta share. Columns are told apart by name,
nested ones too; layouts of one kind of value (dictionaries, views, large strings) count as equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from formats import columns
from formats.arrow import Field
from formats.errors import FormatError

Fits = Callable[[Any, Any], bool]

# Digits of the largest value, for decimals that take the place of whole numbers.
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_UNITS: Final = ("s", "ms", "us", "ns")  # of times, finer and finer


def check_continues(old: pa.Schema, new: pa.Schema) -> None:
    """Raise unless files of ``new`` may lie beside those of ``old`` and be read as ``new``.

    Raises:
        FormatError: kind ``"schema"``; a column is gone, narrower, of another kind, or new and never
            null. The message names it, with its path.
    """
    check_types(old, new, fits=_grows)
    gone = missing(old, new)
    if gone is not None:
        raise FormatError(f"column {gone!r} is gone: keep it, with nulls if need be")


def check_types(old: pa.Schema, new: pa.Schema, *, fits: Fits) -> None:
    """Raise unless every column of ``new`` is in ``old`` with a type that fits, or may be null.

    Args:
        old: of files that are there.
        new: of those to come.
        fits: whether values of an old type may be read as a new one; asked of what is not nested.

    Raises:
        FormatError: kind ``"schema"``; names the first column that is in the way, with its path.
    """
    before = _by_name(old)
    for field in new:
        _check_column(before.get(field.name), field, path=field.name, fits=fits)


def missing(fields: Iterable[Any], others: Iterable[Any]) -> str | None:
    """The path of the first of ``fields``, nested ones too, that is not among ``others``.

    Args:
        fields: columns.
        others: of a schema that the one of ``fields`` can be read as.
    """
    waiting = [("", list(fields), list(others))]
    for path, mine, theirs in waiting:  # which grows meanwhile
        named = _by_name(theirs)
        for field in mine:
            if field.name not in named:
                return path + str(field.name)
            waiting.extend(_below(field, named[field.name], path=path + field.name))
    return None


def _below(field: Field, other: Field, *, path: str) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """The structs inside of two columns of one kind, in pairs, each with what goes before its names."""
    pairs = [(path, field, other)]
    while pairs:
        path, field, other = pairs.pop()
        inner = [child for _, child in columns.children(other, path="")]
        if pt.is_struct(field.type):
            yield f"{path}.", [child for _, child in columns.children(field, path="")], inner
        else:  # what is in lists and maps has its place, whatever its name
            below = columns.children(field, path=path)
            pairs.extend((own, child, theirs) for (own, child), theirs in zip(below, inner, strict=False))


def check_places(old: pa.Schema, new: pa.Schema) -> None:
    """Raise unless the columns of ``old`` are the first of ``new``, in their order.

    Raises:
        FormatError: kind ``"schema"``; names the first column that has another place.
    """
    for place, (before, after) in enumerate(zip(old.names, new.names, strict=False)):
        if before != after:
            raise FormatError(
                f"column {place + 1} was {before!r} and is {after!r}: keep the order, and put new ones last"
            )


def check_readable_as(file: pa.Schema, wanted: pa.Schema) -> None:
    """Raise unless records of ``file`` can be read as ``wanted``; what it does not name is left out.

    Whole numbers, decimals and times may become narrower: each value is looked at when it is read.

    Raises:
        FormatError: kind ``"schema"``; names the first column that cannot, with its path.
    """
    check_types(file, wanted, fits=_may_fit)


def _check_column(old: Field | None, new: Field, *, path: str, fits: Fits) -> None:
    if old is None:
        if not new.nullable:
            raise FormatError(f"column {path!r} is new and cannot be null: let it be null")
        return
    if columns.is_nested(old.type) or columns.is_nested(new.type):
        _check_nested(old, new, path=path, fits=fits)
    elif not fits(_value_type(old.type), _value_type(new.type)):
        raise _changed(old, new, path)


def _check_nested(old: Field, new: Field, *, path: str, fits: Fits) -> None:
    kinds = (pt.is_struct, pt.is_map, columns.is_list)
    if not any(is_kind(old.type) and is_kind(new.type) for is_kind in kinds):
        raise _changed(old, new, path)
    before: list[Any] = [child for _, child in columns.children(old, path=path)]
    after = columns.children(new, path=path)
    if pt.is_struct(new.type):
        named = _by_name(before)
        for inner, child in after:
            _check_column(named.get(child.name), child, path=inner, fits=fits)
    else:  # what is in lists and maps has its place, whatever its name
        for child, (inner, wanted) in zip(before, after, strict=True):
            _check_column(child, wanted, path=inner, fits=fits)


def _by_name(fields: Iterable[Any]) -> dict[str, Field]:
    """Fields by their names; of two with one name the first."""
    return {field.name: field for field in reversed(list(fields))}


def _changed(old: Field, new: Field, path: str) -> FormatError:
    return FormatError(f"column {path!r} was {old.type} and cannot become {new.type}: cast it to what it was")


def _value_type(kind: Any) -> Any:
    """The type without its layout."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if columns.is_text(kind):
        return pa.string()
    return pa.binary() if columns.is_binary(kind) else kind


def _may_fit(old: Any, new: Any) -> bool:
    numbers = (pt.is_integer, pt.is_decimal)
    either = any(is_kind(old) and is_kind(new) for is_kind in numbers) or _are_times(old, new)
    return either or _grows(old, new)


def _grows(old: Any, new: Any) -> bool:
    if old == new or pt.is_null(old):
        return True
    return _time_grows(old, new) if _are_times(old, new) else _number_grows(old, new)


def _are_times(old: Any, new: Any) -> bool:
    """Whether both are of one kind; a date is the local time at which it begins."""
    if pt.is_timestamp(old) and pt.is_timestamp(new):  # an instant stays one in any zone
        return bool((old.tz is None) is (new.tz is None))
    if pt.is_date(old):
        return bool(pt.is_date(new) or (pt.is_timestamp(new) and new.tz is None))
    return any(is_kind(old) and is_kind(new) for is_kind in (pt.is_time, pt.is_duration))


def _time_grows(old: Any, new: Any) -> bool:
    if pt.is_date(old):
        return bool(pt.is_date(new) or new.unit != "ns")
    finer = _UNITS.index(old.unit) <= _UNITS.index(new.unit)
    # Nanoseconds since 1970 end in the year 2262, and many a table has a day in 9999.
    return bool(finer and (pt.is_time(new) or new.unit != "ns" or old.unit == "ns"))


def _number_grows(old: Any, new: Any) -> bool:
    if pt.is_decimal(new):
        whole, fraction = _digits(old)
        return bool(fraction <= new.scale and 0 < whole <= new.precision - new.scale)
    if pt.is_floating(new):
        exact = pt.is_floating(old) or pt.is_integer(old)
        return bool(exact and (old.bit_width < new.bit_width) and new.bit_width >= 32)
    if not (pt.is_integer(old) and pt.is_integer(new)):
        return False
    if pt.is_unsigned_integer(old) is pt.is_unsigned_integer(new):
        return bool(old.bit_width < new.bit_width)
    return bool(pt.is_signed_integer(new) and old.bit_width < new.bit_width)


def _digits(kind: Any) -> tuple[int, int]:
    """Most digits before and behind the point; ``(0, 0)`` for what is no exact number."""
    if pt.is_decimal(kind):
        return max(kind.precision - kind.scale, 1), kind.scale
    return (_DIGITS[kind.bit_width], 0) if pt.is_integer(kind) else (0, 0)
