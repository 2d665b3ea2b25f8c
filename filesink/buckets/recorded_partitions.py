"""The partition columns in the ledger, beside the columns of the input: what readers find in every path.

Readers that know Hive's partitions want the same ones in the path of every file. Spark refuses to read a
directory with several kinds, or leaves out, without an error, what lies beside the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from filesink.buckets.contract import find_column
from filesink.buckets.partition_assigner import PartitionBucketAssigner
from filesink.buckets.path_assigners import BasePathBucketAssigner
from filesink.buckets.table_assigner import TableBucketAssigner
from filesink.errors import SchemaError, StateCorruptError
from filesink.framing import from_json, to_json

if TYPE_CHECKING:
    from filesink.buckets.contract import BaseBucketAssigner

# Of the schema in a record; records of earlier releases have none.
_PARTITIONS: Final = b"filesink.partition_columns"


def partition_columns(assigner: BaseBucketAssigner) -> tuple[str, ...] | None:
    """The columns in the path as ``key=value``; ``None`` where only the user knows what is in it."""
    match assigner:
        case PartitionBucketAssigner(columns=columns):
            return columns
        case BasePathBucketAssigner():
            return ()
        case TableBucketAssigner(within=within):
            return partition_columns(within)  # of each table
        case _:
            return None


def with_layout(assigner: BaseBucketAssigner, schema: pa.Schema) -> pa.Schema:
    """``schema`` of the input with a note of the partition columns, if they are known."""
    columns = partition_columns(assigner)
    if columns is None:
        return schema.remove_metadata()
    names = [schema.names[find_column(schema, name)] for name in columns]
    return schema.with_metadata({_PARTITIONS: to_json(names)})


def check_layout(old: pa.Schema, new: pa.Schema) -> None:
    """Raise ``SchemaError`` if files of ``old`` and ``new``, both as noted, have other partition columns."""
    before, after = _noted(old), _noted(new)
    if before is None or after is None or _folded(before) == _folded(after):
        return
    raise SchemaError(
        f"existing files are {_where(before)}, but those of this batch would be {_where(after)}: Spark would "
        "refuse to read them together, or leave some out. Nothing was written. Keep the partition columns, "
        "write to another path (a stream also needs another checkpoint), or replace everything with "
        "mode='overwrite'",
        code="SCHEMA_CHANGE",
    )


def _noted(schema: pa.Schema) -> list[str] | None:
    data = (schema.metadata or {}).get(_PARTITIONS)
    if data is None:
        return None
    names = from_json(data, where="the list of partition columns in a record")
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise StateCorruptError("the list of partition columns in a record is malformed", code="JSON")
    return names


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _where(names: Sequence[str]) -> str:
    return f"in partitions by {', '.join(map(repr, names))}" if names else "in no partitions"
