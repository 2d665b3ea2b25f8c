"""The sink as an engine drives it: a file sink of Arrow files, with two stages more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa

from filesink.api import PreCommitStage, WriterContext
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.delete_permission import check_removal
from filesink.errors import SchemaError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import COLLECTED, stream_sink_id
from filesink.ledger.record import EpochRecord
from filesink.naming import OutputFileConfig
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.file_format import BulkFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.parts.writer import FileWriter
from filesink.save_mode import SaveMode
from filesink.sinks.collect.buffer import Buffer
from filesink.sinks.collect.early import EarlyWriter, remove_early
from filesink.sinks.collect.marks import Marks
from filesink.sinks.collect.results import Delivery
from filesink.sinks.collect.rows import FORMAT
from filesink.sinks.collect.stages import RemoveAcknowledged, Room, WaitForRoom
from filesink.sinks.collect.stored import Stored
from filesink.storage.api import Store
from filesink.storage.retrying import RetryingStore
from filesink.system import SystemClock

_STREAM: Final = stream_sink_id(COLLECTED, "")


@dataclass(frozen=True, kw_only=True)
class CollectTiers(FileTiers):
    """Rows for a client.

    Args:
        room: how many may wait for it.
        base_path: for messages.
        delivery: whether tasks of streams hand out rows before their epoch is complete.
    """

    room: Room
    base_path: str
    delivery: Delivery = Delivery.EXACTLY_ONCE
    save_modes: ClassVar[Collection[SaveMode]] = (SaveMode.APPEND,)

    def prepare(self, schema: pa.Schema) -> None:
        """See ``Sink.prepare``.

        Raises:
            SchemaError: ``NO_DATA_COLUMNS``; there is no column.
        """
        if not schema.names:
            raise SchemaError(
                "the DataFrame has no columns, so there is nothing to collect; select one",
                code="NO_DATA_COLUMNS",
            )
        super().prepare(schema)
        check_removal(self.address(), "a sink whose rows are removed when they are acknowledged")

    def create_writer(self, context: WriterContext) -> FileWriter:
        """See ``Sink.create_writer``."""
        if self.delivery is Delivery.AT_LEAST_ONCE and context.sink_id == _STREAM:
            return EarlyWriter(self.plan, self.address(), context)
        return super().create_writer(context)

    def sweep(self, record: EpochRecord, touched: Sequence[Committable] | None) -> int:
        """See ``Sink.sweep``; early rows go as well, those of an earlier start at the next one."""
        found = super().sweep(record, touched)
        if record.sink_id == _STREAM and (touched is None or self.delivery is Delivery.AT_LEAST_ONCE):
            found += remove_early(self.address(), complete=record.slot)
        return found

    def pre_commit_stages(self) -> Sequence[PreCommitStage[HeldFile, Committable]]:
        """See ``Sink.pre_commit_stages``."""
        store = RetryingStore(self.address(), SystemClock())
        buffer = Buffer(Stored(store, SystemClock(), self.base_path), Marks(store))
        wait = WaitForRoom(buffer, self.room, self.base_path)
        return (wait, *super().pre_commit_stages(), RemoveAcknowledged(store, buffer, self.open_ledger))


def tiers(
    address: Callable[[], Store], room: Room, *, base_path: str, delivery: Delivery = Delivery.EXACTLY_ONCE
) -> CollectTiers:
    """The tiers of one path, which is one sink: whatever is collected there has one order."""
    plan = Plan(
        format=BulkFormat(FORMAT),
        assigner=BucketAssigner.base_path_bucket_assigner(),
        policy=RollingPolicy.on_checkpoint_rolling_policy(),
        names=OutputFileConfig(),
        check_interval_ms=60_000,
    )
    return CollectTiers(
        address=address, plan=plan, uid=COLLECTED, room=room, base_path=base_path, delivery=delivery
    )
