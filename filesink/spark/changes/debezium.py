"""Debezium's envelope: ``{"before": …, "after": …, "op": "u"}``, bare or in ``{"schema": …, "payload": …}``.

DDL is ``{"ddl": …, "tableChanges": […], …}``, of which some connectors leave one null.

PostgreSQL does not log long values that an update leaves alone. Debezium then writes a word in their place,
which would be taken for the value: it is looked for in ``before``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import StringType, StructField, StructType

from filesink.row_kind import RowKind
from filesink.spark.changes.envelope import change
from filesink.spark.changes.values import Rows, any_of

if TYPE_CHECKING:
    from pyspark.sql import Column

_UNAVAILABLE = "__debezium_unavailable_value"
_TEXTS = ("op", "ddl", "tableChanges")


@dataclass(frozen=True, slots=True, kw_only=True)
class Debezium:
    """See ``Envelope``."""

    rows: Rows
    name: str = "Debezium"

    @property
    def json_type(self) -> StructType:
        """See ``Envelope.json_type``."""
        row = self.rows.json_type
        texts = [StructField(name, StringType()) for name in _TEXTS]
        body = [StructField("before", row), StructField("after", row), *texts]
        return StructType([*body, StructField("payload", StructType(body))])

    def steps(self) -> Sequence[Mapping[str, Column]]:
        """See ``Envelope.steps``."""
        message = F.col("message")
        bare = F.struct(*(message.getField(name).alias(name) for name in ("before", "after", *_TEXTS)))
        old, new, op = F.col("old"), F.col("new"), F.col("body.op")
        no_old, is_old, is_whole = F.col("body.before").isNull(), F.col("is_old"), F.col("is_whole")
        tells = F.col("body.ddl").isNotNull() | F.col("body.tableChanges").isNotNull()
        found = (
            F.when(op.isin("c", "r") & is_whole, F.array(change(RowKind.INSERT, new)))
            .when((op == "u") & is_whole & no_old, F.array(change(RowKind.UPDATE_AFTER, new)))
            .when(
                (op == "u") & is_whole & is_old,
                F.array(change(RowKind.UPDATE_BEFORE, old), change(RowKind.UPDATE_AFTER, new)),
            )
            .when((op == "d") & is_old, F.array(change(RowKind.DELETE, old)))
        )
        return (
            {"body": F.coalesce(message.getField("payload"), bare)},
            {
                "old": self.rows.made(self._old),
                "new": self.rows.made(self._new),
                "is_old": self._is_row("before"),
                "is_whole": self._is_row("after") & ~self._is_unknown(),
                "is_event": op.isNull() & no_old & F.col("body.after").isNull() & tells,
            },
            {"found": found},
        )

    def _old(self, name: str) -> Column:
        value = F.col("body.before").getField(name)
        return F.nullif(value, F.lit(_UNAVAILABLE)) if name in self.rows.texts else value

    def _new(self, name: str) -> Column:
        value = F.col("body.after").getField(name)
        if name not in self.rows.texts:
            return value
        return F.when(value == _UNAVAILABLE, F.col("body.before").getField(name)).otherwise(value)

    def _is_row(self, name: str) -> Column:
        """Whether there is such a row, with any column of ours; the text is asked only if all is null."""
        row = F.col(f"body.{name}")
        texts = (F.get_json_object("text", f"$.{where}{name}") for where in ("payload.", ""))
        has_any = self.rows.has_any(F.json_object_keys(F.coalesce(*texts)))
        return row.isNotNull() & (~self.rows.is_blank(row) | F.coalesce(has_any, F.lit(False)))  # noqa: FBT003 - a value

    def _is_unknown(self) -> Column:
        """Whether any value of the row of after is unknown."""
        before, after = F.col("body.before"), F.col("body.after")
        return any_of(
            [
                after.getField(name).eqNullSafe(_UNAVAILABLE)
                & F.coalesce(before.getField(name), F.lit(_UNAVAILABLE)).eqNullSafe(_UNAVAILABLE)
                for name in self.rows.texts
            ]
        )
