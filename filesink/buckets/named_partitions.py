"""Partitions as users name them, for an overwrite that is to empty those that get no rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa

from filesink.buckets.contract import BaseBucketAssigner
from filesink.buckets.partition_assigner import PartitionBucketAssigner
from filesink.buckets.partition_paths import check_type, fragment, texts
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.naming import join
from filesink.storage.bucket_ids import check_bucket_id

#: ``{"day": "2026-01-01"}``, or a bucket id where buckets are no Hive partitions.
Partition = Mapping[str, Any] | str


def buckets_named(
    partitions: Iterable[Partition] | None, assigner: BaseBucketAssigner, columns: Sequence[str]
) -> frozenset[str]:
    """Bucket ids of ``partitions``.

    Args:
        partitions: of ``FileSink.write``; ``None`` for none.
        assigner: how the sink makes buckets.
        columns: names in the input, whose case the directories have.

    Raises:
        ConfigError: ``BAD_VALUE``; one of them is none of this sink.
    """
    if partitions is None:
        return frozenset()
    if isinstance(partitions, str | Mapping) or not isinstance(partitions, Iterable):
        raise _refused("a list of partitions", partitions)
    return frozenset(_bucket(one, assigner, columns) for one in partitions)


def _bucket(named: object, assigner: BaseBucketAssigner, columns: Sequence[str]) -> str:
    try:
        if isinstance(named, str):
            return check_bucket_id(named)
        if isinstance(named, Mapping) and isinstance(assigner, PartitionBucketAssigner):
            return _path(named, assigner.columns, columns)
    except (BucketError, SchemaError) as error:
        raise ConfigError(f"partitions: {error.message}", code="BAD_VALUE") from error
    raise _refused("values of all partition columns, as {'day': '2026-01-01'}, or a bucket id", named)


def _path(named: Mapping[Any, Any], keys: Sequence[str], columns: Sequence[str]) -> str:
    given = {str(name).lower(): value for name, value in named.items()}
    if set(given) != {key.lower() for key in keys}:
        raise ConfigError(
            f"each of partitions needs values for {', '.join(map(repr, keys))} and for nothing else, got "
            f"{', '.join(map(repr, named)) or 'none'}",
            code="BAD_VALUE",
        )
    spelled = {name.lower(): name for name in columns}
    path = ""
    for key in keys:
        path = join(path, fragment(spelled.get(key.lower(), key), _text(given[key.lower()])))
    return check_bucket_id(path)


def _text(value: Any) -> str | None:
    """``value`` as Spark has it in a path."""
    if value is None or isinstance(value, str):
        return value
    try:
        array = pa.array([value])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _refused(
            "text, a number, a date or a time as the value of a partition column", value
        ) from error
    check_type(pa.field("value", array.type))
    return texts(array, UTC)[0]


def _refused(wanted: str, given: object) -> ConfigError:
    return ConfigError(f"partitions takes {wanted}, got a {type(given).__name__}", code="BAD_VALUE")
