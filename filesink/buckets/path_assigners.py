"""Buckets whose ids are taken as they are: none, or the value of a Spark SQL expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from filesink.arguments import instance_of
from filesink.buckets.contract import (
    BaseBucketAssigner,
    BucketContext,
    constant_ids,
    file_columns,
    find_column,
    is_text,
)
from filesink.errors import ConfigError, SchemaError

EXPRESSION_COLUMN = "__filesink_bucket"


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePathBucketAssigner(BaseBucketAssigner):
    """See ``BucketAssigner.base_path_bucket_assigner``."""

    def input_columns(self) -> tuple[str, ...]:
        """None at all."""
        return ()

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """``""`` for every record."""
        del context
        return constant_ids("", len(batch))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionBucketAssigner(BaseBucketAssigner):
    """See ``BucketAssigner.expression_bucket_assigner``."""

    expression: str

    def __post_init__(self) -> None:
        if not instance_of(self.expression, str, name="a bucket expression").strip():
            raise ConfigError("expression must be a Spark SQL expression, got ''", code="BAD_VALUE")

    def input_columns(self) -> tuple[str, ...]:
        """None: the derived column says all."""
        return ()

    def origin(self, level: int | None) -> str:
        """See ``BucketAssigner.origin``."""
        del level
        return "the value of the bucket expression"

    def derived_columns(self) -> Mapping[str, str]:
        """The one column that holds the bucket ids."""
        return {EXPRESSION_COLUMN: self.expression}

    def check_schema(self, schema: pa.Schema) -> None:
        """See ``BucketAssigner.check_schema``; the expression must give text."""
        file_columns(self, schema)
        kind = schema.field(find_column(schema, EXPRESSION_COLUMN)).type
        if not is_text(kind):
            raise SchemaError(
                f"the bucket expression gives {kind}, not text; wrap it in string(…)", code="BUCKET_TYPE"
            )

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """What Spark has computed."""
        del context
        return batch.column(find_column(batch.schema, EXPRESSION_COLUMN))
