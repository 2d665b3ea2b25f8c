"""Partitions reach the metastore whatever it does: each failure of each call, once and for long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from filesink.commit.epoch import EpochLoop
from filesink.errors import (
    CommitFailedError,
    ConfigError,
    MetastoreConflictError,
    MetastoreError,
    SchemaError,
    StorageError,
)
from filesink.metastore import metastore_policy
from filesink.metastore.api import Column, Partition, Table, TableKind, TableName, Values
from filesink.metastore.memory import MemoryMetastore, MemoryTables
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import Site
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.system import ThreadRunner
from tests.fakes import World, micro_batch, records
from tests.metastore.faulty import FaultyMetastore

NAME = TableName.parse("db.t")
TABLE = Table(
    name=NAME,
    columns=(Column(name="value", type="string"),),
    partition_keys=(Column(name="day", type="string"), Column(name="k", type="string")),
    location="file:/base",
    format=HIVE_FORMATS["parquet"],
)


class Subject(MemoryMetastore):
    """A test may change what it does."""


@dataclass
class Metastores:
    """A sink that tells a metastore in memory, which fails as a test wants."""

    tables: MemoryTables = field(default_factory=MemoryTables)
    fault: Callable[[str, str], Fault | None] = lambda _operation, _table: None
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        MemoryMetastore(self.tables).create_table(TABLE)
        self.metastore = Subject(self.tables)
        self.policy = MetastorePolicy("db.t", FaultyMetastore(self.metastore, self._plan))
        self.world = World(partition_commit=PartitionCommit(policies=[self.policy]))

    def _plan(self, operation: str, table: str) -> Fault | None:
        self.calls.append(operation)
        return self.fault(operation, table)

    @property
    def partitions(self) -> dict[tuple[str, ...], Partition]:
        return self.tables.tables[NAME].partitions

    def write(self, batch_id: int, *buckets: str, driver: EpochLoop | None = None) -> None:
        batches = [records(f"{batch_id}{bucket}", bucket=bucket) for bucket in buckets]
        (driver or self.world.driver()).run(micro_batch(batch_id), self.world.job(batches))

    def fail(self, operation: str, moment: Moment, times: int) -> None:
        left = [times]

        def plan(name: str, table: str) -> Fault | None:
            del table
            if name != operation or not left[0]:
                return None
            left[0] -= 1
            return Fault(moment=moment, error=MetastoreError("simulated", code="METASTORE_UNKNOWN"))

        self.fault = plan


@pytest.fixture
def sut() -> Metastores:
    """A sink and its metastore."""
    return Metastores()


CALLS = ["get_table", "get_partitions", "add_partitions", "alter_partitions"]


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_call_that_fails_is_found_out_and_repeated(
    sut: Metastores, operation: str, moment: Moment, times: int
) -> None:
    """Before its effect or after it, once or some times: every partition is there once, with its numbers."""
    sut.write(0, "day=1/k=a")
    sut.fail(operation, moment, times)
    sut.write(1, "day=1/k=a", "day=2/k=a", "day=2/k=b")
    assert set(sut.partitions) == {("1", "a"), ("2", "a"), ("2", "b")}
    assert {p.parameters["numFiles"] for v, p in sut.partitions.items() if v == ("1", "a")} == {"2"}
    assert sut.partitions["1", "a"].parameters["numRows"] == "2"
    assert sut.partitions["2", "b"].parameters["numRows"] == "1"


def test_a_listing_that_fails_is_repeated(sut: Metastores) -> None:
    """The store is listed for statistics; if it fails once, the query does not."""
    faults = [Fault(moment=Moment.BEFORE, error=StorageError("no", code="IO"))]
    sut.world.fault = lambda name, path: (
        faults.pop() if (name, path) == ("list", "day=1/k=a") and sut.calls and faults else None
    )
    sut.write(0, "day=1/k=a")
    assert not faults
    assert set(sut.partitions) == {("1", "a")}


def test_what_was_added_in_part_is_not_added_again(sut: Metastores, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metastore takes the first partition and fails; the next round adds the second, and only that."""
    add, asked = MemoryMetastore.add_partitions, []

    def in_part(self: MemoryMetastore, table: Table, partitions: list[Partition]) -> set[Values]:
        asked.append([one.values for one in partitions])
        added = add(self, table, partitions[:1])
        if len(partitions) > 1:
            raise MetastoreError("simulated", code="METASTORE_UNKNOWN")
        return added

    monkeypatch.setattr(MemoryMetastore, "add_partitions", in_part)
    sut.write(0, "day=1/k=a", "day=2/k=a")
    assert asked == [[("1", "a"), ("2", "a")], [("2", "a")]]
    assert [one.parameters["numRows"] for one in sut.partitions.values()] == ["1", "1"]


