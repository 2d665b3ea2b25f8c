"""A metastore on another machine: its calls go wrong like those of a disk, and take effect late.

The service checks by itself what it is told (I12): no partition before its files, each where its files
are, nothing of others. It reads the tree and the observer's picture of the ledger, never the product.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from filesink.errors import MetastoreError
from filesink.metastore.api import (
    Column,
    Metastore,
    Partition,
    StorageFormat,
    Table,
    TableChange,
    TableName,
    Values,
)
from filesink.metastore.memory import MemoryMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import CommittedPartition, ListenerPolicy
from filesink.naming import parent
from property_tests.simulation.observer.observer import Observer
from property_tests.simulation.observer.reading import Chain, Record
from property_tests.simulation.world.listing import visible_files
from property_tests.simulation.world.world import Killed, World

R = TypeVar("R")
BASE = "/sim"
_NAME = TableName(database="sim", table="t")
_ANY = StorageFormat(input_format="sim", output_format="sim", serde="sim")  # whatever a history writes
_SQUATTED = "p=1"  # of every history that announces
_ELSEWHERE = Partition(values=("1",), location="file:/elsewhere")
_THEIRS = Partition(values=("theirs",), location="file:/theirs", parameters={"a": "b"})


@dataclass(slots=True)
class Service:
    """The server. What it has acknowledged survives every crash and power cut of ours."""

    world: World
    observer: Observer
    memory: MemoryMetastore = field(default_factory=MemoryMetastore)
    late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)  # call number, effect
    registered: set[str] = field(default_factory=set)
    squatted_until: int = -1  # call number; till then somebody has a partition of ours at another location

    def __post_init__(self) -> None:
        self.memory.create_table(
            Table(
                name=_NAME,
                columns=(Column(name="row", type="string"),),
                partition_keys=(Column(name="p", type="string"),),
                location=f"file:{BASE}",
                format=_ANY,
            )
        )
        self.memory.add_partitions(self._table(), [_THEIRS])

    def commit(self, delay_ms: int) -> PartitionCommit:
        """What a sink is told: a listener that looks, then the metastore. One of ours may be elsewhere."""
        if self.world.random.random() < 0.15:
            self.squatted_until = self.world.random.randrange(600)
            self.memory.add_partitions(self._table(), [_ELSEWHERE])
        policies = [ListenerPolicy(self.listen), MetastorePolicy("sim.t", SimMetastore(self))]
        return PartitionCommit(policies=policies, delay=delay_ms)

    def listen(self, event: CommittedPartition) -> None:
        """I12: every file of the event is visible, or was until a later write replaced it.

        A driver that slept may repeat an event long after others have completed the epoch.
        """
        missing = [path for path in event.files if not self._has_been_visible(path)]
        if missing:
            self.world.fail(f"I12: {missing[0]} is announced and not visible")

    def add(self, partitions: Sequence[Partition]) -> set[Values]:
        """I12: some record whose files are all visible names the partition."""
        for one in partitions:
            bucket = f"p={one.values[0]}"
            if not (self._has_files(bucket) or bucket in self._replaced()):
                self.world.fail(f"I12: {bucket} is added before its files are visible")
            if one.location != f"file:{BASE}/{bucket}":
                self.world.fail(f"I12: {bucket} is added at {one.location}")
            if self.squatted_until < 0 or bucket != _SQUATTED:
                self.registered.add(bucket)
        return self.memory.add_partitions(self._table(), partitions)

    def alter(self, partitions: Sequence[Partition]) -> None:
        """I12: nothing of others."""
        if any(one.values == _THEIRS.values for one in partitions):
            self.world.fail("I12: a partition of others is changed")
        self.memory.alter_partitions(self._table(), partitions)

    def carry_out_late(self, number: int) -> None:
        """Have what was sent long ago take effect."""
        due = [effect for at, effect in self.late if at <= number]
        self.late = [(at, effect) for at, effect in self.late if at > number]
        for effect in due:
            effect()

    def mend(self, number: int) -> None:
        """Somebody has read the error, and drops the partition that is elsewhere."""
        if 0 <= self.squatted_until <= number:
            self.squatted_until = -1
            del self.memory.tables.find(_NAME).partitions[_ELSEWHERE.values]

    def check_decided(self, record: Record) -> None:
        """I12: nothing is decided that a look has shown to be impossible to announce.

        A look that failed stops nothing: the metastore is told when it is back.
        """
        looked = not any(operation == "metastore_read" for operation, _, _ in self.world.fired)
        if looked and self.squatted_until >= 0 and _SQUATTED in record.announced & _buckets(record.pending):
            self.world.fail(
                f"I12: slot {record.slot} is decided, and announces {_SQUATTED}, which is elsewhere"
            )

    def check_complete(self, chain: Chain, slot: int) -> None:
        """I12: what a record announces has been announced when its epoch is complete."""
        record = chain.records.get(slot)
        if record is None:
            return
        # What an epoch could not remove is no news when a later one can: only its statistics are old.
        news = _buckets(record.replaced - self.observer.replaced.ever_left)
        emptied = _buckets(record.replaced) - _buckets(record.pending)
        for bucket in (emptied & news) - record.announced:
            self.world.fail(f"I12: slot {slot} has emptied {bucket!r} and does not announce it")
        for bucket in record.announced - emptied:
            if bucket not in self.registered:
                self.world.fail(f"I12: slot {slot} is complete and {bucket} is not announced")

    def check_statistics(self, record: Record) -> None:
        """I12: when nothing else goes on, planners are told what is there after an overwrite."""
        found = {f"p={one.values[0]}": one.parameters for one in self._partitions()}
        old = _buckets(self.observer.replaced.ever_left)  # removed by an epoch that announced nothing there
        for bucket in sorted((_buckets(record.replaced | record.pending.keys()) & found.keys()) - old):
            files = {name: seen for name, seen in self.observer.visible.items() if parent(name) == bucket}
            told = [found[bucket].get(name) for name in ("numFiles", "totalSize")]
            if told != [str(len(files)), str(sum(len(seen.data) for seen in files.values()))]:
                self.world.fail(f"I12: {bucket} has {len(files)} files, and the metastore was told {told}")
            rows = str(sum(len(seen.rows) for seen in files.values()))
            if (
                found[bucket]["numRows"] not in {"-1", rows}
                and not files.keys() & self.observer.foreign.keys()
            ):
                self.world.fail(f"I12: {bucket} has {rows} rows and not {found[bucket]['numRows']}")

    def check_end(self) -> None:
        """I12: every bucket with files is a partition, and those of others are as they were."""
        self.carry_out_late(1 << 62)
        visible = visible_files(self.world.disk.root)
        ours = {name.rpartition("/")[0] for name in visible if name not in self.observer.foreign}
        found = {one.values: one for one in self._partitions()}
        for bucket in sorted(ours):
            if (bucket.removeprefix("p="),) not in found:
                self.world.fail(f"I12: {bucket} has files and is not announced at the end")
        ours |= self._replaced()
        if found[_THEIRS.values] != _THEIRS or len(found) > len(ours) + 1:
            self.world.fail("I12: partitions of others are not as they were")

    def _replaced(self) -> set[str]:
        """Buckets that an overwrite may have emptied, before they were announced or after."""
        return _buckets(self.observer.replaced.files)

    def _table(self) -> Table:
        return self.memory.tables.find(_NAME).table

    def _partitions(self) -> list[Partition]:
        return list(self.memory.tables.find(_NAME).partitions.values())

    def _has_been_visible(self, path: str) -> bool:
        """What a write has replaced may be gone again."""
        return path in self.observer.visible or path in self.observer.replaced.files

    def _has_files(self, bucket: str) -> bool:
        by_record: dict[str, list[str]] = {}
        for target, (_, record) in self.observer.decided.items():
            by_record.setdefault(record.path, []).append(target)
        return any(
            all(self._has_been_visible(target) for target in targets)
            for targets in by_record.values()
            if any(target.rpartition("/")[0] == bucket for target in targets)
        )


def _buckets(names: Iterable[str]) -> set[str]:
    return {parent(name) for name in names}


class SimMetastore(Metastore):
    """A client in whatever process calls it."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        return self._call("metastore_read", lambda: self._service.memory.get_table(name))

    def create_table(self, table: Table) -> None:
        """Not part of a history."""
        raise NotImplementedError

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """Not part of a history."""
        raise NotImplementedError

    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        return self._call("metastore_read", lambda: self._service.memory.get_partitions(table, values))

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """See ``Metastore.add_partitions``; every other time it does not tell what it has added."""
        del table
        tells = self._service.world.operations % 2
        added = self._change("metastore_add", self._service.add, partitions)
        return added if tells else set()

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``."""
        del table
        self._change("metastore_alter", self._service.alter, partitions)

    def _change(
        self, operation: str, effect: Callable[[Sequence[Partition]], R], partitions: Sequence[Partition]
    ) -> R:
        def half() -> R:
            effect(partitions[: len(partitions) // 2])
            raise OSError(errno.EIO, "simulated")

        service, random = self._service, self._service.world.random
        before = service.world.operations
        try:
            return self._call(operation, lambda: effect(partitions), half)
        except (MetastoreError, Killed):
            # What was sent may still be on its way: the service does it when nobody waits any more.
            if service.world.operations > before and random.random() < 0.5:
                service.late.append((before + random.randrange(1, 80), lambda: effect(partitions)))
            raise

    def _call(self, operation: str, effect: Callable[[], R], partial: Callable[[], R] | None = None) -> R:
        service = self._service
        world = service.world
        service.carry_out_late(world.operations)
        service.mend(world.operations)
        try:
            return world.step(world.current, operation, "metastore", effect, partial=partial)
        except OSError as error:
            raise MetastoreError("simulated", code="METASTORE_UNKNOWN") from error
