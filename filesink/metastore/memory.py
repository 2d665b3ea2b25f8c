"""The simplest metastore that keeps the contract: a dictionary. What the others are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from filesink.metastore.api import (
    Metastore,
    Partition,
    Table,
    TableChange,
    TableName,
    Values,
    check_keys,
    no_partition,
    no_table,
)


@dataclass(slots=True)
class MemoryTable:
    """A table and its partitions by their values."""

    table: Table
    partitions: dict[Values, Partition] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryTables:
    """What all clients of one simulated metastore see."""

    tables: dict[TableName, MemoryTable] = field(default_factory=dict)

    def find(self, name: TableName) -> MemoryTable:
        """The table; raises ``MetastoreConflictError`` if there is none."""
        found = self.tables.get(name)
        if found is None:
            raise no_table(name)
        return found


class MemoryMetastore(Metastore):
    """A client of ``tables``.

    Args:
        tables: shared with other clients.
    """

    def __init__(self, tables: MemoryTables | None = None) -> None:
        self.tables = MemoryTables() if tables is None else tables

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        found = self.tables.tables.get(name)
        return None if found is None else found.table

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        self.tables.tables.setdefault(table.name, MemoryTable(table))

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``."""
        found = self.tables.find(name)
        table = found.table
        columns = [replace(one, type=change.type_of(one.name, one.type)) for one in table.columns]
        found.table = replace(
            table,
            columns=(*columns, *change.missing_from(table.column_names())),
            parameters={**table.parameters, **change.parameters},
            location=table.location if change.location is None else change.location,
        )

    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        partitions = self._same(table).partitions
        return [partitions[one] for one in values if one in partitions]

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """See ``Metastore.add_partitions``."""
        found = self._same(table).partitions
        before = set(found)
        for partition in partitions:
            found.setdefault(partition.values, partition)
        return set(found) - before

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``."""
        found = self._same(table)
        for partition in partitions:
            old = found.partitions.get(partition.values)
            if old is None:
                raise no_partition(table.name)
            parameters = {**old.parameters, **partition.parameters}
            found.partitions[partition.values] = replace(
                old, location=partition.location, parameters=parameters
            )

    def drop_partitions(self, table: Table, values: Sequence[Values]) -> None:
        """See ``Metastore.drop_partitions``."""
        partitions = self._same(table).partitions
        for one in values:
            partitions.pop(one, None)

    def _same(self, table: Table) -> MemoryTable:
        found = self.tables.find(table.name)
        check_keys(table, [key.name for key in found.table.partition_keys])
        return found
