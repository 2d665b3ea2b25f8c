"""Maxwell's envelope: ``{"type": "update", "data": {…}, "old": {…}}``; ``old`` has what has changed.

DDL is ``{"type": "table-alter", "old": {…}, "def": {…}, "sql": …}``, where ``old`` is a table's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from filesink.row_kind import RowKind
from filesink.spark.changes.envelope import change, change_type
from filesink.spark.changes.values import Rows

if TYPE_CHECKING:
    from pyspark.sql import Column

_OF_TABLES = [f"{what}-{how}" for what in ("database", "table") for how in ("create", "alter", "drop")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maxwell:
    """See ``Envelope``. What says that a bootstrap begins or ends has no rows."""

    rows: Rows
    name: str = "Maxwell"

    @property
    def json_type(self) -> StructType:
        """See ``Envelope.json_type``."""
        row = self.rows.json_type
        return StructType(
            [StructField("type", StringType()), StructField("data", row), StructField("old", row)]
        )

    def steps(self) -> Sequence[Mapping[str, Column]]:
        """See ``Envelope.steps``."""
        kind, data = F.col("message.type"), F.col("message.data")
        before, is_there = F.col("before"), F.col("is_there")
        found = (
            F.when(kind.isin("insert", "bootstrap-insert") & is_there, F.array(change(RowKind.INSERT, data)))
            .when(
                (kind == "update") & is_there & F.col("message.old").isNotNull(),
                F.array(change(RowKind.UPDATE_BEFORE, before), change(RowKind.UPDATE_AFTER, data)),
            )
            .when((kind == "delete") & is_there, F.array(change(RowKind.DELETE, data)))
            .when(
                kind.isin("bootstrap-start", "bootstrap-complete"),
                F.array().cast(ArrayType(change_type(self.rows))),
            )
        )
        changed = F.json_object_keys(F.get_json_object("text", "$.old"))  # a null is a value, too
        is_event = F.coalesce(kind.isin(_OF_TABLES), F.lit(False))  # noqa: FBT003 - a value
        names = F.json_object_keys(F.get_json_object("text", "$.data"))
        has_any = ~self.rows.is_blank(data) | self.rows.has_any(names)
        return (
            {"changed": changed, "is_event": is_event, "is_there": data.isNotNull() & has_any},
            {"before": self.rows.made(self._before)},
            {"found": found},
        )

    def _before(self, name: str) -> Column:
        old, new = F.col("message.old").getField(name), F.col("message.data").getField(name)
        return F.when(F.array_contains("changed", name), old).otherwise(new)
