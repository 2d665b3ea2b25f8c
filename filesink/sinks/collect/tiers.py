"""The sink as an engine drives it: a file sink of Arrow files, with two stages more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from filesink.api import PreCommitStage
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.delete_permission import check_removal
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import COLLECTED
from filesink.naming import OutputFileConfig
from filesink.parts.committables import Committable, HeldFile
from filesink.parts.file_format import BulkFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.save_mode import SaveMode
from filesink.sinks.collect.buffer import Buffer
from filesink.sinks.collect.marks import Marks
from filesink.sinks.collect.stages import RemoveAcknowledged, Room, WaitForRoom
from filesink.sinks.collect.stored import Stored
from filesink.storage.api import Store
from filesink.storage.retrying import RetryingStore
from filesink.system import SystemClock
from formats import ArrowWriterFactory

FORMAT = ArrowWriterFactory(compression="lz4")


@dataclass(frozen=True, kw_only=True)
class CollectTiers(FileTiers):
    """Rows for a client.

    Args:
        room: how many may wait for it.
        base_path: for messages.
    """

    room: Room
    base_path: str
    save_modes: ClassVar[Collection[SaveMode]] = (SaveMode.APPEND,)

    def prepare(self, schema: pa.Schema) -> None:
        """See ``Sink.prepare``."""
        super().prepare(schema)
        check_removal(self.address(), "a sink whose rows are removed when they are acknowledged")

    def pre_commit_stages(self) -> Sequence[PreCommitStage[HeldFile, Committable]]:
        """See ``Sink.pre_commit_stages``."""
        store = RetryingStore(self.address(), SystemClock())
        buffer = Buffer(Stored(store, SystemClock(), self.base_path), Marks(store))
        wait = WaitForRoom(buffer, self.room, self.base_path)
        return (wait, *super().pre_commit_stages(), RemoveAcknowledged(store, buffer, self.open_ledger))


def tiers(address: Callable[[], Store], room: Room, *, base_path: str) -> CollectTiers:
    """The tiers of one path, which is one sink: whatever is collected there has one order."""
    plan = Plan(
        format=BulkFormat(FORMAT),
        assigner=BucketAssigner.base_path_bucket_assigner(),
        policy=RollingPolicy.on_checkpoint_rolling_policy(),
        names=OutputFileConfig(),
        check_interval_ms=60_000,
    )
    return CollectTiers(address=address, plan=plan, uid=COLLECTED, room=room, base_path=base_path)
