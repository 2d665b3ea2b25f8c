"""What every metastore must do, checked without asking the client under test.

Subclass ``MetastoreContract``, give it the fixture ``site`` and run it: that enrols a metastore. The
oracle is the site: it looks at the metastore by another client.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest

from filesink.buckets.partition_paths import DEFAULT_PARTITION
from filesink.errors import MetastoreConflictError, MetastoreError
from filesink.metastore.announcements import Announcement
from filesink.metastore.api import (
    Column,
    Metastore,
    Partition,
    Table,
    TableChange,
    TableName,
    Values,
)
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_committer import committed
from filesink.metastore.policies import CommittedPartition, Site
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.storage.api import Store
from filesink.storage.memory import MemoryFiles, MemoryStore


class MetastoreSite(ABC):
    """A metastore seen from outside."""

    database: str = "default"
    root: str = "file:/nowhere"  # below it the service may make directories

    @abstractmethod
    def metastore(self) -> Metastore:
        """A new client, as another process would make it."""

    @abstractmethod
    def partitions(self, name: TableName) -> dict[Values, tuple[str, dict[str, str]]]:
        """Location and parameters of every partition."""

    @abstractmethod
    def columns(self, name: TableName) -> dict[str, str]:
        """Names and types of all columns, partition keys last."""

    @abstractmethod
    def drop_table(self, name: TableName) -> None:
        """Drop a table, as somebody else does."""

    def store(self, table: Table) -> Store:
        """Where a table's files are: for a service that counts them, too, where it looks."""
        del table
        return MemoryStore(MemoryFiles())

    def make_directory(self, location: str) -> None:  # noqa: B027 - where nobody looks for it
        """Make a directory that a table or partition is moved to."""

    def fresh_table(self) -> Table:
        """A table that does not exist yet, partitioned by day and k."""
        name = TableName(database=self.database, table=f"t_{uuid.uuid4().hex[:12]}")
        return Table(
            name=name,
            columns=(Column(name="a", type="bigint"), Column(name="b", type="struct<x:int,y:array<string>>")),
            partition_keys=(Column(name="day", type="string"), Column(name="k", type="string")),
            location=f"{self.root}/{name.table}",
            format=HIVE_FORMATS["parquet"],
        )


def partition(table: Table, day: str, k: str = "x", **parameters: str) -> Partition:
    """A partition in a directory of its own."""
    where = f"{table.location}/{day}-{uuid.uuid5(uuid.NAMESPACE_OID, k).hex[:8]}"
    return Partition(values=(day, k), location=where, parameters=parameters)


@dataclass
class Announcing:
    """A policy that tells ``metastore`` of directories of ``table``, each of which has one file."""

    site: MetastoreSite
    metastore: Metastore
    table: Table

    def __post_init__(self) -> None:
        self.policy = MetastorePolicy(str(self.table.name), self.metastore)
        self.where = Site(
            store=self.site.store(self.table), base_path=self.table.location, hive_format="parquet"
        )

    def partitions(self, *buckets: str) -> list[CommittedPartition]:
        """As they are announced: with a file of five bytes and two rows."""
        for bucket in buckets:
            self.where.store.put_if_absent(f"{bucket}/part-0", b"12345")
        return [
            committed(
                Announcement(
                    bucket=bucket,
                    first_seen_ms=0,
                    slot=0,
                    files=1,
                    rows=2,
                    size=5,
                    paths=(f"{bucket}/part-0",),
                ),
                self.where,
                repeated=False,
            )
            for bucket in buckets
        ]

    def check(self, *buckets: str) -> None:
        """The look before an epoch is decided."""
        self.policy.check(self.partitions(*buckets), self.where)

    def announce(self, *buckets: str) -> list[CommittedPartition]:
        """What follows when its files are visible."""
        return self.policy.commit_all(self.partitions(*buckets), self.where)


