"""Batches of formats that Spark reads itself, by Spark's own reader: pushdown, pruning and all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filesink.data_source.reading.view import format_name, is_reachable, read_view, view_of
from filesink.source.reading.plan import BadRecords, Missing, Union
from filesink.source.splits import SizeSplitAssigner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from filesink.source.source_plan import SourcePlan


def native_read(spark: SparkSession, reader: DataFrameReader, plan: SourcePlan) -> DataFrame | None:
    """What is there now, read by Spark; ``None`` if it cannot do what the plan says.

    Args:
        spark: the session.
        reader: of it, with the schema that was given.
        plan: what was chosen.

    Raises:
        SourceError: ``NO_FILES``.
    """
    chosen = plan.reading
    name = None if chosen.code is None else format_name(chosen.code)
    is_plain = chosen.bad_records is BadRecords.FAILFAST and not chosen.metadata
    if name is None or not is_plain or type(plan.assigner) is not SizeSplitAssigner:
        return None
    if not is_reachable(spark, plan.roots):
        return None
    view = view_of(spark, plan.roots, plan.there())
    if view is None:
        return None
    options = {
        "mergeSchema": str(chosen.union is Union.ALL).lower(),
        "ignoreMissingFiles": str(chosen.missing is Missing.IGNORE).lower(),
        "ignoreCorruptFiles": "false",
    }
    frame: DataFrame = read_view(reader.format(name).options(**options), view)
    return frame
