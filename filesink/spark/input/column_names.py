"""Columns cross to Python by their place where PySpark would not find them by their names.

``mapInArrow`` asks for each column by ``df[name]``, which reads a name as a path: one with a dot or a
backtick in it is not found, and ``*`` is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_MORE_THAN_A_NAME = re.compile(r"[.`*]")


def by_place(df: DataFrame, function: Batches) -> tuple[DataFrame, Batches]:
    """``df`` with names that PySpark finds, and ``function`` for its batches, which sees the true ones.

    Both are what they were where every name is found as it is.
    """
    names = df.columns
    if not any(map(_MORE_THAN_A_NAME.search, names)):
        return df, function
    return df.toDF(*(f"c{place}" for place in range(len(names)))), _with_names(function, names)


def _with_names(function: Batches, names: Sequence[str]) -> Batches:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(renamed(batch, names) for batch in batches)

    return run


def renamed(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The same columns under other names; what is noted of them stays."""
    fields = [field.with_name(name) for field, name in zip(batch.schema, names, strict=True)]
    schema = pa.schema(fields).with_metadata(batch.schema.metadata)
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