class MetastoreContract:
    """The conformance suite. Each test gets a table of its own."""

    def test_a_table_comes_back_as_it_was_created(self, site: MetastoreSite, metastore: Metastore) -> None:
        """Columns with nested types, keys in their order, location, format and parameters."""
        wanted = replace(site.fresh_table(), parameters={"made.by": "a test"})
        assert metastore.get_table(wanted.name) is None
        metastore.create_table(wanted)
        found = metastore.get_table(wanted.name)
        assert found is not None
        assert (found.columns, found.partition_keys) == (wanted.columns, wanted.partition_keys)
        assert (found.location, found.kind) == (wanted.location, wanted.kind)
        assert found.format.serde == wanted.format.serde
        assert found.parameters["made.by"] == "a test"
        assert list(site.columns(wanted.name)) == ["a", "b", "day", "k"]

    def test_creating_a_table_again_leaves_it_alone(self, metastore: Metastore, table: Table) -> None:
        """Two jobs may create one table; the second finds that of the first."""
        metastore.create_table(replace(table, columns=table.columns[:1]))
        found = metastore.get_table(table.name)
        assert found is not None
        assert found.columns == table.columns

    def test_partitions_are_added_and_found(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """Only those asked for come back, with their locations and parameters."""
        first, second = partition(table, "2024-01-01", numRows="5"), partition(table, "2024-01-02")
        metastore.add_partitions(table, [first, second])
        [found] = metastore.get_partitions(table, [first.values, ("2024-01-03", "x")])
        assert (found.values, found.location) == (first.values, first.location)
        assert found.parameters["numRows"] == "5"
        assert set(site.partitions(table.name)) == {first.values, second.values}

    def test_values_keep_their_text(self, site: MetastoreSite, metastore: Metastore, table: Table) -> None:
        """Values are escaped for names and come back as they were; null has its own text."""
        texts = [
            "a b",
            "a/b=c%d",
            "q\"u'o*t?e",
            "é ∑ 日本",
            "[x]{y}^z",
            DEFAULT_PARTITION,
            "a\\b:#",
            "${env:HOME}",
        ]
        added = [partition(table, "d", text) for text in texts]
        for _ in range(2):
            metastore.add_partitions(table, added)
        wanted = {("d", text) for text in texts}
        assert {one.values for one in metastore.get_partitions(table, sorted(wanted))} == wanted
        assert set(site.partitions(table.name)) == wanted

    def test_a_partition_is_never_replaced(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """Adding one that exists elsewhere leaves it there, adds the others, and never says otherwise."""
        first, second = partition(table, "2024-01-01"), partition(table, "2024-01-02")
        assert metastore.add_partitions(table, [first]) <= {first.values}
        moved = replace(first, location=f"{table.location}/elsewhere")
        assert metastore.add_partitions(table, [moved, second]) <= {second.values}
        found = site.partitions(table.name)
        assert found[first.values][0] == first.location
        assert len(found) == 2

    def test_altering_sets_what_it_names(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """Location and parameters change; other parameters and other partitions stay."""
        first, second = partition(table, "2024-01-01", mine="1", other="2"), partition(table, "2024-01-02")
        metastore.add_partitions(table, [first, second])
        moved = Partition(values=first.values, location=f"{table.location}/v2", parameters={"mine": "3"})
        metastore.alter_partitions(table, [moved])
        found = site.partitions(table.name)
        location, parameters = found[first.values]
        assert location == moved.location
        assert (parameters["mine"], parameters["other"]) == ("3", "2")
        assert found[second.values][0] == second.location

    def test_altering_one_that_is_gone_is_an_error(self, metastore: Metastore, table: Table) -> None:
        """A partition dropped by somebody is not added by a change; who looks again can add it."""
        with pytest.raises(MetastoreError) as caught:
            metastore.alter_partitions(table, [partition(table, "2024-01-01")])
        assert not isinstance(caught.value, MetastoreConflictError)
        assert caught.value.code == "PARTITION_MISSING"

    def test_columns_are_added_once(self, site: MetastoreSite, metastore: Metastore, table: Table) -> None:
        """A column that exists, in whatever case, is left alone; new ones come last."""
        change = TableChange(
            new_columns=(Column(name="A", type="string"), Column(name="c", type="decimal(10,2)")),
            parameters={"evolved": "yes"},
        )
        metastore.alter_table(table.name, change)
        metastore.alter_table(table.name, change)
        metastore.alter_table(table.name, TableChange(parameters={"later": "1"}))
        found = metastore.get_table(table.name)
        assert found is not None
        assert [column.name for column in found.columns] == ["a", "b", "c"]
        assert (found.parameters["evolved"], found.parameters["later"]) == ("yes", "1")
        assert site.columns(table.name)["c"] == "decimal(10,2)"

    def test_types_are_changed(self, site: MetastoreSite, metastore: Metastore, table: Table) -> None:
        """Of the columns that are named, in whatever case the table has them; twice is once."""
        metastore.alter_table(table.name, TableChange(new_columns=(Column(name="c", type="int"),)))
        metastore.add_partitions(table, [partition(table, "2024-01-01")])
        for _ in range(2):
            metastore.alter_table(table.name, TableChange(new_types={"c": "bigint", "gone": "int"}))
        assert {**site.columns(table.name), "b": ""} == {
            "a": "bigint", "b": "", "c": "bigint", "day": "string", "k": "string"
        }  # fmt: skip
        assert set(site.partitions(table.name)) == {("2024-01-01", "x")}

    def test_new_partitions_have_the_columns_of_their_table(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """A partition added after a column is read with it; readers take a partition's own format."""
        del site
        metastore.alter_table(table.name, TableChange(new_columns=(Column(name="c", type="int"),)))
        metastore.add_partitions(table, [partition(table, "2024-01-01")])
        assert metastore.get_partitions(table, [("2024-01-01", "x")])

    def test_a_table_can_be_moved(self, site: MetastoreSite, metastore: Metastore) -> None:
        """The location of a table without partitions is switched at once; nothing else changes."""
        plain = replace(site.fresh_table(), partition_keys=())
        metastore.create_table(plain)
        site.make_directory(f"{plain.location}_v2")
        metastore.alter_table(plain.name, TableChange(location=f"{plain.location}_v2"))
        found = metastore.get_table(plain.name)
        assert found is not None
        assert (found.location, found.columns) == (f"{plain.location}_v2", plain.columns)

    def test_partitions_are_dropped(self, site: MetastoreSite, metastore: Metastore, table: Table) -> None:
        """Those that are named and exist, whatever their text; a second call is as good; others stay."""
        texts = ["a/b=c%d", "é 日本", DEFAULT_PARTITION, "x"]
        metastore.add_partitions(table, [partition(table, "d", text) for text in texts])
        for _ in range(2):
            metastore.drop_partitions(table, [*(("d", text) for text in texts[:3]), ("never", "there")])
            assert set(site.partitions(table.name)) == {("d", "x")}
        metastore.add_partitions(table, [partition(table, "d", texts[0])])
        assert len(site.partitions(table.name)) == 2

    def test_many_partitions_are_dropped_in_one_call(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """More than fit into one request of the client."""
        many = [partition(table, f"d{i}") for i in range(30)]
        metastore.add_partitions(table, many)
        metastore.drop_partitions(table, [one.values for one in many[1:]])
        assert set(site.partitions(table.name)) == {many[0].values}

    @pytest.mark.parametrize("call", ["add_partitions", "alter_partitions", "drop_partitions"])
    def test_a_table_that_does_not_exist(self, site: MetastoreSite, metastore: Metastore, call: str) -> None:
        """Partitions of no table are a conflict: it was dropped, and trying again cannot help."""
        ghost = site.fresh_table()
        wanted = ("d", "x") if call == "drop_partitions" else partition(ghost, "d")
        with pytest.raises(MetastoreConflictError) as caught:
            getattr(metastore, call)(ghost, [wanted])
        assert caught.value.code == "TABLE_NOT_FOUND"

    def test_a_table_that_does_not_exist_has_no_partitions(
        self, site: MetastoreSite, metastore: Metastore
    ) -> None:
        """Or the metastore says that there is none: who goes on to add some is told in any case."""
        found: list[Partition] = []
        with suppress(MetastoreConflictError):
            found = metastore.get_partitions(site.fresh_table(), [("d", "x")])
        assert found == []

    def test_a_table_that_has_other_keys_now(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """Values in the order of keys that were read a moment ago are not added to others."""
        before = replace(table, partition_keys=tuple(reversed(table.partition_keys)))
        with pytest.raises(MetastoreError) as caught:
            metastore.add_partitions(before, [partition(table, "d")])
        assert caught.value.code == "TABLE_CHANGED"
        assert site.partitions(table.name) == {}

    def test_many_partitions_in_one_call(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """More than fit into one request of the client; all of them take effect."""
        many = [partition(table, f"d{i}") for i in range(25)]
        metastore.add_partitions(table, many)
        metastore.alter_partitions(table, [replace(one, parameters={"seen": "1"}) for one in many])
        assert len(metastore.get_partitions(table, [one.values for one in many])) == 25
        assert {parameters["seen"] for _, parameters in site.partitions(table.name).values()} == {"1"}

    def test_a_partition_elsewhere_is_found_before_it_is_announced(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """Among others that are new or where they should be; partition and both locations are named."""
        theirs = Partition(values=("1", "a b"), location=f"{table.location}/theirs")
        ours = Partition(values=("2", "x"), location=f"{table.location}/day=2/k=x")
        metastore.add_partitions(table, [theirs, ours])
        announcing = Announcing(site, metastore, table)
        announcing.check("day=2/k=x", "day=3/k=x")
        with pytest.raises(MetastoreConflictError) as caught:
            announcing.check("day=3/k=x", "day=2/k=x", "day=1/k=a b")
        assert caught.value.code == "OTHER_LOCATION"
        for part in ("'day=1/k=a b'", f"'{theirs.location}'", f"'{table.location}/day=1/k=a b'"):
            assert part in caught.value.message

    def test_what_the_look_has_not_found_is_added(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """With the statistics of its directory; a second driver that announces the same is done as well."""
        announcing = Announcing(site, metastore, table)
        announcing.check("day=1/k=x", "day=2/k=x")
        assert Announcing(site, site.metastore(), table).announce("day=2/k=x") == []
        assert announcing.announce("day=1/k=x", "day=2/k=x") == []
        assert Announcing(site, site.metastore(), table).announce("day=1/k=x", "day=2/k=x") == []
        found = site.partitions(table.name)
        assert {values: where for values, (where, _) in found.items()} == {
            ("1", "x"): f"{table.location}/day=1/k=x",
            ("2", "x"): f"{table.location}/day=2/k=x",
        }
        assert {parameters["numFiles"] for _, parameters in found.values()} == {"1"}
        assert {parameters["totalSize"] for _, parameters in found.values()} == {"5"}

    def test_somebody_adds_a_partition_elsewhere_after_the_look(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """It is found before anything is told of it, and left where it is."""
        announcing = Announcing(site, metastore, table)
        announcing.check("day=1/k=x")
        theirs = Partition(values=("1", "x"), location=f"{table.location}/theirs")
        site.metastore().add_partitions(table, [theirs])
        with pytest.raises(MetastoreConflictError) as caught:
            announcing.announce("day=1/k=x")
        assert caught.value.code == "OTHER_LOCATION"
        assert "recover(announce='skip')" in caught.value.message
        assert site.partitions(table.name)["1", "x"][0] == theirs.location

    def test_a_table_that_is_dropped(self, site: MetastoreSite, metastore: Metastore, table: Table) -> None:
        """Before the look or after it, a conflict: nobody waits for it to come back."""
        announcing = Announcing(site, metastore, table)
        announcing.check("day=1/k=x")
        site.drop_table(table.name)
        for call in (announcing.announce, announcing.check):
            with pytest.raises(MetastoreConflictError) as caught:
                call("day=1/k=x")
            assert caught.value.code == "TABLE_NOT_FOUND"

    def test_directories_that_are_none_of_the_table(
        self, site: MetastoreSite, metastore: Metastore, table: Table
    ) -> None:
        """A look finds out that the table has other keys."""
        with pytest.raises(MetastoreConflictError) as caught:
            Announcing(site, metastore, table).check("day=1")
        assert caught.value.code == "PARTITION_KEYS"

    def test_nothing_is_nothing(self, metastore: Metastore, table: Table) -> None:
        """Empty lists are no calls."""
        metastore.add_partitions(table, [])
        metastore.alter_partitions(table, [])
        metastore.drop_partitions(table, [])
        assert metastore.get_partitions(table, []) == []

    def test_a_closed_client_opens_again(self, metastore: Metastore, table: Table) -> None:
        """``close`` lets go of the connection and no more."""
        metastore.close()
        assert metastore.get_table(table.name) is not None
