"""What Spark tells a running task: local properties of the query and the session."""

from __future__ import annotations

import pyarrow as pa
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


def session_zone(context: TaskContext, rows: pa.Schema | None, *, by_clock: bool) -> str:
    """The time zone of the session.

    Spark passes the setting on only where it is set. Where it is not, a TIMESTAMP of the input has the
    zone in its type; and for rows without any, no zone makes a difference unless the moment of writing
    names their buckets.

    Args:
        context: of the task.
        rows: their columns; ``None`` if there are no rows.
        by_clock: whether that moment names buckets.

    Raises:
        InternalError: ``NO_TIME_ZONE``; the task is not told, and it makes a difference.
    """
    zone = context.getLocalProperty(_ZONE) or _zone_in(rows)
    if not zone and by_clock:
        raise InternalError(
            f"this task does not know '{_ZONE}', in which 'bucketTimeFormat' names buckets: Spark passes it "
            "on only where it is set. Give option 'timeZone', or call filesink.register(spark), which sets "
            "it, in the session that writes",
            code="NO_TIME_ZONE",
        )
    return zone or "UTC"


def _zone_in(rows: pa.Schema | None) -> str:
    """The zone of the first TIMESTAMP among columns and what is inside of them; ``""`` without any."""
    todo = [] if rows is None else [field.type for field in rows]
    while todo:
        kind = todo.pop(0)
        if pa.types.is_timestamp(kind) and kind.tz:
            return str(kind.tz)
        todo += [kind.field(place).type for place in range(kind.num_fields)]
    return ""


def continuous_processing() -> ConfigError:
    """The error where a query runs without micro-batches."""
    return ConfigError(
        "Spark commits without results of its tasks, as in continuous processing, which cannot be "
        "exactly-once; use a micro-batch trigger, such as .trigger(processingTime='10 seconds')",
        code="TRIGGER",
    )
