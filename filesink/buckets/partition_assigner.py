"""Buckets that are Hive partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from filesink.arguments import column_name
from filesink.buckets.contract import BaseBucketAssigner, BucketContext, file_columns, find_column
from filesink.buckets.partition_paths import check_type, fragment, texts
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.local_time import time_zone
from filesink.naming import join
from filesink.storage.bucket_ids import no_directory

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ColumnsInFile(Enum):
    """What becomes of the partition columns themselves."""

    LEFT_OUT = "left out"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBucketAssigner(BaseBucketAssigner):
    """See ``BucketAssigner.partition_bucket_assigner``."""

    columns: tuple[str, ...]
    columns_in_file: ColumnsInFile = ColumnsInFile.LEFT_OUT

    def __post_init__(self) -> None:
        names = [column_name(name, name="a partition column").lower() for name in self.columns]
        if not names or len(set(names)) < len(names) or not all(names):
            raise ConfigError(
                f"partition columns must be one or more different names, got {list(self.columns)!r}",
                code="BAD_VALUE",
            )

    def with_columns_in_file(self) -> PartitionBucketAssigner:
        """The same partitions, with their columns in the files too."""
        return replace(self, columns_in_file=ColumnsInFile.KEPT)

    def partition_columns(self) -> tuple[str, ...]:
        """See ``BucketAssigner.partition_columns``."""
        return self.columns if self.columns_in_file is ColumnsInFile.LEFT_OUT else ()

    def input_columns(self) -> tuple[str, ...]:
        """See ``BucketAssigner.input_columns``."""
        return self.columns

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BucketAssigner.check_schema``."""
        file_columns(self, schema)
        for name in self.columns:
            field = schema.field(find_column(schema, name))
            check_type(field)
            if field.name[0] in "._":
                raise SchemaError(
                    f"partition column {field.name!r} begins with '.' or '_', and readers skip directories "
                    "that do; rename it",
                    code="BUCKET_COLUMN",
                )

    def origin(self, level: int | None) -> str:
        """See ``BucketAssigner.origin``."""
        if level is None:
            return f"the bucket of partition columns {', '.join(map(repr, self.columns))}"
        return f"partition column {self.columns[level]!r}"

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """``k=v/k2=v2`` for each record, dictionary-encoded; no directory for a value without text."""
        time_zone(context.time_zone)  # refuses what is none
        ids, codes = [""], np.zeros(len(batch), dtype=np.int64)
        for name in self.columns:
            index = find_column(batch.schema, name)
            fragments, own = _fragments(batch.column(index), batch.schema.names[index], context.time_zone)
            # Encoding the pairs after each column keeps the product of codes below rows².
            pairs = pa.array(codes * len(fragments) + own).dictionary_encode()
            ids = [
                join(ids[pair // len(fragments)], fragments[pair % len(fragments)])
                for pair in pairs.dictionary.to_pylist()
            ]
            codes = pairs.indices.to_numpy().astype(np.int64)
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(ids, pa.string()))


def _fragments(column: pa.Array[Any], name: str, zone: str) -> tuple[list[str], NDArray[np.int64]]:
    """The path components of the distinct values, that of null at the end, and each record's code."""
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    encoded = plain.dictionary_encode()
    found = [_fragment(name, text) for text in texts(encoded.dictionary, zone)]
    codes = encoded.indices.fill_null(len(found)).to_numpy().astype(np.int64)
    return [*found, fragment(name, None)], codes


def _fragment(name: str, text: str | None) -> str:
    try:
        return no_directory("NAN") if text is None else fragment(name, text)
    except BucketError as error:  # of the records with this value, which the router looks after
        return no_directory(error.code)
