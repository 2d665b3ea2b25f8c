"""The sink as an engine drives it: its tiers, and what is looked at before anything is written.

Rules: confluent_kafka is imported by those who are called on the driver, so that this module can be imported
without it, and tasks that write never need it. They do not get ``cluster``, and so no secret of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from filesink.api import PreCommitStage, Sink, SinkCommitter, SinkWriter, WriterContext
from filesink.errors import DependencyError, InternalError
from filesink.ledger.ledger import Ledger
from filesink.ports import Clock, TaskRunner
from filesink.sinks.kafka.columns import Columns
from filesink.sinks.kafka.committables import Committable, CommittableCodec
from filesink.sinks.kafka.settings import KafkaCluster
from filesink.sinks.kafka.sweeping import sweep_after
from filesink.sinks.kafka.writer import StagingWriter
from filesink.sinks.store_ledger import StoreLedger
from filesink.system import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa

    from filesink.ledger.record import EpochRecord


def nobody() -> None:
    """There is no application with tasks."""


@dataclass(frozen=True, kw_only=True)
class KafkaTiers(Sink[None, Committable, None]):
    """Rows as records of topics. The arguments are those of ``KafkaSink``.

    Args:
        topic: ``""`` if each row names its own.
        clock: waits where the cluster is away.
        tasks: see ``KafkaCommitter``.
    """

    cluster: KafkaCluster | None
    topic: str
    ledger: StoreLedger = field(repr=False)
    uid: str | None = None
    clock: Clock = field(default_factory=SystemClock, repr=False)
    tasks: Callable[[], TaskRunner | None] = field(default=nobody, repr=False)

    writers_wait: ClassVar[bool] = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cluster": None, "tasks": nobody}

    @property
    def committable_codec(self) -> CommittableCodec:
        """See ``Sink.committable_codec``."""
        return CommittableCodec()

    def prepare(self, schema: pa.Schema) -> None:
        """Check ledger, columns, cluster, topics and rights; create the topic of markers.

        Raises:
            SchemaError: see ``columns``.
            ConfigError, StorageError: see ``preparing``.
            DependencyError: ``DEPENDENCY``; confluent-kafka is not installed.
        """
        try:
            from filesink.sinks.kafka.preparing import prepare
        except ImportError as error:
            raise DependencyError(
                f"Kafka needs confluent-kafka ({error.name} is missing); pip install 'filesink[kafka]'",
                code="DEPENDENCY",
            ) from error
        Columns.of(schema, self.topic)
        self.ledger.prepare()
        prepare(self._driven, self.topic, clock=self.clock)

    def create_writer(self, context: WriterContext) -> SinkWriter[None, Committable]:
        """See ``Sink.create_writer``."""
        return StagingWriter(self.ledger.open_store(), self.topic, context)

    def create_committer(self) -> SinkCommitter[Committable]:
        """See ``Sink.create_committer``."""
        from filesink.sinks.kafka.committer import KafkaCommitter

        return KafkaCommitter(self._driven, self.ledger, clock=self.clock, tasks=self.tasks)

    def pre_commit_stages(self) -> Sequence[PreCommitStage[None, Committable]]:
        """See ``Sink.pre_commit_stages``."""
        from filesink.sinks.kafka.checks import CheckEpoch

        return (CheckEpoch(self._driven, self.topic, self.ledger, clock=self.clock),)

    def open_ledger(self, sink_id: str) -> Ledger:
        """See ``Sink.open_ledger``."""
        return self.ledger.open(sink_id)

    def sweep(self, record: EpochRecord, touched: Sequence[Committable] | None) -> int:
        """See ``Sink.sweep``; all staged files are in one directory."""
        del touched
        return len(sweep_after(self.ledger.open_store(), record))

    @property
    def _driven(self) -> KafkaCluster:
        if self.cluster is None:
            raise InternalError("a task knows no cluster; please report this", code="NO_CLUSTER")
        return self.cluster
