"""Which directory a record goes to, and how a batch is split accordingly.

Rules: an assigner is pure and pickled to the tasks; it names a bucket per record and knows no files.
What it returns becomes a path; ``filesink.storage.bucket_ids`` says which ids can be one.
Built-in assigners look at distinct values only, never at single records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from filesink.arguments import instance_of
from filesink.errors import BucketError, ConfigError, EncoderError, FilesinkError, SchemaError
from formats.errors import told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from filesink.storage.bucket_ids import Encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketContext:
    """What an assigner knows besides the records.

    ``processing_time_ms``: milliseconds since 1970 UTC by the driver's clock, one value per batch.
    ``time_zone``: the Spark session's, an IANA name or an offset such as ``+01:00``.
    """

    processing_time_ms: int
    time_zone: str

    def __post_init__(self) -> None:
        if isinstance(self.processing_time_ms, bool) or not isinstance(self.processing_time_ms, int):
            raise ConfigError("processing_time_ms must be an int of milliseconds", code="BAD_VALUE")
        if not instance_of(self.time_zone, str, name="time_zone"):
            raise ConfigError("time_zone must name a zone, e.g. 'UTC'", code="BAD_VALUE")


class BaseBucketAssigner(ABC):
    """Names the bucket of each record.

    Built-in assigners derive from this, your own from ``filesink.BucketAssigner``.
    """

    @abstractmethod
    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """One bucket id per record of ``batch``.

        Called once per batch, in the tasks. An id is a path relative to the base path, such as
        ``"2024-01-01/eu"``; ``""`` is the base path itself.

        Returns:
            An array of strings, or of dictionary-encoded strings (faster), as long as ``batch``. A null,
            or an id that cannot be a directory, is a record without a bucket: it becomes a dead letter,
            or fails the epoch.
        """

    def origin(self, level: int | None) -> str:
        """What component ``level`` of the ids, or all of them, is made of. For messages about bad ones."""
        del level
        return f"the bucket that {type(self).__qualname__} gives"

    def partition_columns(self) -> tuple[str, ...]:
        """Columns whose values are in the path and that are left out of the files."""
        return ()

    def input_columns(self) -> tuple[str, ...] | None:
        """Columns of the input that ``assign`` looks at; ``None`` if it may look at any.

        Where records can be rendered by Spark, columns that nobody looks at need not leave it.
        """
        return None

    def derived_columns(self) -> Mapping[str, str]:
        """Columns that Spark adds before ``assign`` is called, name to SQL expression.

        They are left out of the files.
        """
        return {}

    def columns_of(self, bucket: str) -> tuple[str, ...] | None:
        """Columns that go into the files of ``bucket``, of those that go into any; ``None`` for all of these.

        Called once per task and bucket.
        """
        del bucket
        return None

    def name_for(self, bucket: str, text: str) -> str:
        """``text``, how the names of files begin, with what placeholders in it mean in ``bucket``."""
        del bucket
        return text

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise ``SchemaError`` if batches of ``schema``, derived columns included, cannot be assigned.

        Called on the driver before anything is written, and again by each task.
        """
        file_columns(self, schema)


def constant_ids(bucket_id: str, length: int) -> pa.Array[Any]:
    """``length`` times the same id."""
    return pa.DictionaryArray.from_arrays(np.zeros(length, dtype=np.int8), pa.array([bucket_id]))


def find_column(schema: pa.Schema, name: str) -> int:
    """Index of the column that ``name`` means: exactly, else by Spark's rule regardless of case.

    Raises:
        SchemaError: ``BUCKET_COLUMN``; there is none, or more than one.
    """
    exact = schema.get_all_field_indices(name)
    found = exact or [i for i, other in enumerate(schema.names) if other.lower() == name.lower()]
    if len(found) != 1:
        problem = "is ambiguous among" if found else "is not in"
        columns = ", ".join([schema.names[i] for i in found] or schema.names)[:200]
        raise SchemaError(
            f"bucket column {name!r} {problem} columns [{columns}]; rename it or select another",
            code="BUCKET_COLUMN",
        )
    return found[0]


def file_columns(assigner: BaseBucketAssigner, schema: pa.Schema) -> list[int]:
    """Indices of the columns that belong into the files: those not left out by ``assigner``.

    Raises:
        SchemaError: ``BUCKET_COLUMN``, or ``NO_DATA_COLUMNS`` if nothing is left.
    """
    left_out = {
        find_column(schema, name) for name in (*assigner.partition_columns(), *assigner.derived_columns())
    }
    kept = [i for i in range(len(schema)) if i not in left_out]
    if not kept:
        raise SchemaError(
            "every column is a bucket column, so the files would have none; keep one more column, or use "
            "with_columns_in_file()",
            code="NO_DATA_COLUMNS",
        )
    return kept


def assign_ids(assigner: BaseBucketAssigner, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
    """The bucket ids of ``batch``, for ``encode_ids``; errors of a user's assigner are named as such.

    Raises:
        EncoderError: ``ASSIGNER``; it raised.
        BucketError: ``TYPE`` or ``LENGTH``; what it returned is not one string per record.
    """
    name = type(assigner).__qualname__
    try:
        ids = assigner.assign(batch, context)
    except FilesinkError:
        raise
    except Exception as error:  # nothing is lost: the task fails and the epoch is not decided
        raise EncoderError(
            f"bucket assigner {name} failed with {told(error, by=assigner)}; nothing of this batch was "
            "committed",
            code="ASSIGNER",
        ) from error
    _check_ids(ids, len(batch), name=name)
    return ids


def split(batch: pa.RecordBatch, found: Encoded) -> list[tuple[str, pa.RecordBatch]]:
    """The records of each bucket, in their order; nothing is copied where records already lie together.

    Args:
        batch: any columns; not necessarily those the ids were made from.
        found: the ids of the records, none of them refused.
    """
    names, codes = found.names, found.codes
    if not names:
        return []
    if len(names) == 1:
        return [(names[0], batch)]
    starts = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))
    if len(starts) == len(names):
        ends = [*starts[1:].tolist(), len(batch)]
        return [
            (names[codes[start]], batch.slice(start, end - start))
            for start, end in zip(starts.tolist(), ends, strict=True)
        ]
    return list(zip(names, take_each(batch, codes, len(names)), strict=True))


def take_each(batch: pa.RecordBatch, codes: NDArray[Any], count: int) -> list[pa.RecordBatch]:
    """The records of each of the codes 0 to ``count`` - 1, in their order.

    A copy of its own for each: slices of one large copy would keep all of it in memory for as long as
    the slowest bucket.
    """
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=count)).tolist()
    return [batch.take(order[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _check_ids(ids: object, length: int, *, name: str) -> None:
    if not isinstance(ids, pa.Array) or not is_text(ids.type):
        got = f"an array of {ids.type}" if isinstance(ids, pa.Array) else type(ids).__name__
        raise BucketError(f"{name}: bucket ids must be a pyarrow array of strings, got {got}", code="TYPE")
    if len(ids) != length:
        raise BucketError(f"{name}: {len(ids)} bucket ids for {length} records", code="LENGTH")


def is_text(kind: pa.DataType) -> bool:
    """Whether values of ``kind`` are strings, dictionary-encoded or not."""
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    return bool(pt.is_string(kind) or pt.is_large_string(kind))
