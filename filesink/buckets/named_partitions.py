"""Partitions as users name them, for an overwrite that is to empty those that get no rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from filesink.buckets.contract import BaseBucketAssigner
from filesink.buckets.partition_assigner import PartitionBucketAssigner
from filesink.buckets.partition_paths import check_type, fragment, partition_values, texts
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.naming import join
from filesink.storage.bucket_ids import check_bucket_id

#: ``{"day": "2026-01-01"}``, or a bucket id where buckets are no Hive partitions.
Partition = Mapping[str, Any] | str


def buckets_named(
    partitions: Iterable[Partition] | None, assigner: BaseBucketAssigner, columns: pa.Schema
) -> frozenset[str]:
    """Bucket ids of ``partitions``.

    Args:
        partitions: of ``FileSink.write``; ``None`` for none.
        assigner: how the sink makes buckets.
        columns: the input's. Directories have the case of their names, and the text of their types.

    Raises:
        ConfigError: ``BAD_VALUE``; one of them can be none of this sink, and would replace nothing.
    """
    if partitions is None:
        return frozenset()
    if isinstance(partitions, str | Mapping) or not isinstance(partitions, Iterable):
        raise _refused("a list of partitions", partitions)
    return frozenset(_bucket(one, assigner, columns) for one in partitions)


def _bucket(named: object, assigner: BaseBucketAssigner, columns: pa.Schema) -> str:
    try:
        if isinstance(named, str) and isinstance(assigner, PartitionBucketAssigner):
            return _path(_values(named), assigner.columns, columns)
        if isinstance(named, str):
            return check_bucket_id(named)
        if isinstance(named, Mapping) and isinstance(assigner, PartitionBucketAssigner):
            return _path(named, assigner.columns, columns)
    except (BucketError, SchemaError) as error:
        raise ConfigError(f"partitions: {error.message}", code="BAD_VALUE") from error
    raise _refused("values of all partition columns, as {'day': '2026-01-01'}, or a bucket id", named)


def _values(bucket_id: str) -> dict[str, str | None]:
    if any("=" not in component for component in bucket_id.split("/")):
        raise _refused("ids of partitions such as 'day=2026-01-01'", bucket_id)
    return dict(partition_values(bucket_id))


def _path(named: Mapping[Any, Any], keys: Sequence[str], columns: pa.Schema) -> str:
    given = {str(name).lower(): value for name, value in named.items()}
    if set(given) != {key.lower() for key in keys}:
        raise ConfigError(
            f"each of partitions needs values for {', '.join(map(repr, keys))} and for nothing else, got "
            f"{', '.join(map(repr, named)) or 'none'}",
            code="BAD_VALUE",
        )
    fields = {field.name.lower(): field for field in columns}
    path = ""
    for key in keys:
        field = fields.get(key.lower(), pa.field(key, pa.string()))
        path = join(path, fragment(field.name, _text(given[key.lower()], field)))
    return check_bucket_id(path)


def _text(value: Any, field: pa.Field[Any]) -> str | None:
    """``value`` as Spark has a value of that column in a path."""
    if value is None or (isinstance(value, str) and not _has_one_text(field.type)):
        return value
    if isinstance(value, datetime) and pt.is_date(field.type):
        value = _day(value, field)
    try:
        array = pa.array([value])
        if _has_one_text(field.type):
            array = array.cast(field.type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _unfit(field, value) from error
    if _has_one_text(field.type) and not _is_alike(value, field.type):
        raise _unfit(field, value)
    check_type(pa.field(field.name, array.type))
    return texts(array, "UTC")[0]


def _day(moment: datetime, field: pa.Field[Any]) -> date:
    """The day that begins at ``moment``, as schedulers name days."""
    if (moment.hour, moment.minute, moment.second, moment.microsecond) != (0, 0, 0, 0):
        raise _unfit(field, moment)
    return moment.date()


def _has_one_text(kind: pa.DataType) -> bool:
    """Whether equal values of the type have the same text, so that others can be cast to it."""
    return bool(pt.is_date(kind) or pt.is_integer(kind) or pt.is_boolean(kind))


def _is_alike(value: object, kind: pa.DataType) -> bool:
    """Whether ``value`` is text, or of the kind of the column: 1 is no day, and True is no number."""
    if isinstance(value, str):
        return True
    if pt.is_date(kind):
        return isinstance(value, date)
    return isinstance(value, bool) == bool(pt.is_boolean(kind))


def _unfit(field: pa.Field[Any], value: object) -> ConfigError:
    return ConfigError(
        f"partitions names a {type(value).__name__} that is no value of column {field.name!r} of type "
        f"{field.type}, so it would replace nothing; give a value of that type, or its text as in "
        "'2026-01-01'",
        code="BAD_VALUE",
    )


def _refused(wanted: str, given: object) -> ConfigError:
    return ConfigError(f"partitions takes {wanted}, got a {type(given).__name__}", code="BAD_VALUE")
