"""Canal's envelope: ``{"type": "UPDATE", "data": [{…}, …], "old": [{…}, …], …}``, every value a text or null.

A message has the rows of one statement; ``old`` has, for each of them, what was changed, no more. DDL is
``{"isDdl": true, "type": "ALTER", "sql": …}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import ArrayType, BooleanType, MapType, StringType, StructField, StructType

from filesink.row_kind import RowKind
from filesink.spark.changes.envelope import change
from filesink.spark.changes.values import Rows

if TYPE_CHECKING:
    from pyspark.sql import Column

_IMAGES = ArrayType(MapType(StringType(), StringType()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Canal:
    """See ``Envelope``."""

    rows: Rows
    name: str = "Canal"

    @property
    def json_type(self) -> StructType:
        """See ``Envelope.json_type``."""
        return StructType(
            [
                StructField("type", StringType()),
                StructField("isDdl", BooleanType()),
                StructField("data", ArrayType(self.rows.json_type)),
                StructField("old", _IMAGES),
            ]
        )

    def steps(self) -> Sequence[Mapping[str, Column]]:
        """See ``Envelope.steps``."""
        kind, data, old = F.col("message.type"), F.col("message.data"), F.col("message.old")
        is_ddl = F.col("message.isDdl").eqNullSafe(True)  # noqa: FBT003 - a value
        pairs = F.transform(data, lambda row, place: self._pair(row, F.get(old, place)))
        is_row = F.col("is_row")
        is_event = is_ddl & ~kind.isin("INSERT", "UPDATE", "DELETE", "TRUNCATE")
        found = (
            F.when((kind == "INSERT") & is_row, F.transform(data, lambda row: change(RowKind.INSERT, row)))
            .when((kind == "DELETE") & is_row, F.transform(data, lambda row: change(RowKind.DELETE, row)))
            .when(
                (kind == "UPDATE") & is_row & _is_full(old) & (F.size(old) == F.size(data)), F.flatten(pairs)
            )
        )
        events = {"is_event": F.coalesce(is_event, F.lit(False))}  # noqa: FBT003 - a value
        return {"is_row": ~is_ddl & _is_full(data) & self._have_any(data), **events}, {"found": found}

    def _have_any(self, data: Column) -> Column:
        """Whether each row has any column of ours; looked for in the text only if all of one is null."""
        images = F.from_json(F.get_json_object("text", "$.data"), _IMAGES)
        return ~F.exists(data, self.rows.is_blank) | F.forall(
            images, lambda one: self.rows.has_any(F.map_keys(one))
        )

    def _pair(self, row: Column, changed: Column) -> Column:
        before = self.rows.made(
            lambda name: F.when(
                F.map_contains_key(changed, name), F.try_element_at(changed, F.lit(name))
            ).otherwise(row.getField(name))
        )
        return F.array(change(RowKind.UPDATE_BEFORE, before), change(RowKind.UPDATE_AFTER, row))


def _is_full(rows: Column) -> Column:
    return (F.size(rows) > 0) & ~F.exists(rows, lambda one: one.isNull())
