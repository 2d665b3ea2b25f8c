"""Batches of formats that Spark reads itself, by Spark's own reader: pushdown, pruning and all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filesink.data_source.reading.columns import spark_schema
from filesink.data_source.reading.view import format_name, is_reachable, read_view, view_of
from filesink.source.reading.plan import BadRecords, Missing, Union
from filesink.source.splits import SizeSplitAssigner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from filesink.source.source_plan import SourcePlan


def native_read(spark: SparkSession, plan: SourcePlan, schema: Any) -> DataFrame | None:
    """What is there now, read by Spark; ``None`` if it cannot do what the plan says.

    Args:
        spark: the session.
        plan: what was chosen.
        schema: that was given, as Spark takes it; ``None`` for that of the files.

    Raises:
        SourceError: ``NO_FILES``.
        StorageError: ``SNAPSHOT_GONE``.
    """
    chosen = plan.reading
    name = None if chosen.code is None else format_name(chosen.code)
    is_plain = chosen.bad_records is BadRecords.FAILFAST and not chosen.metadata
    if name is None or not is_plain or type(plan.assigner) is not SizeSplitAssigner:
        return None
    if not is_reachable(spark, plan.roots):
        return None
    files = plan.there()
    if not files:
        return None
    plan.check_kept()
    view = view_of(spark, plan.roots, files)
    if view is None:
        return None
    if schema is None and files[0].version:  # of a sink, which has noted them
        schema = spark_schema(plan.schema())
    elif schema is None and view.has_partitions:  # Spark would find types in the paths by rules of its own
        schema = spark_schema(plan.schema_of(files))
    reader = spark.read if schema is None else spark.read.schema(schema)
    options = {
        "mergeSchema": str(chosen.union is Union.ALL).lower(),
        "ignoreMissingFiles": str(chosen.missing is Missing.IGNORE).lower(),
        "ignoreCorruptFiles": "false",
    }
    frame: DataFrame = read_view(reader.format(name).options(**options), view)
    return frame