@pytest.mark.parametrize(
    ("operation", "moment"),
    [
        *((operation, Moment.BEFORE) for operation in CALLS),
        ("get_table", Moment.AFTER),
        ("get_partitions", Moment.AFTER),  # what changes something and loses its reply is found done
    ],
)
def test_a_metastore_that_stays_away_loses_nothing(sut: Metastores, operation: str, moment: Moment) -> None:
    """The query fails, files are visible; the restart announces, before anything else."""
    sut.write(0, "day=1/k=a")
    sut.fail(operation, moment, 100)
    with pytest.raises(CommitFailedError) as caught:
        sut.write(1, "day=1/k=a", "day=2/k=a")
    assert caught.value.code == "RETRIES"
    assert len(sut.world.visible()) == 3
    sut.fail(operation, moment, 0)
    sut.write(2, "day=3/k=a")
    assert set(sut.partitions) == {("1", "a"), ("2", "a"), ("3", "a")}
    assert sut.partitions["1", "a"].parameters["numFiles"] == "2"


def test_nothing_is_told_before_the_files_are_visible(sut: Metastores) -> None:
    """A registered partition has its files."""
    seen = []

    def plan(operation: str, table: str) -> None:
        del table
        if operation == "add_partitions":
            seen.append(len(sut.world.visible()))

    sut.fault = plan
    sut.write(0, "day=1/k=a", "day=2/k=a")
    assert seen == [2]


def test_files_that_cannot_be_published_are_not_announced(sut: Metastores) -> None:
    """The second tier comes first; its failure leaves the metastore alone."""
    sut.world.fault = lambda operation, _: (
        Fault(moment=Moment.BEFORE, error=StorageError("no", code="IO")) if operation == "publish" else None
    )
    with pytest.raises(CommitFailedError):
        sut.write(0, "day=1/k=a")
    assert sut.partitions == {}
    assert sut.calls == ["get_table", "get_partitions"]  # before the epoch was decided


def test_a_partition_that_is_there_with_our_location_is_ours(sut: Metastores) -> None:
    """Spelled as Hive, Spark or a person spells it; it gets its statistics."""
    for day, where in (("1", "file:///base/day=1/k=a"), ("2", "/base/day=2/k=a/")):
        sut.partitions[day, "a"] = Partition(values=(day, "a"), location=where)
    sut.write(0, "day=1/k=a", "day=2/k=a")
    assert [one.parameters["numFiles"] for one in sut.partitions.values()] == ["1", "1"]
    assert sut.partitions["1", "a"].location == "file:///base/day=1/k=a"


def test_a_partition_that_is_elsewhere_is_an_error(sut: Metastores) -> None:
    """Never ignored: readers of the table would not see the files. Somebody has moved it after our look."""

    def plan(operation: str, table: str) -> None:
        del operation, table
        if sut.world.visible():
            sut.partitions["1", "a"] = theirs

    theirs = Partition(values=("1", "a"), location="file:/elsewhere/day=1/k=a")
    sut.fault = plan
    with pytest.raises(MetastoreConflictError) as caught:
        sut.write(0, "day=1/k=a")
    assert caught.value.code == "OTHER_LOCATION"
    assert sut.partitions["1", "a"] == theirs
    assert len(sut.world.visible()) == 1
    sut.fault = lambda _operation, _table: None
    del sut.partitions["1", "a"]
    sut.write(1, "day=2/k=a")
    assert set(sut.partitions) == {("1", "a"), ("2", "a")}


