"""The metastore in memory keeps the contract that others are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from filesink.metastore.api import Metastore, Table, TableName, Values
from filesink.metastore.memory import MemoryMetastore, MemoryTables
from tests.contracts.metastore_contract import MetastoreContract, MetastoreSite, partition


@dataclass
class MemoryMetastoreSite(MetastoreSite):
    """The dictionary itself is the oracle."""

    tables: MemoryTables = field(default_factory=MemoryTables)

    def metastore(self) -> Metastore:
        return MemoryMetastore(self.tables)

    def partitions(self, name: TableName) -> dict[Values, tuple[str, dict[str, str]]]:
        found = self.tables.tables[name].partitions
        return {values: (one.location, dict(one.parameters)) for values, one in found.items()}

    def columns(self, name: TableName) -> dict[str, str]:
        found = self.tables.tables[name].table
        return {column.name: column.type for column in (*found.columns, *found.partition_keys)}

    def drop_table(self, name: TableName) -> None:
        del self.tables.tables[name]


@pytest.fixture
def site() -> MetastoreSite:
    """A metastore of the test's own."""
    return MemoryMetastoreSite()


class TestMemoryMetastore(MetastoreContract):
    """The conformance suite, in memory."""

    def test_it_tells_what_it_has_added(self, metastore: Metastore, table: Table) -> None:
        """Whoever asked need not look again."""
        first, second = partition(table, "1"), partition(table, "2")
        assert metastore.add_partitions(table, [first]) == {first.values}
        assert metastore.add_partitions(table, [first, second]) == {second.values}
