"""Buckets by time: that of the driver's clock, or that in a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from filesink.arguments import column_name, instance_of
from filesink.buckets.contract import (
    BaseBucketAssigner,
    BucketContext,
    constant_ids,
    file_columns,
    find_column,
)
from filesink.buckets.date_patterns import DatePattern, Unit
from filesink.buckets.partition_paths import DEFAULT_PARTITION, local_seconds
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.local_time import LocalTime, time_zone
from filesink.storage.bucket_ids import check_bucket_id

if TYPE_CHECKING:
    from datetime import tzinfo

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTimeBucketAssigner(BaseBucketAssigner):
    """See ``BucketAssigner.date_time_bucket_assigner``."""

    format_str: str = "yyyy-MM-dd--HH"
    timezone_id: str | None = None
    column: str | None = None
    null_bucket: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None:
            column_name(self.column, name="column")
        pattern = DatePattern(pattern=self.format_str)
        pattern.check_meant()
        sample = pattern.format(LocalTime.of(0))
        if self.timezone_id is not None:
            time_zone(self.timezone_id)
        _check(sample or "/", f"date pattern {repr(self.format_str)[:80]}")
        _check(self._null_bucket, f"null_bucket {repr(self.null_bucket)[:80]}")

    @property
    def _null_bucket(self) -> str:
        """Where records without a time go: as deep as the others, and where readers look."""
        if self.null_bucket is not None:
            return instance_of(self.null_bucket, str, name="null_bucket")
        levels = DatePattern(pattern=self.format_str).with_fields("\0").split("/")
        return "/".join(map(_without_time, levels))

    def origin(self, level: int | None) -> str:
        """See ``BucketAssigner.origin``."""
        del level
        return f"the time in column {self.column!r}"

    def input_columns(self) -> tuple[str, ...]:
        """See ``BucketAssigner.input_columns``."""
        return () if self.column is None else (self.column,)

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BucketAssigner.check_schema``."""
        file_columns(self, schema)
        if self.column is None:
            return
        field = schema.field(find_column(schema, self.column))
        if not (pt.is_timestamp(field.type) or pt.is_date(field.type)):
            raise SchemaError(
                f"bucket column {field.name!r} has type {field.type}; a timestamp or a date is needed",
                code="BUCKET_TYPE",
            )

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """The formatted time of each record, dictionary-encoded."""
        zone = time_zone(context.time_zone if self.timezone_id is None else self.timezone_id)
        pattern = DatePattern(pattern=self.format_str)
        if self.column is None:
            now = pa.array([context.processing_time_ms], pa.timestamp("ms", tz="UTC"))
            return constant_ids(_format(now, pattern, zone)[0].as_py(), len(batch))
        times = batch.column(find_column(batch.schema, self.column))
        if not times.null_count:
            return _format(times, pattern, zone)
        codes = np.zeros(len(times), np.int32)
        ids = _format(times.drop_null(), pattern, zone)
        codes[times.is_valid().to_numpy(zero_copy_only=False)] = ids.indices.to_numpy() + 1
        names = [self._null_bucket, *ids.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))


def _check(bucket_id: str, what: str) -> None:
    try:
        check_bucket_id(bucket_id)
    except BucketError as error:
        raise ConfigError(f"{what} makes no usable directory: {error.message}", code="BAD_VALUE") from error


def _without_time(level: str) -> str:
    """A level of a pattern with NUL for each field, as Hive has it for null, else ``null``."""
    before, field, _ = level.partition("\0")
    if not field:
        return level
    return f"{before}{DEFAULT_PARTITION}" if before.endswith("=") else "null"


def _format(times: pa.Array[Any], pattern: DatePattern, zone: tzinfo) -> pa.DictionaryArray[Any, Any]:
    """Each time in the form of ``pattern``; only distinct ones are formatted, in the finest unit."""
    seconds, nanos = local_seconds(times, zone)
    starts = pa.array(_floor(seconds, pattern.finest_unit)).dictionary_encode()
    if pattern.finest_unit is Unit.FRACTION:
        return _format_fractions(starts, nanos, pattern)
    texts = [pattern.format(LocalTime.of(start)) for start in starts.dictionary.to_numpy().tolist()]
    return pa.DictionaryArray.from_arrays(starts.indices, pa.array(texts, pa.string()))


def _floor(seconds: NDArray[np.int64], unit: Unit) -> NDArray[np.int64]:
    """The first second of the unit that each time lies in."""
    if unit is Unit.MONTH:
        days = (seconds // Unit.DAY.value).astype("datetime64[D]")
        months: NDArray[np.int64] = days.astype("datetime64[M]").astype("datetime64[s]").astype(np.int64)
        return months
    floored: NDArray[np.int64] = seconds - seconds % max(unit.value, 1)
    return floored


def _format_fractions(
    starts: pa.DictionaryArray[Any, Any], nanos: NDArray[np.int64], pattern: DatePattern
) -> pa.DictionaryArray[Any, Any]:
    step = 10 ** (9 - pattern.fraction_digits)
    fractions = pa.array(nanos // step).dictionary_encode()
    count = len(fractions.dictionary)
    pairs = pa.array(starts.indices.to_numpy().astype(np.int64) * count + fractions.indices.to_numpy())
    encoded = pairs.dictionary_encode()
    seconds, parts = starts.dictionary.to_pylist(), fractions.dictionary.to_pylist()
    texts = [
        pattern.format(LocalTime.of(seconds[pair // count], parts[pair % count] * step))
        for pair in encoded.dictionary.to_pylist()
    ]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(texts, pa.string()))