@pytest.mark.parametrize("buckets", [("day=1/k=a", "k=a/day=1"), ("k=a/day=1", "day=1/k=a")])
def test_two_directories_of_one_partition_that_were_put_off_are_an_error(
    sut: Metastores, buckets: tuple[str, str]
) -> None:
    """The same if their files came in different epochs and are announced together."""
    sut.world.partition_commit = PartitionCommit(policies=[sut.policy], delay=1000)
    for batch_id, bucket in enumerate([buckets[0], buckets[1], buckets[1]]):
        sut.write(batch_id, bucket)
    sut.world.clock.now = 5000
    with pytest.raises(MetastoreConflictError) as caught:
        sut.world.driver().upkeep()
    assert caught.value.code == "OTHER_LOCATION"
    assert sut.partitions == {}


@pytest.mark.parametrize("emptied", ["day=1/k=a", "k=a/day=1"])
def test_of_two_directories_of_one_partition_the_one_with_files_is_it(sut: Metastores, emptied: str) -> None:
    """However many files the other one had when it was put off: they are gone."""
    sut.world.partition_commit = PartitionCommit(policies=[sut.policy], delay=1000)
    kept = ({"day=1/k=a", "k=a/day=1"} - {emptied}).pop()
    for batch_id, bucket in enumerate([emptied, emptied, kept]):
        sut.write(batch_id, bucket)
    for path in [path for path in sut.world.visible() if path.startswith(emptied)]:
        del sut.world.files.files[path]
    sut.world.clock.now = 5000
    sut.world.driver().upkeep()
    assert [one.location for one in sut.partitions.values()] == [f"file:/base/{kept}"]


def test_who_is_faster_with_another_location_is_found_out(sut: Metastores) -> None:
    """Between our look and our call somebody adds the partition elsewhere: adding it says nothing."""

    def plan(operation: str, table: str) -> None:
        del table
        if operation == "add_partitions":
            sut.partitions["1", "a"] = Partition(values=("1", "a"), location="file:/theirs")

    sut.fault = plan
    with pytest.raises(MetastoreConflictError) as caught:
        sut.write(0, "day=1/k=a")
    assert caught.value.code == "OTHER_LOCATION"


def silent(self: MemoryMetastore, table: Table, partitions: Sequence[Partition]) -> set[Values]:
    """``add_partitions`` of a metastore that does not tell what it has added."""
    MemoryMetastore(self.tables).add_partitions(table, partitions)
    return set()


