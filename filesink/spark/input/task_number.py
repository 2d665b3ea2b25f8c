"""How many tasks a batch write will have, where its plan says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NARROW = frozenset({"Project", "Filter", "SubqueryAlias"})  # as many partitions as before


def number_of_tasks(df: DataFrame) -> int | None:
    """As many as ``df.repartition(n)`` has asked for; ``None`` where only the run will tell.

    Spark keeps to a number that was asked for, adaptive or not. Every other one follows from sizes and
    settings, and from a JVM that tells a Python task nothing. By range there may be fewer.
    """
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001 - Python has no other way to it
    while plan.nodeName() in _NARROW:
        plan = plan.children().head()
    match plan.nodeName():
        case "Repartition" if plan.shuffle():
            return int(plan.numPartitions())
        case "RepartitionByExpression" if plan.optNumPartitions().isDefined() and _is_hashed(plan):
            return int(plan.optNumPartitions().get())
        case _:
            return None


def _is_hashed(plan: Any) -> bool:
    return bool(plan.partitioning().getClass().getSimpleName() == "HashPartitioning")
