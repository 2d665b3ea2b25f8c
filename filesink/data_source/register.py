"""Makes ``format("filesink")`` known to a session."""

from __future__ import annotations

import logging
from contextlib import nullcontext

from pyspark.sql import SparkSession

from filesink.arguments import instance_of
from filesink.data_source.source import FileSinkDataSource
from filesink.errors import ConfigError
from filesink.spark.input.driver_python import drivers_python
from filesink.spark.input.s3a import copy_of

log = logging.getLogger("filesink")
_ZONE = "spark.sql.session.timeZone"


def register(spark: SparkSession) -> None:
    """Let ``df.write.format("filesink")`` and ``df.writeStream.format("filesink")`` write with filesink.

    Called once per session; again does no harm. The session's time zone is set to what it is
    already, because Spark tells tasks only settings that were set. Paths on S3 are reached with the
    session's settings ``spark.hadoop.fs.s3a.*`` as they are now, since no session is where files are written.
    Options and what this door promises are in ``docs/data-source.md``; ``FileSink`` is the door without its
    limits.

    Raises:
        ConfigError: ``BAD_VALUE``; no session.
    """
    is_remote = type(spark).__module__.startswith("pyspark.sql.connect.")
    if not is_remote:
        instance_of(spark, SparkSession, name="spark")
    spark.conf.set(_ZONE, str(spark.conf.get(_ZONE)))
    with nullcontext() if is_remote else drivers_python(spark):  # a server has chosen its Python itself
        spark.dataSource.register(FileSinkDataSource if is_remote else _with_settings(spark))


def _with_settings(spark: SparkSession) -> type[FileSinkDataSource]:
    """The data source with the settings of S3, in its class: Spark shows options, but no class."""
    try:
        settings = copy_of(spark)
    except ConfigError as error:  # of a file of credentials; who does not write to S3 has no use for it
        log.warning("format('filesink') does not go by Spark's settings of S3: %s", error)
        return FileSinkDataSource
    if not settings:
        return FileSinkDataSource
    return type("FileSinkDataSource", (FileSinkDataSource,), {"settings": settings})