def test_who_is_faster_is_found_out_if_the_metastore_does_not_tell(
    sut: Metastores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has not said to be of this call is looked at again: here it is ours after all."""
    monkeypatch.setattr(type(sut.metastore), "add_partitions", silent)
    sut.write(0, "day=1/k=a")
    assert sut.calls == ["get_table", "get_partitions", "add_partitions", "get_partitions"]
    assert set(sut.partitions) == {("1", "a")}


def test_what_the_metastore_says_it_has_added_is_not_looked_at_again(sut: Metastores) -> None:
    """Three calls for partitions that are new, four for those that are known, the look before included."""
    sut.write(0, "day=1/k=a", "day=2/k=a")
    assert sut.calls == ["get_table", "get_partitions", "add_partitions"]
    sut.write(1, "day=1/k=a")
    assert sut.calls[3:] == ["get_table", "get_partitions", "get_partitions", "alter_partitions"]


def test_a_partition_that_is_dropped_at_once_is_added_again(
    sut: Metastores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our call and our look somebody drops it."""
    monkeypatch.setattr(type(sut.metastore), "add_partitions", silent)
    looks = []

    def plan(operation: str, table: str) -> None:
        del table
        looks.append(operation)
        if looks[-3:] == ["get_partitions", "add_partitions", "get_partitions"] and len(looks) < 6:
            sut.partitions.clear()

    sut.fault = plan
    sut.write(0, "day=1/k=a")
    assert set(sut.partitions) == {("1", "a")}
    assert looks.count("add_partitions") == 2


def test_a_partition_that_is_dropped_before_its_statistics_is_added_again(sut: Metastores) -> None:
    """Between our look and the change of what is known of it; the query does not fail."""
    sut.write(0, "day=1/k=a")
    dropped = []

    def plan(operation: str, table: str) -> None:
        del table
        if operation == "alter_partitions" and not dropped:
            dropped.append(sut.partitions.pop(("1", "a")))

    sut.fault = plan
    sut.write(1, "day=1/k=a", "day=2/k=a")
    assert dropped
    assert sut.partitions["1", "a"].parameters["numFiles"] == "2"
    assert set(sut.partitions) == {("1", "a"), ("2", "a")}


def test_a_partition_dropped_later_comes_back_with_its_next_files(sut: Metastores) -> None:
    """What people drop stays dropped until there is news; then all files in it count."""
    sut.write(0, "day=1/k=a")
    sut.partitions.clear()
    sut.write(1, "day=2/k=a")
    assert set(sut.partitions) == {("2", "a")}
    sut.write(2, "day=1/k=a")
    assert sut.partitions["1", "a"].parameters["numFiles"] == "2"
    assert sut.partitions["1", "a"].parameters["numRows"] == "-1"


@pytest.mark.parametrize("operation", ["get_partitions", "add_partitions", "alter_partitions"])
def test_a_table_that_is_dropped_meanwhile_is_an_error(sut: Metastores, operation: str) -> None:
    """After the epoch was decided, before any of the calls that follow."""
    sut.write(0, "day=1/k=a")

    def plan(name: str, table: str) -> None:
        del table
        if name == operation and len(sut.world.visible()) == 3:
            sut.tables.tables.pop(NAME)

    sut.fault = plan
    with pytest.raises(MetastoreConflictError) as caught:
        sut.write(1, "day=1/k=a", "day=2/k=a")
    assert caught.value.code == "TABLE_NOT_FOUND"
    assert len(sut.world.visible()) == 3


@pytest.mark.parametrize("operation", ["get_partitions", "add_partitions", "alter_partitions"])
def test_a_table_whose_keys_change_meanwhile_is_read_again(sut: Metastores, operation: str) -> None:
    """Values in the order of a moment ago reach no other keys; the next round goes by the new ones."""
    sut.write(0, "day=1/k=a")
    changed = []

    def plan(name: str, table: str) -> None:
        del table
        if name == operation and not changed:
            changed.append(name)
            found = sut.tables.tables[NAME]
            found.table = replace(found.table, partition_keys=tuple(reversed(found.table.partition_keys)))
            theirs = {(k, day): replace(one, values=(k, day)) for (day, k), one in found.partitions.items()}
            found.partitions.clear()
            found.partitions.update(theirs)

    sut.fault = plan
    sut.write(1, "day=1/k=a", "day=2/k=b")
    assert {values: one.parameters["numFiles"] for values, one in sut.partitions.items()} == {
        ("a", "1"): "2",
        ("b", "2"): "1",
    }


def test_one_batch_of_partitions_does_not_wait_for_another(
    sut: Metastores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In threads, as a metastore runs them: one batch that fails is tried again, one in conflict raises."""
    monkeypatch.setattr(metastore_policy, "_BATCH", 2)
    monkeypatch.setattr(FaultyMetastore, "runner", ThreadRunner(3))
    days = [f"day={day}/k=a" for day in range(7)]
    failed = []

    def plan(operation: str, table: str) -> Fault | None:
        del table
        if operation != "add_partitions":
            return None
        sut.partitions.setdefault(("2", "a"), Partition(values=("2", "a"), location="file:/theirs"))
        failed.append(operation)
        return Fault(moment=Moment.BEFORE, error=MetastoreError("no", code="X")) if len(failed) == 1 else None

    sut.fault = plan
    with pytest.raises(MetastoreConflictError):
        sut.write(0, *days)
    assert len(sut.partitions) in {3, 4, 5, 6}  # without the batch in conflict, and perhaps that which failed
    sut.fault = lambda _operation, _table: None
    del sut.partitions["2", "a"]
    sut.write(1, "day=0/k=a")
    assert set(sut.partitions) == {(str(day), "a") for day in range(7)}


@pytest.mark.parametrize("keys", [("day",), ("day", "k", "x"), ("day", "other"), ()])
def test_a_table_whose_keys_were_changed_is_an_error(sut: Metastores, keys: tuple[str, ...]) -> None:
    """Directories and keys must name the same columns."""
    found = sut.tables.tables[NAME]
    found.table = replace(TABLE, partition_keys=tuple(Column(name=key, type="string") for key in keys))
    with pytest.raises(MetastoreConflictError) as caught:
        sut.write(0, "day=1/k=a")
    assert caught.value.code == "PARTITION_KEYS"


def test_keys_may_come_in_another_order_and_case(sut: Metastores) -> None:
    """Values are matched by name."""
    found = sut.tables.tables[NAME]
    found.table = replace(TABLE, partition_keys=tuple(reversed(TABLE.partition_keys)))
    sut.write(0, "Day=1/K=a")
    assert set(sut.partitions) == {("a", "1")}


def test_a_table_elsewhere_gets_partitions_where_the_files_are(sut: Metastores) -> None:
    """The base path is the truth; a table may have partitions anywhere."""
    sut.tables.tables[NAME].table = replace(TABLE, location="hdfs://nn/warehouse/t")
    sut.write(0, "day=1/k=a")
    assert sut.partitions["1", "a"].location == "file:/base/day=1/k=a"


def test_statistics_are_listed_and_not_counted(sut: Metastores) -> None:
    """Foreign files count as well; then the number of rows is not known."""
    sut.write(0, "day=1/k=a")
    one = sut.partitions["1", "a"].parameters
    assert (one["numFiles"], one["numRows"]) == ("1", "1")
    sut.world.files.make("day=1/k=a/foreign.txt", b"12345")
    sut.world.files.make("day=1/k=a/.hidden", b"12345")
    sut.write(1, "day=1/k=a")
    one = sut.partitions["1", "a"].parameters
    assert (one["numFiles"], one["numRows"]) == ("3", "-1")
    assert one["totalSize"] == str(sum(map(len, sut.world.visible().values())))


def test_statistics_said_to_be_accurate_are_not_any_more(sut: Metastores) -> None:
    """Hive answers count(*) from statistics that somebody has called accurate."""
    parameters = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numRows": "0", "mine": "1"}
    sut.partitions["1", "a"] = Partition(
        values=("1", "a"), location="file:/base/day=1/k=a", parameters=parameters
    )
    sut.write(0, "day=1/k=a")
    assert sut.partitions["1", "a"].parameters["COLUMN_STATS_ACCURATE"] == "{}"
    assert sut.partitions["1", "a"].parameters["mine"] == "1"


def test_others_are_left_alone(sut: Metastores) -> None:
    """Partitions that got no files are neither read nor written."""
    theirs = Partition(values=("9", "z"), location="file:/x", parameters={"a": "b"})
    sut.partitions["9", "z"] = theirs
    sut.write(0, "day=1/k=a")
    assert sut.partitions["9", "z"] == theirs


def test_nothing_to_change_is_no_call(sut: Metastores) -> None:
    """A repeated announcement looks and finds everything done."""
    sut.write(0, "day=1/k=a")
    before = dict(sut.partitions)
    sut.world.driver()._chain.publisher.announce(sut.world.ledger().read(0), None)
    assert sut.partitions == before
    assert sut.calls.count("add_partitions") == 1


def test_values_are_unescaped(sut: Metastores) -> None:
    """The metastore has the value, the directory its escaped form; null has Hive's name."""
    sut.write(0, "day=a%2Fb/k=__HIVE_DEFAULT_PARTITION__")
    [(values, partition)] = sut.partitions.items()
    assert values == ("a/b", "__HIVE_DEFAULT_PARTITION__")
    assert partition.location == "file:/base/day=a%2Fb/k=__HIVE_DEFAULT_PARTITION__"


def test_a_table_without_partitions_gets_statistics(sut: Metastores) -> None:
    """Files directly below the table's directory; nothing is added."""
    sut.tables.tables[NAME].table = replace(TABLE, partition_keys=())
    sut.write(0, "")
    sut.write(1, "")
    parameters = sut.tables.tables[NAME].table.parameters
    assert (parameters["numFiles"], parameters["numRows"]) == ("2", "2")


def test_a_table_without_partitions_elsewhere_is_an_error(sut: Metastores) -> None:
    """Its readers would see nothing."""
    sut.tables.tables[NAME].table = replace(TABLE, partition_keys=(), location="file:/other")
    with pytest.raises(MetastoreConflictError) as caught:
        sut.write(0, "")
    assert caught.value.code == "OTHER_LOCATION"


# --- before anything is written

SCHEMA = pa.schema(
    [
        ("value", pa.string()),
        ("day", pa.string()),
        ("k", pa.string()),
    ]
)


def site(**changes: object) -> Site:
    """Where a Parquet sink by day and k writes."""
    values = {"base_path": "/base", "partition_columns": ("day", "k"), "hive_format": "parquet", **changes}
    return Site(store=MemoryStore(MemoryFiles()), **values)


LINKS = replace(
    TABLE,
    format=replace(
        HIVE_FORMATS["parquet"], input_format="org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"
    ),
)
CSV_TABLE = replace(
    TABLE,
    columns=(Column(name="first", type="string"), Column(name="value", type="string")),
    format=replace(HIVE_FORMATS["textfile"], serde="org.apache.hadoop.hive.serde2.OpenCSVSerde"),
)


def with_format(name: str) -> Table:
    """The table with files of another format."""
    return replace(TABLE, format=HIVE_FORMATS[name])


def keyed(kind: str) -> Table:
    """The table with days of another type."""
    return replace(TABLE, partition_keys=(Column(name="day", type=kind), TABLE.partition_keys[1]))


def with_days(kind: pa.DataType) -> pa.Schema:
    """The columns with days of another type."""
    return SCHEMA.set(1, pa.field("day", kind))


def prepare(table: Table | None, schema: pa.Schema, where: Site | None = None, **options) -> Table:
    """Start a sink on ``table``; the table as it is then."""
    metastore = MemoryMetastore()
    if table is not None:
        metastore.create_table(table)
    MetastorePolicy("db.t", metastore, **options).prepare(where or site(), schema)
    found = metastore.get_table(NAME)
    assert found is not None
    return found


def test_a_table_that_fits_is_left_alone() -> None:
    """Names in whatever case, text of limited length included."""
    fits = replace(TABLE, columns=(Column(name="value", type="varchar(10)"), Column(name="x", type="int")))
    assert prepare(fits, SCHEMA) == fits


def test_a_table_is_made_with_its_properties() -> None:
    """A table that is there keeps its own."""
    given = {"owner_team": "sales", "retention": "30 d"}
    made = prepare(None, SCHEMA, create=TableKind.EXTERNAL, properties=given)
    assert dict(made.parameters) == given
    there = replace(TABLE, parameters={"owner_team": "others"})
    assert prepare(there, SCHEMA, create=TableKind.EXTERNAL, properties=given) == there


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"numRows": "5"}, "BAD_VALUE"),
        ({"EXTERNAL": "FALSE"}, "BAD_VALUE"),
        ({"transactional": "true"}, "BAD_VALUE"),
        ({"spark.sql.sources.provider": "parquet"}, "BAD_VALUE"),
        ({"": "x"}, "BAD_VALUE"),
        ({"x" * 257: "x"}, "BAD_VALUE"),
        ({"x": "x" * 4001}, "BAD_VALUE"),
        ({"x": 1}, "BAD_VALUE"),
        (["x"], "BAD_VALUE"),
    ],
)
def test_properties_that_would_lie_are_refused(properties: Any, code: str) -> None:
    """What others count or note is theirs, and so is what kind of table it is."""
    with pytest.raises(ConfigError) as caught:
        MetastorePolicy("db.t", MemoryMetastore(), create=TableKind.EXTERNAL, properties=properties)
    assert caught.value.code == code


