"""Many tables below one base path: a directory for each, and in it the buckets of another assigner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from filesink.arguments import column_name, instance_of
from filesink.buckets.contract import (
    BaseBucketAssigner,
    BucketContext,
    assign_ids,
    file_columns,
    find_column,
    is_text,
)
from filesink.buckets.path_assigners import BasePathBucketAssigner
from filesink.buckets.table_paths import TablePath
from filesink.errors import BucketError, ConfigError, SchemaError
from filesink.framing import is_plain
from filesink.naming import join
from filesink.storage.bucket_ids import no_directory, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBucketAssigner(BaseBucketAssigner):
    """See ``BucketAssigner.table_bucket_assigner``."""

    column: str
    path: TablePath = field(default_factory=TablePath)
    within: BaseBucketAssigner = field(default_factory=BasePathBucketAssigner)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        column_name(self.column, name="the column of tables")
        instance_of(self.within, BaseBucketAssigner, name="within")
        if isinstance(self.within, TableBucketAssigner):
            raise ConfigError("a table has no tables in it: within is another assigner", code="BAD_VALUE")
        given = instance_of(self.columns, Mapping, name="columns")
        chosen = {table: _names(table, names) for table, names in given.items()}
        object.__setattr__(self, "columns", chosen)

    def partition_columns(self) -> tuple[str, ...]:
        """The column of tables, and those of the inner buckets."""
        return (self.column, *self.within.partition_columns())

    def input_columns(self) -> tuple[str, ...] | None:
        """See ``BucketAssigner.input_columns``; records of which columns are left out have to cross whole."""
        inner = self.within.input_columns()
        return None if inner is None or self.columns else (self.column, *inner)

    def derived_columns(self) -> Mapping[str, str]:
        """Those of the inner buckets."""
        return self.within.derived_columns()

    def origin(self, level: int | None) -> str:
        """See ``BucketAssigner.origin``."""
        if level is None or level < self.path.depth:
            return f"the name of a table, in column {self.column!r},"
        return self.within.origin(level - self.path.depth)

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BucketAssigner.check_schema``; the column of tables must be text, all columns be there."""
        file_columns(self, schema)
        kind = schema.field(find_column(schema, self.column)).type
        kind = kind.value_type if pt.is_dictionary(kind) else kind
        if not is_text(kind):
            raise SchemaError(
                f"column {self.column!r} names tables and is {kind}, not text; wrap it in string(…)",
                code="BUCKET_TYPE",
            )
        for table, names in self.columns.items():
            for name in names:
                find_column(schema, name)
            if not self._in_files(names):
                raise SchemaError(
                    f"every column of table {table[:80]!r} is a bucket column, so its files would have none; "
                    "keep one more column",
                    code="NO_DATA_COLUMNS",
                )
        self.within.check_schema(schema)

    def columns_of(self, bucket: str) -> tuple[str, ...] | None:
        """See ``BucketAssigner.columns_of``."""
        names = self.columns.get(self.path.name_of(bucket) or "")
        return None if names is None else self._in_files(names)

    def name_for(self, bucket: str, text: str) -> str:
        """See ``BucketAssigner.name_for``."""
        table = self.path.name_of(bucket)
        found = text if table is None else self.path.fill(text, table)
        is_hidden = found[:1] in {".", "_"} and text[:1] not in {".", "_"}  # readers would skip it
        return f"%{ord(found[0]):02X}{found[1:]}" if is_hidden else found

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """Directory of the table, and bucket in it, for each record; null where there is no table."""
        tables = _encoded(batch.column(find_column(batch.schema, self.column)))
        inner = _encoded(assign_ids(self.within, batch, context))
        # Nulls get a code of their own, which has no bucket.
        directories = [*map(self._directory, text_of(tables.dictionary)), None]
        buckets = [*map(_bucket, text_of(inner.dictionary)), None]
        first = tables.indices.fill_null(len(directories) - 1).to_numpy().astype(np.int64)
        second = inner.indices.fill_null(len(buckets) - 1).to_numpy().astype(np.int64)
        pairs = pa.array(first * len(buckets) + second).dictionary_encode()
        ids = [
            _joined(directories[pair // len(buckets)], buckets[pair % len(buckets)])
            for pair in pairs.dictionary.to_pylist()
        ]
        return pa.DictionaryArray.from_arrays(pairs.indices, pa.array(ids, pa.string()))

    def _in_files(self, names: Sequence[str]) -> tuple[str, ...]:
        in_path = {name.lower() for name in self.partition_columns()}
        return tuple(name for name in names if name.lower() not in in_path)

    def _directory(self, name: str | None) -> str | None:
        try:
            return None if name is None else self.path.directory(name)
        except BucketError as error:  # of the records of this table, which the router looks after
            return no_directory(error.code)


def _bucket(text: str | None) -> str | None:
    return text if text is None or is_plain(text) else no_directory("ILLEGAL_CHAR")


def _joined(directory: str | None, bucket: str | None) -> str | None:
    if directory is None or bucket is None:
        return None
    return join(directory, bucket) if bucket else directory


def _names(table: object, names: object) -> tuple[str, ...]:
    if not isinstance(table, str) or not isinstance(names, list | tuple) or not names:
        raise ConfigError(
            "columns must name the columns of tables, as in {'orders': ['id', 'price']}", code="BAD_VALUE"
        )
    return tuple(column_name(name, name=f"columns of {table[:80]!r}") for name in names)


def _encoded(column: pa.Array[Any]) -> Any:
    """Text, as codes of its distinct values."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    return column.cast(pa.string()).dictionary_encode()
