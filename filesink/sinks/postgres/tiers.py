"""The sink as an engine drives it: its tiers, and what is looked at before anything is written.

Rules: psycopg is imported by those who are called, so that this module can be imported without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from filesink.api import PreCommitStage, Sink, SinkCommitter, SinkWriter, WriterContext
from filesink.commit.recorded_schema import next_schema
from filesink.ledger.identity import append_sink_id
from filesink.ledger.ledger import Ledger
from filesink.ports import Clock
from filesink.sinks.postgres.committables import Committable, CommittableCodec, EpochKey, Target
from filesink.sinks.postgres.settings import Commit, OnSchemaChange, PostgresServer, PostgresTable
from filesink.sinks.store_ledger import StoreLedger
from filesink.system import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa

    from filesink.ledger.record import EpochRecord
    from filesink.sinks.postgres.sweeping import Sweeper


@dataclass(frozen=True, kw_only=True)
class PostgresTiers(Sink[None, Committable, None]):
    """Rows of a table. The arguments are those of ``PostgresSink``; tasks do not get ``ledger``.

    Args:
        clock: waits where the server is away.
    """

    writers_wait: ClassVar[bool] = False

    server: PostgresServer
    table: PostgresTable
    ledger: StoreLedger = field(repr=False)
    uid: str | None = None
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "ledger"}

    @property
    def target(self) -> Target:
        """The table, as it goes on record."""
        table = self.table
        return Target(
            schema=table.schema,
            table=table.table,
            keys=tuple(table.keys),
            newest_by=table.newest_by or "",
            row_kind=table.row_kind or "",
        )

    @property
    def committable_codec(self) -> CommittableCodec:
        """See ``Sink.committable_codec``."""
        return CommittableCodec()

    def prepare(self, schema: pa.Schema) -> None:
        """Check ledger, server, table, columns and rights; create what is missing and may be created.

        Raises:
            ConfigError, SchemaError: see ``preparing``.
            StorageError: the server does not answer, or refuses.
        """
        from filesink.sinks.postgres.preparing import prepare

        self.ledger.prepare()
        prepare(self.server, self.table, self.target, schema=schema, clock=self.clock)

    def create_writer(self, context: WriterContext) -> SinkWriter[None, Committable]:
        """See ``Sink.create_writer``."""
        from filesink.sinks.postgres.prepared import PreparingWriter
        from filesink.sinks.postgres.staging import StagingWriter

        kind = {Commit.STAGED: StagingWriter, Commit.PREPARED: PreparingWriter}[Commit(self.table.commit)]
        epoch = EpochKey(
            sink_id=context.sink_id, slot=context.epoch, target=self.target, schema=self.table.staging
        )
        return kind(self.server, epoch, context)

    def create_committer(self) -> SinkCommitter[Committable]:
        """See ``Sink.create_committer``."""
        from filesink.sinks.postgres.committer import PostgresCommitter

        return PostgresCommitter(self.server)

    def pre_commit_stages(self) -> Sequence[PreCommitStage[None, Committable]]:
        """See ``Sink.pre_commit_stages``."""
        from filesink.sinks.postgres.checks import CheckEpoch
        from filesink.sinks.postgres.fitting import FitTable

        arguments = self.server, self.table, self.target
        check = CheckEpoch(*arguments, clock=self.clock)
        if not self._follows_columns:
            return (check,)
        return check, FitTable(*arguments, check_batch=self._check_batch, clock=self.clock)

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Sink.check_continues``; where the table follows the DataFrame, no column goes in silence."""
        from filesink.sinks.postgres.preparing import named_by
        from filesink.sinks.postgres.target.altering import check_gone

        if self._follows_columns:
            check_gone(old, new, named_by(self.table))

    def _check_batch(self, schema: pa.Schema) -> None:
        """Compare ``schema`` with the columns of the newest batch write, as the core does with a stream's."""
        ledger = self.open_ledger(append_sink_id(self.uid))
        head = ledger.history.newest()
        if head is not None:
            next_schema(self, schema, cause=head.record.cause, head=head, ledger=ledger)

    @property
    def _follows_columns(self) -> bool:
        return OnSchemaChange(self.table.on_schema_change) is OnSchemaChange.APPLY

    def open_ledger(self, sink_id: str) -> Ledger:
        """See ``Sink.open_ledger``."""
        return self.ledger.open(sink_id)

    def sweep(self, record: EpochRecord, touched: Sequence[Committable] | None) -> int:
        """See ``Sink.sweep``; what is looked for by name is looked for everywhere."""
        del touched
        return len(self.sweeper().after(record))

    def abandon(self, sink_id: str) -> None:
        """See ``Sink.abandon``."""
        self.sweeper().of_failed(sink_id)

    def sweeper(self) -> Sweeper:
        """What looks for attempts that are dead."""
        from filesink.sinks.postgres.sweeping import Sweeper

        return Sweeper(self.server, self.target, self.table.staging, clock=self.clock)