def test_properties_need_a_table_that_is_made() -> None:
    """Otherwise they would say nothing."""
    with pytest.raises(ConfigError) as caught:
        MetastorePolicy("db.t", MemoryMetastore(), properties={"owner_team": "sales"})
    assert caught.value.code == "CONFLICT"


@pytest.mark.parametrize(
    ("table", "schema", "where", "error", "code"),
    [
        (None, SCHEMA, site(), MetastoreConflictError, "TABLE_NOT_FOUND"),
        (replace(TABLE, kind=TableKind.OTHER), SCHEMA, site(), MetastoreConflictError, "NOT_A_TABLE"),
        (TABLE, SCHEMA, site(partition_columns=("day",)), MetastoreConflictError, "PARTITION_KEYS"),
        (TABLE, SCHEMA.append(pa.field("new", pa.int8())), site(), SchemaError, "EXTRA_COLUMN"),
        (TABLE, SCHEMA.set(0, pa.field("value", pa.int8())), site(), SchemaError, "COLUMN_TYPE"),
        (TABLE, SCHEMA.append(pa.field("new", pa.duration("s"))), site(), SchemaError, "HIVE_TYPE"),
        (TABLE, SCHEMA, site(hive_format="orc"), MetastoreConflictError, "TABLE_FORMAT"),
        (with_format("avro"), SCHEMA, site(), MetastoreConflictError, "TABLE_FORMAT"),
        (LINKS, SCHEMA, site(), MetastoreConflictError, "TABLE_FORMAT"),
        (keyed("date"), with_days(pa.timestamp("us", "UTC")), site(), SchemaError, "COLUMN_TYPE"),
        (keyed("int"), with_days(pa.float64()), site(), SchemaError, "COLUMN_TYPE"),
        (TABLE, SCHEMA.set(0, pa.field("VALUE", pa.int8())), site(), SchemaError, "COLUMN_TYPE"),
        (keyed("int"), SCHEMA.set(1, pa.field("DAY", pa.float64())), site(), SchemaError, "COLUMN_TYPE"),
        (
            replace(TABLE, partition_keys=(Column(name="DAY", type="int"), TABLE.partition_keys[1])),
            with_days(pa.float64()),
            site(),
            SchemaError,
            "COLUMN_TYPE",
        ),
        (keyed("int"), with_days(pa.int64()), site(), SchemaError, "COLUMN_TYPE"),
        (keyed("tinyint"), with_days(pa.int16()), site(), SchemaError, "COLUMN_TYPE"),
        (CSV_TABLE, SCHEMA, site(hive_format=None), SchemaError, "COLUMN_ORDER"),
        (
            replace(CSV_TABLE, format=HIVE_FORMATS["textfile"]),
            SCHEMA,
            site(hive_format=None),
            SchemaError,
            "COLUMN_ORDER",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    table: Table | None, schema: pa.Schema, where: Site, error: type[Exception], code: str
) -> None:
    """When the stream starts, before anything is written."""
    with pytest.raises(error) as caught:
        prepare(table, schema, where)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        (keyed("date"), with_days(pa.date32())),
        (keyed("date"), SCHEMA),  # text says what its writer means
        (keyed("bigint"), with_days(pa.int32())),
        (keyed("smallint"), with_days(pa.int8())),
        (keyed("int"), with_days(pa.int32())),
        (keyed("string"), with_days(pa.timestamp("us", "UTC"))),
        (keyed("varchar(10)"), with_days(pa.int32())),
    ],
)
def test_keys_take_what_is_their_text(table: Table, schema: pa.Schema) -> None:
    """Values of keys stand in names of directories."""
    assert prepare(table, schema) == table


