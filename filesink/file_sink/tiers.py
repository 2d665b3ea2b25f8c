"""The file sink as a three-tier sink: what an engine drives. Built by ``filesink.building.builder``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from filesink.api import PreCommitStage, Prepared, Projection, Sink, WriterContext
from filesink.buckets.contract import file_columns, find_column
from filesink.buckets.event_time import check_time_column
from filesink.buckets.projection import check_names, record_projection
from filesink.buckets.recorded_partitions import check_layout, partition_columns, with_layout
from filesink.buckets.table_assigner import TableBucketAssigner
from filesink.commit.committer import FileCommitter
from filesink.commit.delete_permission import RequireRemoval, check_removal
from filesink.commit.layout_guard import Guarded, GuardLayout, OnOtherLayout
from filesink.commit.replaced_files import ReplaceFiles
from filesink.file_sink.left_files import LeftFiles
from filesink.inventory import sweeping
from filesink.inventory.folding import HISTORY_MS
from filesink.inventory.noting import FileInventory
from filesink.ledger.directory import twins
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import NOT_SWEPT, Chain, hidden_files, leftovers
from filesink.metastore.announcements import Announced, AnnouncementCodec
from filesink.metastore.due_partitions import CloseDuePartitions
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.partition_committer import PartitionCommitter
from filesink.metastore.policies import Site
from filesink.metastore.skipping_committer import SkippingCommitter
from filesink.metastore.tables.formats import format_by_extension
from filesink.naming import parent
from filesink.parts import file_format
from filesink.parts.committables import Committable, CommittableCodec, HeldFile, HeldFileCodec, PendingFile
from filesink.parts.file_format import RowFormat
from filesink.parts.plan import Plan
from filesink.parts.recorded_paths import check_record, check_reported, naming
from filesink.parts.stages.closed_parts import Compaction, MergeParts, Waiting
from filesink.parts.stages.held_rows import CountHeldRows
from filesink.parts.stages.merger import SinkFiles
from filesink.parts.stages.open_parts import CloseParts
from filesink.parts.stages.verify import VerifyStage
from filesink.parts.writer import FileWriter
from filesink.ports import Ports
from filesink.save_mode import SaveMode
from filesink.storage.api import Store
from formats.avro.writer import AvroOptions

if TYPE_CHECKING:
    from filesink.ledger.record import EpochRecord

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """How partitions are announced, and the base path as metastores should know it."""

    commit: PartitionCommit
    base_path: str


@dataclass(frozen=True, kw_only=True)
class FileTiers(Sink[HeldFile, Committable, Announced]):
    """Part files in buckets below one base path.

    Args:
        address: opens the store; anything callable that can be pickled.
        plan: how records become part files.
        uid: the user's stable name of the sink.
        publishing: how partitions are announced; stays on the driver, tasks get the sink without it.
        compaction: how small files are merged; without it, what happens to those that wait.
        emptied: buckets that an overwrite of partitions replaces even if no record belongs to them; see
            ``ReplaceFiles``.
        skip: called with each partition that cannot be announced, which is then no error; see
            ``recover(announce="skip")``.
        on_other_layout: what happens to an epoch whose files do not fit those that are there.
        history_ms: how long the inventory remembers epochs, and files that are gone.
        reader_grace_ms: how long replaced files stay for readers who hold a snapshot.
    """

    address: Callable[[], Store]
    plan: Plan
    uid: str | None = None
    publishing: Publishing | None = None
    compaction: Compaction | Waiting = Waiting.REFUSED
    emptied: Collection[str] = ()
    skip: Callable[[str], object] | None = None
    on_other_layout: OnOtherLayout = OnOtherLayout.REFUSE
    history_ms: int = HISTORY_MS
    reader_grace_ms: int = 0
    save_modes: ClassVar[Collection[SaveMode]] = tuple(SaveMode)
    writers_wait: ClassVar[bool] = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "publishing": None}

    def create_writer(self, context: WriterContext) -> FileWriter:
        """See ``Sink.create_writer``."""
        return FileWriter(self.plan, self.address(), context)

    def restore_writer(self, context: WriterContext, states: Sequence[HeldFile]) -> FileWriter:
        """See ``Sink.restore_writer``; a state is a segment of a part that stays open."""
        return FileWriter(self.plan, self.address(), context, states)

    def create_committer(self) -> FileCommitter:
        """See ``Sink.create_committer``."""
        store = self.address()
        return FileCommitter(store, store.runner)

    def create_aggregated_committer(self) -> PartitionCommitter | SkippingCommitter | None:
        """See ``Sink.create_aggregated_committer``."""
        found = self.partition_committer()
        return found if self.skip is None else SkippingCommitter(found, self.skip)

    def partition_committer(self) -> PartitionCommitter | None:
        """What announces partitions, if anything does."""
        return None if self.publishing is None else PartitionCommitter(self.publishing.commit, self._site)

    def pre_commit_stages(self) -> Sequence[PreCommitStage[HeldFile, Committable]]:
        """Close what is due, merge, name what is replaced, verify every new file, count, guard the layout."""
        plan, store = self.plan, self.address()
        files = SinkFiles(
            open_store=self.address,
            format=plan.format,
            names=plan.names,
            name_for=plan.assigner.name_for,
        )
        replace = ReplaceFiles(store, self.open_ledger, buckets=self.emptied, grace_ms=self.reader_grace_ms)
        first = [] if self.publishing is None else [CloseDuePartitions(self.publishing.commit)]
        able, last = RequireRemoval(store), (VerifyStage(store), CountHeldRows(), self._guard())
        return (able, *first, CloseParts(plan.policy), self._merging(files), replace, *last)

    def _guard(self) -> GuardLayout:
        in_path = self.plan.assigner.partition_columns()
        guarded = Guarded(
            format=self.plan.format,
            names=self.plan.names,
            partitions=partition_columns(self.plan.assigner),
            in_files=lambda schema: _without(schema, in_path),
            on_other=self.on_other_layout,
        )
        return GuardLayout(self.address(), self.open_ledger, guarded)

    def _merging(self, files: SinkFiles) -> PreCommitStage[HeldFile, Committable]:
        match self.compaction:
            case Compaction(strategy=strategy, compactor=compactor):
                return strategy.stage(compactor, files)
            case Waiting() as waiting:
                return MergeParts(files, waiting)

    def open_inventory(self, ports: Ports) -> FileInventory:
        """See ``Sink.open_inventory``: beside the ledgers."""
        return FileInventory(self.address(), ports, history_ms=self.history_ms)

    def create_remover(self) -> Callable[[int], None]:
        """See ``Sink.create_remover``; of what overwrites have replaced."""
        return LeftFiles(self.address(), self.open_ledger(EXCLUSIVE)).remove_due

    def open_ledger(self, sink_id: str) -> Ledger:
        """See ``Sink.open_ledger``: below ``_filesink`` of the base path."""
        return Ledger(self.address(), sink_id, check=check)

    @property
    def committable_codec(self) -> CommittableCodec:
        """See ``Sink.committable_codec``."""
        return CommittableCodec()

    @property
    def state_codec(self) -> HeldFileCodec:
        """See ``Sink.state_codec``."""
        return HeldFileCodec()

    @property
    def aggregated_codec(self) -> AnnouncementCodec:
        """See ``Sink.aggregated_codec``."""
        return AnnouncementCodec()

    def derived_columns(self) -> Mapping[str, str]:
        """What the bucket assigner wants Spark to compute."""
        return self.plan.assigner.derived_columns()

    def projection(self, schema: pa.Schema) -> Projection | None:
        """Rendered records, where the format and the assigner allow it.

        Raises:
            SchemaError: ``TYPE``; they do not, and the text of a column would not be Spark's.
        """
        form, found = self.plan.format, None
        if isinstance(form, RowFormat) and self.plan.on_bad_record is None:  # a dead letter has all columns
            watermark = self.plan.watermark_column
            also = () if watermark is None else (watermark,)
            found = record_projection(form.encoder, self.plan.assigner, schema, also=also)
        if found is None:
            file_format.check_crossing(form, schema)
        return found

    def prepare(self, schema: pa.Schema) -> None:
        """Check buckets and types, then the store, then the policies that announce partitions."""
        self.check_schema(schema)
        self.projection(schema)
        store = self.address()
        store.prepare()
        if isinstance(self.compaction, Compaction):
            check_removal(store, "a sink that merges small files")
        if self.publishing is not None:
            site = self._site()
            if site.partition_columns is not None:
                trigger = self.publishing.commit.trigger
                trigger.check_partitions(site.partition_columns)
                columns = {name: schema.field(find_column(schema, name)) for name in site.partition_columns}
                trigger.check_types({name.lower(): column.type for name, column in columns.items()})
            # Columns that are in no file, unless they are the keys of a table.
            left_out = {*self.derived_columns(), *self.plan.assigner.partition_columns()}
            left_out -= set(site.partition_columns or ())
            written = _without(schema, left_out)
            for policy in self.publishing.commit.policies:
                policy.prepare(site, written)

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise ``SchemaError`` if records of ``schema`` cannot be written. Touches nothing."""
        check_names(self.plan.assigner, schema)
        self.plan.assigner.check_schema(schema)
        kept = [schema.field(i) for i in file_columns(self.plan.assigner, schema)]
        file_format.check_schema(self.plan.format, pa.schema(kept))
        if self.plan.on_bad_record is not None:
            self.plan.on_bad_record.check_schema(_without(schema, self.derived_columns()))
        if self.plan.watermark_column is not None:
            check_time_column(schema, self.plan.watermark_column)

    def on_record(self, schema: pa.Schema) -> pa.Schema:
        """See ``Sink.on_record``; with a note of the partition columns."""
        return with_layout(self.plan.assigner, schema)

    def check_continues(self, old: pa.Schema, new: pa.Schema) -> None:
        """See ``Sink.check_continues``; compared are the partitions, and what is in the files."""
        check_layout(old, new)
        in_path = self.plan.assigner.partition_columns()
        file_format.check_continues(self.plan.format, _without(old, in_path), _without(new, in_path))

    def _site(self) -> Site:
        code = file_format.code_of(self.plan.format)
        return Site(
            store=self.address(),
            base_path="" if self.publishing is None else self.publishing.base_path,
            partition_columns=partition_columns(self.plan.assigner),
            tables=self.plan.assigner if isinstance(self.plan.assigner, TableBucketAssigner) else None,
            hive_format=format_by_extension(code.extension),
            avro_schema=str(code.schema) if isinstance(code, AvroOptions) and code.schema else None,
        )

    def check_reported(self, found: Prepared[HeldFile, Committable], *, sink_id: str) -> None:
        """See ``Sink.check_reported``."""
        check_reported(found, sink_id)

    def sweep(self, record: EpochRecord, touched: Sequence[Committable] | None) -> int:
        """See ``Sink.sweep``."""
        store, chain = self.address(), chain_of(record)
        if others := twins(store, chain.sink_id):
            log.warning(NOT_SWEPT, chain.sink_id, ", ".join(others))
            return 0
        directories = None
        if touched is not None:
            # Twins write to the same buckets, also where parts stay open.
            pending = {file.target for file in touched if isinstance(file, PendingFile)}
            directories = sorted({parent(path) for path in pending.union(chain.named)})
        dead = list(leftovers(chain, hidden_files(store, directories)))
        if touched is None:
            dead += sweeping.dead(store, oldest=None)
        for leftover in dead:
            store.discard(leftover.path)
        return len(dead)


def _without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """``schema`` without the columns that ``names`` mean by the rule of ``find_column``, if any."""
    exact = set(names).intersection(schema.names)
    folded = {name.lower() for name in names if name not in exact}
    return pa.schema([one for one in schema if one.name not in exact and one.name.lower() not in folded])


def check(record: EpochRecord, where: str) -> None:
    """See ``recorded_paths.check_record``; of what is announced as well."""
    check_record(record, where)
    with naming(where):
        for section in (record.announcement, record.waiting):
            if section.data:
                section.decode(AnnouncementCodec())


def chain_of(record: EpochRecord) -> Chain:
    """What a complete record says about hidden files of its sink."""
    codec = HeldFileCodec()
    held = [file.staged.path for section in record.states.values() for file in section.decode(codec)]
    return Chain(sink_id=record.files_of, complete_slot=record.files_slot, named=frozenset(held))
