"""The file sink as a three-tier sink: what it asks of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from filesink.api import SHORT_INTERVAL
from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext
from filesink.errors import SchemaError, StorageError
from filesink.file_sink.tiers import FileTiers
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import CommitPolicy, CommittedPartition, Site
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.file_format import BulkFormat, FileFormat
from filesink.storage.faulty import Fault, Moment
from formats import (
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
)
from tests.fakes import SCHEMA, World, plan_of


def tiers(assigner: BucketAssigner) -> FileTiers:
    """A sink of CSV, whose columns are told by their places."""
    return World(plan=replace(plan_of(Encoder.csv()), assigner=assigner)).tiers()


@pytest.mark.parametrize(("spelled", "column"), [("day", "day"), ("DAY", "day"), ("day", "DAY")])
def test_what_is_only_in_the_path_may_become_anything(spelled: str, column: str) -> None:
    """Its type and its place are nobody's concern, in whatever case the assigner and the input spell it."""
    sink = tiers(BucketAssigner.partition_bucket_assigner(spelled))
    old = sink.on_record(pa.schema([(column, pa.string()), ("id", pa.int64())]))
    new = sink.on_record(pa.schema([("id", pa.int64()), (column, pa.date32())]))
    sink.check_continues(old, new)


def test_a_column_in_another_case_than_a_partition_is_compared() -> None:
    """Where the session tells them apart, only the one that is spelled like it is left out."""
    sink = tiers(BucketAssigner.partition_bucket_assigner("day"))
    old = sink.on_record(pa.schema([("day", pa.string()), ("DAY", pa.string())]))
    new = sink.on_record(pa.schema([("day", pa.string()), ("DAY", pa.date32())]))
    with pytest.raises(SchemaError, match="column 'DAY' was string") as caught:
        sink.check_continues(old, new)
    assert caught.value.code == "SCHEMA_CHANGE"


class Own(BucketAssigner):
    """A user's assigner that leaves a column out."""

    def partition_columns(self) -> tuple[str, ...]:
        return ("DAY",)

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array:
        raise NotImplementedError


class Asked(CommitPolicy):
    """Remembers what it is told of the files."""

    columns: tuple[str, ...] = ()
    site: Site

    def prepare(self, site: Site, schema: pa.Schema) -> None:
        self.site = site
        self.columns = tuple(schema.names)

    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        raise NotImplementedError


def test_policies_are_not_told_of_columns_that_are_in_no_file() -> None:
    """In whatever case the assigner spells them."""
    policy = Asked()
    world = World(
        plan=replace(plan_of(Encoder.csv()), assigner=Own()),
        partition_commit=PartitionCommit(policies=[policy]),
    )
    world.tiers().prepare(pa.schema([("day", pa.string()), ("id", pa.int64())]))
    assert policy.columns == ("id",)


def test_the_store_is_asked_first_whether_it_can_do_what_a_sink_needs() -> None:
    """What a store refuses is known before anybody is told, and before a task writes."""
    policy = Asked()
    world = World(partition_commit=PartitionCommit(policies=[policy]))
    refused = Fault(moment=Moment.BEFORE, error=StorageError("no hard links", code="HARD_LINKS"))
    world.fault = lambda operation, _path: refused if operation == "prepare" else None
    with pytest.raises(StorageError, match="no hard links"):
        world.tiers().prepare(SCHEMA)
    assert policy.columns == ()


IDS = '{"type":"record","name":"r","fields":[{"name":"id","type":"long"}]}'


@pytest.mark.parametrize("given", [IDS, None])
def test_policies_are_told_of_a_schema_that_is_given_for_avro(given: str | None) -> None:
    """They judge by it whether readers understand the files; one that is derived follows from the columns."""
    policy = Asked()
    world = World(
        plan=plan_of(BulkFormat(AvroWriterFactory(schema=given))),
        partition_commit=PartitionCommit(policies=[policy]),
    )
    world.tiers().prepare(pa.schema([("bucket", pa.string()), ("id", pa.int64())]))
    assert (policy.site.hive_format, policy.site.avro_schema) == ("avro", given)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (BulkFormat(ParquetWriterFactory()), "parquet"),
        (BulkFormat(OrcBulkWriterFactory()), "orc"),
        (Encoder.json_lines(), "json"),
        (BulkFormat(CompressWriterFactory(encoder=Encoder.json_lines())), "json"),
        (Encoder.csv(), None),
    ],
)
def test_policies_are_told_what_hive_calls_the_files(form: FileFormat | Encoder, name: str | None) -> None:
    """By that they make a table, or know that readers of one would not understand the files."""
    policy = Asked()
    world = World(plan=plan_of(form), partition_commit=PartitionCommit(policies=[policy]))
    world.tiers().prepare(SCHEMA)
    assert policy.site.hive_format == name


def test_the_watermark_column_crosses_beside_records_that_spark_renders() -> None:
    """The tasks look for the latest time in it."""
    plan = replace(
        plan_of(Encoder.json_lines()),
        assigner=BucketAssigner.partition_bucket_assigner("day"),
        watermark_column="ts",
    )
    schema = pa.schema([("day", pa.string()), ("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    crossing = World(plan=plan).tiers().projection(schema)
    assert crossing is not None
    assert {"day", "ts"} < set(crossing.columns)
    assert "id" not in crossing.columns


@pytest.mark.parametrize("put_aside", [None, DeadLetters()], ids=["rendered", "with dead letters"])
def test_intervals_are_refused_only_where_they_cross_to_python(put_aside: DeadLetters | None) -> None:
    """Spark renders them as they are; what comes to Python has lost its first and last unit."""
    plan = replace(
        plan_of(Encoder.json_lines()),
        assigner=BucketAssigner.base_path_bucket_assigner(),
        on_bad_record=put_aside,
    )
    short = pa.field("d", pa.duration("us"), metadata={SHORT_INTERVAL: b"'d' of type INTERVAL DAY"})
    sink, schema = World(plan=plan).tiers(), pa.schema([short])
    if put_aside is None:
        assert sink.projection(schema) is not None
        return
    with pytest.raises(SchemaError, match="INTERVAL DAY TO SECOND") as caught:
        sink.projection(schema)
    assert caught.value.code == "TYPE"
