"""Makes ``format("filesink")`` known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filesink.data_source.source import FileSinkDataSource
from filesink.spark.input.driver_python import drivers_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"


def register(spark: SparkSession) -> None:
    """Let ``df.write.format("filesink")`` and ``df.writeStream.format("filesink")`` write with filesink.

    Called once per session; again does no harm. The session's time zone is set to what it is
    already, because Spark tells tasks only settings that were set. Options and what this door
    promises are in ``docs/data-source.md``; ``FileSink`` is the door without its limits.
    """
    spark.conf.set(_ZONE, str(spark.conf.get(_ZONE)))
    with drivers_python(spark):
        spark.dataSource.register(FileSinkDataSource)
