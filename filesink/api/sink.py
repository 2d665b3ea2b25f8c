"""The destination itself: makes the tiers, and answers the engine's questions before and after they run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from filesink.api.committer import SinkAggregatedCommitter, SinkCommitter
from filesink.api.epoch import Prepared
from filesink.api.inventory import EpochInventory
from filesink.api.stages import PreCommitStage
from filesink.api.writer import SinkWriter, WriterContext
from filesink.framing import Codec
from filesink.ports import Ports
from filesink.save_mode import SaveMode

if TYPE_CHECKING:
    import pyarrow as pa

    from filesink.ledger.ledger import Ledger
    from filesink.ledger.record import EpochRecord

StateT = TypeVar("StateT")
CommittableT = TypeVar("CommittableT")
AggregatedT = TypeVar("AggregatedT")

#: Key in the metadata of an input column: path and type of an interval inside it whose Arrow type does
#: not tell its first or last unit.
SHORT_INTERVAL = b"filesink.interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Which columns the writers get.

    Attributes:
        columns: name to SQL expression over the input and the derived columns; they get nothing else.
        metadata: of the schema of every batch.
    """

    columns: Mapping[str, str]
    metadata: Mapping[bytes, bytes]


class Sink(ABC, Generic[StateT, CommittableT, AggregatedT]):
    """A destination. Immutable and picklable; makes the tiers where an engine needs them."""

    #: The user's stable name of this sink, or ``None``: then a stream is known by its query id.
    uid: str | None = None
    #: The modes of batch writes that this sink supports.
    save_modes: ClassVar[Collection[SaveMode]] = (SaveMode.APPEND,)
    #: Whether its writers may wait in their mailbox. Where they never do, each task is spared the
    #: milliseconds that it takes to be able to learn, while it waits, that it was cancelled.
    writers_wait: ClassVar[bool] = True

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter[StateT, CommittableT]:
        """A writer for a subtask without state. Called once per task attempt."""

    def restore_writer(
        self, context: WriterContext, states: Sequence[StateT]
    ) -> SinkWriter[StateT, CommittableT]:
        """A writer that continues ``states``, never empty, of its subtask's last epoch.

        States of a subtask that does not run in an epoch are kept and offered again.
        """
        del states
        return self.create_writer(context)

    @abstractmethod
    def create_committer(self) -> SinkCommitter[CommittableT]:
        """The committer; made once per driver."""

    def create_aggregated_committer(self) -> SinkAggregatedCommitter[CommittableT, AggregatedT] | None:
        """The aggregated committer, if there is one; made once per driver."""
        return None

    def pre_commit_stages(self) -> Sequence[PreCommitStage[StateT, CommittableT]]:
        """Stages in the order in which they run; made once per driver."""
        return ()

    def open_inventory(self, ports: Ports) -> EpochInventory[CommittableT] | None:
        """Where epochs are noted for others to read, if anywhere; made once per driver."""
        del ports
        return None

    def create_remover(self) -> Callable[[int], None]:
        """What removes that for which earlier epochs have left others time; made once per driver.

        Called with the driver's time, in milliseconds since 1970 UTC, after each epoch that is complete.
        Must not raise ``FilesinkError``. By default it does nothing.
        """
        return lambda _now_ms: None

    @abstractmethod
    def open_ledger(self, sink_id: str) -> Ledger:
        """The durable chain of this sink's epochs. ``Ledger(open_store(directory, {}), sink_id)`` will do."""

    @property
    @abstractmethod
    def committable_codec(self) -> Codec[CommittableT]:
        """Bytes of committables, between processes and in the ledger."""

    @property
    def state_codec(self) -> Codec[StateT] | None:
        """Bytes of writer states; ``None`` for a sink without state."""
        return None

    @property
    def aggregated_codec(self) -> Codec[AggregatedT] | None:
        """Bytes of aggregated committables; needed with an aggregated committer."""
        return None

    def derived_columns(self) -> Mapping[str, str]:
        """Columns that the engine computes and appends before records reach a writer.

        Name to SQL expression, as in ``{"__bucket": "date_format(ts, 'yyyy-MM')"}``.
        """
        return {}

    def projection(self, schema: pa.Schema) -> Projection | None:
        """What the engine computes instead of handing every column over; ``None`` for every column.

        Called on the driver with a schema, derived columns included, that ``prepare`` has accepted.
        """
        del schema
        return None

    def prepare(self, schema: pa.Schema) -> None:
        """Check the destination and the schema of the input, derived columns included.

        Called on the driver before anything is written: once when a stream starts and before each
        batch write. Must not write data.
        """

    def on_record(self, schema: pa.Schema) -> pa.Schema:
        """``schema``, the columns of the input, with metadata that the ledger keeps for ``check_continues``.

        For whatever else must not change between epochs; by default nothing. Only metadata may differ.
        """
        return schema

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """Raise ``SchemaError`` if records of ``new`` may not lie beside those of ``old``; by default never.

        Called if the input of an epoch has other columns than the last one had, or other metadata of
        ``on_record``: on the driver before the tasks, or, where Spark starts the tasks by itself, in
        each task before it writes. Derived columns are in neither schema.
        """
        del old, new

    def check_reported(self, found: Prepared[StateT, CommittableT], *, sink_id: str) -> None:
        """Raise if a task that wrote for ``sink_id`` cannot have reported ``found``; by default never.

        Called on the driver for the result of each task, before the result is used.
        """
        del found, sink_id

    def abandon(self, sink_id: str) -> None:
        """Remove what the tasks of a batch write have left, which has failed and decides nothing.

        Called on the driver, with their ``WriterContext.sink_id``. A task that Spark has not ended yet may
        leave more. By default nothing is done: what is left is found by its name. What it raises is logged.
        """
        del sink_id

    def sweep(self, record: EpochRecord, touched: Sequence[CommittableT] | None) -> int:
        """Remove what attempts for slots up to that of ``record`` left behind.

        Called on the driver when ``record`` is complete and the newest. ``touched`` limits the
        search to places next to those committables; ``None`` means everywhere. Returns how many
        pieces were removed.
        """
        del record, touched
        return 0
