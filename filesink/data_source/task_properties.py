"""What Spark tells a running task: local properties of the query and the session."""

from __future__ import annotations

from pyspark import TaskContext

from filesink.errors import ConfigError, InternalError
from filesink.ledger.record import MicroBatch
from filesink.spark.query_internals import BATCH_ID, QUERY_ID

_ZONE = "spark.sql.session.timeZone"
_CONTINUOUS = "__is_continuous_processing"


def micro_batch_of(context: TaskContext) -> MicroBatch:
    """The micro-batch that a task writes for.

    Raises:
        ConfigError: ``TRIGGER``; it is one of continuous processing.
        InternalError: ``NO_BATCH_ID``.
    """
    if context.getLocalProperty(_CONTINUOUS) == "true":
        raise continuous_processing()
    query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if not query_id or not batch_id:
        raise InternalError(
            f"Spark did not provide '{QUERY_ID}' and '{BATCH_ID}' to this task; without them a replay cannot "
            "be told from new data. Use FileSink instead, and report this with your version of Spark",
            code="NO_BATCH_ID",
        )
    return MicroBatch(query_id=query_id, batch_id=int(batch_id), fingerprint="")


def session_zone(context: TaskContext) -> str:
    """The time zone of the session; raises ``InternalError`` (``NO_TIME_ZONE``) if the task is not told."""
    zone = context.getLocalProperty(_ZONE)
    if not zone:
        raise InternalError(
            f"this task does not know '{_ZONE}', which Spark passes on only where it is set. Call "
            "filesink.register(spark), which sets it, for the session that writes, or give option 'timeZone'",
            code="NO_TIME_ZONE",
        )
    return zone


def continuous_processing() -> ConfigError:
    """The error where a query runs without micro-batches."""
    return ConfigError(
        "Spark commits without results of its tasks, as in continuous processing, which cannot be "
        "exactly-once; use a micro-batch trigger, such as .trigger(processingTime='10 seconds')",
        code="TRIGGER",
    )
