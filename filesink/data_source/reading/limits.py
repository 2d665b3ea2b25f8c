"""Limits of a micro-batch, which Spark has since 4.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filesink.source.streams import Limit

__all__ = ["AvailableNow", "read_limit", "wanted"]

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as AvailableNow
    except ImportError:  # Spark 4.1, which asks nobody and ends after one batch

        class AvailableNow:
            """Stands for what Spark 4.1 does not have."""


def read_limit(limit: Limit) -> Any:
    """``limit`` in Spark's words, which knows one kind at a time."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

    if limit.files is not None:
        return ReadMaxFiles(limit.files)
    return ReadAllAvailable() if limit.size is None else ReadMaxBytes(limit.size)


def wanted(given: Any, chosen: Limit) -> Limit:
    """What a batch may take: all that is there if Spark says so, else what the user has chosen."""
    return Limit() if type(given).__name__ == "ReadAllAvailable" else chosen