@pytest.mark.parametrize("names", [("first",), ("First", "value"), ("first", "value")])
def test_csv_in_the_order_of_the_table_is_taken(names: tuple[str, ...]) -> None:
    """Columns may be left out at the end: readers take what is not there for null."""
    schema = pa.schema(
        [*((name, pa.string()) for name in names), *((key, pa.string()) for key in ("k", "day"))]
    )
    assert prepare(CSV_TABLE, schema, site(hive_format=None)) == CSV_TABLE
    grown = prepare(
        CSV_TABLE,
        SCHEMA.insert(0, pa.field("first", pa.string())).append(pa.field("z", pa.string())),
        site(hive_format=None),
        on_new_columns="add",
    )
    assert [column.name for column in grown.columns] == ["first", "value", "z"]


@pytest.mark.parametrize("delay", [0, 1000])
@pytest.mark.parametrize("bucket", ["2024-01-01--00", "day=1", "day=1/x=2", ""])
def test_directories_that_are_no_partitions_are_refused_before_they_are_decided(
    sut: Metastores, bucket: str, delay: int
) -> None:
    """Afterwards no start could announce them, at once or later, whatever assigner it has."""
    sut.world.partition_commit = PartitionCommit(policies=[sut.policy], delay=delay)
    sut.policy.prepare(site(), SCHEMA)
    with pytest.raises(MetastoreConflictError) as caught:
        sut.write(0, "day=1/k=a", bucket)
    assert caught.value.code == "PARTITION_KEYS"
    assert sut.world.visible() == {}
    sut.write(0, "day=1/k=a")
    sut.world.driver().finish()
    assert set(sut.partitions) == {("1", "a")}


