"""The sink API: three tiers, no files, no Spark.

    tasks      SinkWriter.write* ─▶ prepare_commit ─▶ snapshot_state ─▶ close
    driver     PreCommitStage.prepare* ─▶ *decide* ─▶ SinkCommitter.commit ─▶ SinkAggregatedCommitter.commit

The tiers and their names are SeaTunnel's (``SeaTunnelSink`` and its writer, committer and
aggregated committer); the richer writer context and the stages before the commit are Flink's
(FLIP-177, FLIP-191). ``FileSink`` is one implementation; an engine drives any other the same way.

One *epoch* is the unit of commit: a micro-batch, a batch write, or a step of the engine without
input. Its record in the ledger is the point of no return. Before it an epoch may only be discarded,
after it only be completed: every ``commit`` may be called again, in another process, until it has
returned an empty list, and looks for itself what has been done already.

A ``Sink`` is pickled to the tasks; nothing else of this API is. What crosses processes goes
through the codecs, and so does what survives a restart.

One file per tier, each re-exported here; may use ``ports``, ``framing`` and the values on the ground.
"""

from filesink.api.committer import SinkAggregatedCommitter, SinkCommitter
from filesink.api.epoch import Announcements, EpochContext, Input, Prepared
from filesink.api.inventory import EpochInventory
from filesink.api.metrics import Metrics
from filesink.api.sink import SHORT_INTERVAL, Projection, Sink
from filesink.api.stages import OF_STAGES, PreCommitStage
from filesink.api.writer import Mailbox, SinkWriter, WriterContext

__all__ = [
    "OF_STAGES",
    "SHORT_INTERVAL",
    "Announcements",
    "EpochContext",
    "EpochInventory",
    "Input",
    "Mailbox",
    "Metrics",
    "PreCommitStage",
    "Prepared",
    "Projection",
    "Sink",
    "SinkAggregatedCommitter",
    "SinkCommitter",
    "SinkWriter",
    "WriterContext",
]
