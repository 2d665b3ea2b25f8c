"""A metastore around a metastore that fails where a plan says so. For tests of those who use one."""

from __future__ import annotations

from collections.abc import Sequence

from filesink.metastore.api import Metastore, Partition, Table, TableChange, TableName, Values
from filesink.storage.faulty import Plan, perform


class FaultyMetastore(Metastore):
    """Does what ``metastore`` does unless ``plan`` has a fault for it.

    The plan is asked with the name of the method and that of the table.
    """

    def __init__(self, metastore: Metastore, plan: Plan) -> None:
        self._metastore = metastore
        self._plan = plan

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        return perform(self._plan, ("get_table", str(name)), lambda: self._metastore.get_table(name))

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        operation = "create_table", str(table.name)
        perform(self._plan, operation, lambda: self._metastore.create_table(table))

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``."""
        perform(self._plan, ("alter_table", str(name)), lambda: self._metastore.alter_table(name, change))

    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        operation = "get_partitions", str(table.name)
        return perform(self._plan, operation, lambda: self._metastore.get_partitions(table, values))

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """See ``Metastore.add_partitions``."""
        operation = "add_partitions", str(table.name)
        return perform(self._plan, operation, lambda: self._metastore.add_partitions(table, partitions))

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``."""
        operation = "alter_partitions", str(table.name)
        perform(self._plan, operation, lambda: self._metastore.alter_partitions(table, partitions))

    def drop_partitions(self, table: Table, values: Sequence[Values]) -> None:
        """See ``Metastore.drop_partitions``."""
        operation = "drop_partitions", str(table.name)
        perform(self._plan, operation, lambda: self._metastore.drop_partitions(table, values))

    def close(self) -> None:
        """See ``Metastore.close``."""
        self._metastore.close()
