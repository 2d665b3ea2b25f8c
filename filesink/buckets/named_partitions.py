"""Partitions as users name them, for an overwrite that is to empty those that get no rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from filesink.buckets.contract import BaseBucketAssigner
from filesink.buckets.partition_assigner import PartitionBucketAssigner
from filesink.buckets.partition_paths import fragment, partition_values
from filesink.buckets.value_texts import value_text
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.naming import join
from filesink.storage.bucket_ids import check_bucket_id

#: ``{"day": "2026-01-01"}``, or a bucket id where buckets are no Hive partitions.
Partition = Mapping[str, Any] | str


def buckets_named(
    partitions: Iterable[Partition] | None,
    assigner: BaseBucketAssigner,
    columns: pa.Schema,
    *,
    zone: str = "UTC",
) -> frozenset[str]:
    """Bucket ids of ``partitions``.

    Args:
        partitions: of ``FileSink.write``; ``None`` for none.
        assigner: how the sink makes buckets.
        columns: the input's. Directories have the case of their names, and the text of their types.
        zone: the name of the session's time zone, which is that of timestamps in paths.

    Raises:
        ConfigError: ``BAD_VALUE``; one of them can be none of this sink, and would replace nothing.
    """
    if partitions is None:
        return frozenset()
    if isinstance(partitions, str | Mapping) or not isinstance(partitions, Iterable):
        raise _refused("a list of partitions", partitions)
    return frozenset(_bucket(one, assigner, columns, zone) for one in partitions)


def _bucket(named: object, assigner: BaseBucketAssigner, columns: pa.Schema, zone: str) -> str:
    try:
        if isinstance(named, str) and isinstance(assigner, PartitionBucketAssigner):
            return _path(_values(named), assigner.columns, columns, zone)
        if isinstance(named, str):
            return check_bucket_id(named)
        if isinstance(named, Mapping) and isinstance(assigner, PartitionBucketAssigner):
            return _path(named, assigner.columns, columns, zone)
    except (BucketError, SchemaError) as error:
        raise ConfigError(f"partitions: {error.message}", code="BAD_VALUE") from error
    raise _refused("values of all partition columns, as {'day': '2026-01-01'}, or a bucket id", named)


def _values(bucket_id: str) -> dict[str, str | None]:
    if any("=" not in component for component in bucket_id.split("/")):
        raise ConfigError(
            "partitions has a text that is no id of a partition: an id names the columns, too, as in "
            "'day=2026-01-31'. A value goes with its column, as in {'day': '2026-01-31'}",
            code="BAD_VALUE",
        )
    return dict(partition_values(bucket_id))


def _path(named: Mapping[Any, Any], keys: Sequence[str], columns: pa.Schema, zone: str) -> str:
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
        path = join(path, fragment(field.name, value_text(given[key.lower()], field, zone)))
    return check_bucket_id(path)


def _refused(wanted: str, given: object) -> ConfigError:
    return ConfigError(f"partitions takes {wanted}, got a {type(given).__name__}", code="BAD_VALUE")