def test_a_table_is_created_from_the_schema() -> None:
    """Columns without the partition keys, keys in the order of the directories, location, format."""
    schema = pa.schema(
        [
            ("k", pa.string()),
            ("Day", pa.date32()),
            ("amount", pa.decimal128(10, 2)),
            ("at", pa.timestamp("us", tz="UTC")),
            ("tags", pa.list_(pa.string())),
            ("by", pa.map_(pa.string(), pa.int32())),
            ("who", pa.struct([("Id", pa.int64()), ("ok", pa.bool_())])),
            ("kind", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    made = prepare(None, schema, site(partition_columns=("Day", "k")), create=TableKind.MANAGED)
    assert [(column.name, column.type) for column in made.columns] == [
        ("amount", "decimal(10,2)"),
        ("at", "timestamp"),
        ("tags", "array<string>"),
        ("by", "map<string,int>"),
        ("who", "struct<id:bigint,ok:boolean>"),
        ("kind", "string"),
    ]
    assert [(key.name, key.type) for key in made.partition_keys] == [("day", "date"), ("k", "string")]
    assert (made.location, made.kind, made.format) == (
        "file:/base",
        TableKind.MANAGED,
        HIVE_FORMATS["parquet"],
    )


def test_a_table_of_unknown_format_is_not_created() -> None:
    """Readers would not know how to read it."""
    with pytest.raises(SchemaError) as caught:
        prepare(None, SCHEMA, site(hive_format=None), create=TableKind.EXTERNAL)
    assert caught.value.code == "NO_HIVE_FORMAT"


def test_new_columns_are_added_if_that_is_wanted() -> None:
    """Behind those that are there."""
    grown = prepare(TABLE, SCHEMA.append(pa.field("New", pa.int8())), on_new_columns="add")
    assert [column.name for column in grown.columns] == ["value", "new"]


def test_a_column_that_goes_stays_in_the_table() -> None:
    """Older files have it. One with another name is a new one; nothing is dropped or renamed."""
    table = replace(TABLE, columns=(*TABLE.columns, Column(name="old", type="int")))
    assert prepare(table, SCHEMA) == table
    grown = prepare(table, SCHEMA.append(pa.field("new", pa.int32())), on_new_columns="add")
    assert [column.name for column in grown.columns] == ["value", "old", "new"]


WIDER = [
    ("tinyint", pa.int16()),
    ("int", pa.int64()),
    ("float", pa.float64()),
    ("decimal(10,2)", pa.decimal128(12, 4)),
    ("DECIMAL(10, 2)", pa.decimal128(11, 2)),
]


@pytest.mark.parametrize(("there", "given"), WIDER)
def test_types_are_made_wider_if_that_is_wanted(there: str, given: pa.DataType) -> None:
    """Before anything is written; unasked, the table stays, and the message says what can be done."""
    table = replace(TABLE, columns=(*TABLE.columns, Column(name="n", type=there)))
    schema = SCHEMA.append(pa.field("N", given))
    with pytest.raises(SchemaError, match="on_wider_types='alter'") as caught:
        prepare(table, schema)
    assert caught.value.code == "COLUMN_TYPE"
    changed = prepare(table, schema, on_wider_types="alter")
    assert [column.name for column in changed.columns] == ["value", "n"]
    assert prepare(changed, schema) == changed


NO_WIDER = [
    ("bigint", pa.int32()),
    ("int", pa.string()),
    ("int", pa.float64()),
    ("double", pa.float32()),
    ("decimal(10,2)", pa.decimal128(10, 4)),
    ("decimal(10,2)", pa.decimal128(12, 1)),
    ("date", pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize(("there", "given"), NO_WIDER)
def test_other_types_are_never_changed(there: str, given: pa.DataType) -> None:
    """Some value would be lost, or some reader would take it for another."""
    table = replace(TABLE, columns=(*TABLE.columns, Column(name="n", type=there)))
    with pytest.raises(SchemaError) as caught:
        prepare(table, SCHEMA.append(pa.field("n", given)), on_wider_types="alter")
    assert caught.value.code == "COLUMN_TYPE"
    assert "on_wider_types" not in str(caught.value)


def test_a_table_of_sparks_own_form_gets_no_columns() -> None:
    """Spark keeps the schema in parameters that only Spark writes."""
    of_spark = replace(TABLE, parameters={"spark.sql.sources.provider": "parquet"})
    with pytest.raises(MetastoreConflictError) as caught:
        prepare(of_spark, SCHEMA.append(pa.field("new", pa.int8())), on_new_columns="add")
    assert caught.value.code == "SPARK_TABLE"
