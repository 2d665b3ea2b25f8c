"""Columns from epoch to epoch: what may follow, what is refused, and what starts anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.commit.external_epochs import CollectedEpochs, slot_for
from filesink.commit.recorded_schema import next_schema
from filesink.commit.replay import EpochOptions
from filesink.errors import InternalError, SchemaError, StateCorruptError
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.record import EMPTY, BatchWrite, EpochRecord, Section, TakenBack
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from formats.api import RowEncoder
from formats.encoders import Encoder
from formats.per_row import PerRowEncoder
from tests.fakes import SCHEMA, World, keep_open, micro_batch, plan_of

GOLDEN = Path(__file__).parents[1] / "golden"
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "Europe/Berlin")),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("lat", pa.float64())])),
        ("counts", pa.map_(pa.string(), pa.int32())),
    ]
)
TEXT, INT, LONG = pa.string(), pa.int32(), pa.int64()


def schema_of(**types):
    """The bucket's column and others."""
    return pa.schema([("bucket", TEXT), *types.items()])


def json_world(**options):
    """A sink that writes any columns."""
    return World(plan=plan_of(Encoder.json_lines(), **options))


def job_of(world, schema, *values):
    """A batch with the same values in every column but the bucket's."""
    arrays = [pa.array([""] * len(values))]
    arrays += [pa.array(values, LONG).cast(field.type) for field in list(schema)[1:]]
    return world.job(pa.RecordBatch.from_arrays(arrays, schema=schema), schema=schema)


def refused(world, cause, schema, column, sink_id=None):
    """Offer a batch that is refused, by name of the column, and leaves everything as it is."""
    before, job = dict(world.files.files), job_of(world, schema, 7)
    with pytest.raises(SchemaError, match=column) as caught:
        world.driver(sink_id).run(cause, job)
    assert caught.value.code == "SCHEMA_CHANGE"
    assert job.executions == 0
    assert world.files.files == before


def test_columns_that_are_added_and_types_that_grow_go_on():
    """The next batch may have more columns and wider types, never null in Spark or not."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    grown = pa.schema([("bucket", TEXT), ("a", LONG), pa.field("b", TEXT, nullable=False)])
    world.driver().run(micro_batch(1), job_of(world, grown, 2))
    assert world.rows() == ['{"a":1}', '{"a":2,"b":"2"}']
    refused(world, micro_batch(2), schema_of(a=LONG), "'b' is gone")


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        (schema_of(a=INT), "'b' is gone"),
        (schema_of(a=INT, c=TEXT), "'b' is gone"),
        (schema_of(a=TEXT, b=TEXT), "'a' was int32 and cannot become string"),
        (schema_of(a=pa.int16(), b=TEXT), "'a' was int32 and cannot become int16"),
    ],
)
def test_other_changes_are_refused_before_a_task_runs(schema, column):
    """By every driver, as often as it is tried; after that the right columns are welcome."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT, b=TEXT), 1))
    refused(world, micro_batch(1), schema, column)
    refused(world, micro_batch(1), schema, column)
    world.driver().run(micro_batch(1), job_of(world, schema_of(a=INT, b=TEXT), 2))
    assert len(world.rows()) == 2


def test_a_driver_that_goes_on_looks_too():
    """Not only the first batch of a run is compared."""
    world = json_world()
    driver = world.driver()
    driver.run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    with pytest.raises(SchemaError):
        driver.run(micro_batch(1), job_of(world, schema_of(b=INT), 2))
    driver.run(micro_batch(1), job_of(world, schema_of(a=INT), 2))
    assert len(world.rows()) == 2


def test_epochs_without_input_carry_the_columns_on():
    """Upkeep and the end of input know no columns, and forget none."""
    world = json_world(policy=keep_open())
    driver = world.driver()
    driver.run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.clock.now = 5000
    assert driver.upkeep() is not None
    driver.run(micro_batch(1), job_of(world, schema_of(a=INT), 1))
    assert driver.finish() is not None
    refused(world, micro_batch(2), schema_of(b=INT), "'a' is gone")


def test_an_open_part_of_the_older_columns_is_closed():
    """What has other columns is another file."""
    world = json_world(policy=keep_open())
    driver = world.driver()
    driver.run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    driver.run(micro_batch(1), job_of(world, schema_of(a=INT, b=INT), 2))
    driver.run(micro_batch(2), job_of(world, schema_of(a=INT, b=INT), 3))
    driver.finish()
    assert sorted(world.visible().values()) == [b'{"a":1}\n', b'{"a":2,"b":2}\n{"a":3,"b":3}\n']


def test_a_replay_is_not_compared():
    """What is decided is decided; the batch after it is compared with the newest columns."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.driver().run(micro_batch(1), job_of(world, schema_of(a=INT, b=INT), 1))
    assert world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1)).replayed


def test_a_ledger_without_columns_goes_on():
    """An earlier release wrote none: nothing is refused, and from now on they are known."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    head = world.ledger().head()
    old = replace(head, record=replace(head.record, schema=EMPTY))
    ledger, sink = world.ledger(), world.tiers()
    assert next_schema(sink, schema_of(z=INT), cause=micro_batch(1), head=old, ledger=ledger) != EMPTY


@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.ERROR_IF_DATA_EXISTS])
def test_what_replaces_everything_starts_anew(mode):
    """A whole overwrite, or a first write, may have any columns."""
    world = json_world()
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(a=INT), 1))
    if mode is SaveMode.ERROR_IF_DATA_EXISTS:
        for path in world.visible():
            world.store().delete(path)
    world.driver(EXCLUSIVE).run(BatchWrite(mode=mode), job_of(world, schema_of(b=INT), 2))
    assert world.rows() == ['{"b":2}']
    cause = BatchWrite(mode=SaveMode.OVERWRITE_PARTITIONS)
    refused(world, cause, schema_of(a=INT), "'b' is gone", EXCLUSIVE)


def test_a_stream_follows_what_has_replaced_its_files():
    """After a whole overwrite by a batch write the stream is compared with that, not with what is gone."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 2))
    refused(world, micro_batch(1), schema_of(c=INT), "'b' is gone")
    world.driver().run(micro_batch(1), job_of(world, schema_of(b=LONG), 3))
    assert world.rows() == ['{"b":2}', '{"b":3}']
    refused(world, micro_batch(2), schema_of(a=INT), "'b' is gone")


def test_what_was_replaced_before_the_stream_wrote_is_no_new_start():
    """Files of the stream are there; the clock, which stands still here, could not tell."""
    world = json_world()
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 1))
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 2))
    refused(world, micro_batch(1), schema_of(b=INT), "'a' is gone")


def test_an_overwrite_during_a_batch_has_not_replaced_its_files():
    """It begins after the batch and is over before it: what the batch wrote is beside its files."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))

    def interrupted():
        world.clock.now += 5
        world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 9))
        world.clock.now += 5
        arrays = [pa.array([""]), pa.array([2], INT)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema_of(a=INT))

    world.driver().run(micro_batch(1), world.job(interrupted(), schema=schema_of(a=INT)))
    refused(world, micro_batch(2), schema_of(b=INT), "'a' is gone")
    assert world.rows() == ['{"a":2}', '{"b":9}']


def test_an_overwrite_has_replaced_an_epoch_that_was_complete_when_it_looked():
    """Not one that is decided and to be published yet, whichever driver does that."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.driver().run(micro_batch(1), job_of(world, schema_of(a=INT), 2))
    world.store().delete("_filesink/uid-u/000000000001.complete")
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 9))
    assert world.ledger(EXCLUSIVE).head().record.replaces == {"uid-u": 0}
    assert world.driver().recover() is not None
    refused(world, micro_batch(2), schema_of(b=INT), "'a' is gone")


def test_what_was_taken_back_since_an_overwrite_does_not_count():
    """The batch is written again in the columns that it had, which followed the overwrite's."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 2))
    head = world.ledger().head()
    for slot, cause in ((1, micro_batch(1)), (2, TakenBack(slot=1))):
        world.ledger().decide(replace(head.record, slot=slot, nonce=str(slot), cause=cause))
        world.ledger().complete(world.ledger().read(slot))
    refused(world, micro_batch(1), schema_of(c=INT), "'b' is gone")
    world.driver().run(micro_batch(1), job_of(world, schema_of(b=INT), 3))


def test_an_overwrite_notes_nothing_of_batch_writes():
    """Their chains are many and do not go on; a stream that has not written yet has no slot."""
    world = json_world()
    world.driver("batch-0").run(BatchWrite(), job_of(world, schema_of(a=INT), 1))
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 9))
    assert world.ledger(EXCLUSIVE).head().record.replaces == {}


def test_what_a_stream_still_holds_is_not_replaced():
    """Its open part is published later, beside the files of the overwrite."""
    world = json_world(policy=keep_open())
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), job_of(world, schema_of(b=INT), 2))
    refused(world, micro_batch(1), schema_of(b=INT), "'a' is gone")


def test_a_stream_follows_the_newest_of_several_writes_that_have_replaced_its_files():
    """What is there is what the last of them has left, and not the first."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    for mode, schema in (
        (SaveMode.OVERWRITE, schema_of(b=INT)),
        (SaveMode.OVERWRITE_PARTITIONS, schema_of(b=LONG, c=INT)),
    ):
        world.driver(EXCLUSIVE).run(BatchWrite(mode=mode), job_of(world, schema, 2))
    refused(world, micro_batch(1), schema_of(b=INT), "'b' was int64")
    world.driver().run(micro_batch(1), job_of(world, schema_of(b=LONG, c=INT), 3))


def test_a_stream_goes_on_after_an_overwrite_that_noted_no_columns():
    """An earlier release has replaced its files and written none down: they are not known, not damaged."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    cause = BatchWrite(mode=SaveMode.OVERWRITE)
    world.driver(EXCLUSIVE).run(cause, job_of(world, schema_of(b=INT), 2))
    exclusive = world.ledger(EXCLUSIVE)
    old = replace(exclusive.head().record, schema=EMPTY)
    exclusive.folding.retract(old.slot)
    exclusive.decide(old)
    exclusive.complete(exclusive.read(old.slot))
    world.driver().run(micro_batch(1), job_of(world, schema_of(c=INT), 3))
    assert len(world.rows()) == 2


def test_an_overwrite_of_some_partitions_is_no_new_start():
    """Files of the stream may still be there."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    cause = BatchWrite(mode=SaveMode.OVERWRITE_PARTITIONS)
    world.driver(EXCLUSIVE).run(cause, job_of(world, schema_of(b=INT), 2))
    refused(world, micro_batch(1), schema_of(b=INT), "'a' is gone")


def test_columns_of_the_path_are_not_compared():
    """What names the bucket is in no file."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    other = pa.schema([("bucket", pa.dictionary(INT, TEXT)), ("a", INT)])
    next_schema(world.tiers(), other, cause=micro_batch(1), head=world.ledger().head(), ledger=world.ledger())


DAY, COUNTRY = pa.field("day", TEXT), pa.field("country", TEXT)
PARTITIONED = pa.schema([("id", LONG), DAY, COUNTRY])
FLAT = BucketAssigner.base_path_bucket_assigner()
by = BucketAssigner.partition_bucket_assigner


def noted(assigner, *, after=EMPTY, cause=None, schema=PARTITIONED):
    """What is put on record of a batch of a sink with ``assigner``, if ``after`` is there."""
    plan = replace(plan_of(Encoder.json_lines()), assigner=assigner)
    return following(after, schema, sink=World(plan=plan).tiers(), cause=cause)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (FLAT, by("day"), "in no partitions, .* in partitions by 'day'"),
        (by("day"), FLAT, "in partitions by 'day', .* in no partitions"),
        (by("day"), by("day", "country"), "by 'day', .* by 'day', 'country'"),
        (by("day", "country"), by("country", "day"), "by 'day', 'country', .* by 'country', 'day'"),
        (FLAT, by("day").with_columns_in_file(), "in no partitions"),
    ],
)
def test_other_partition_columns_are_refused(before, after, message):
    """Of files in both Spark would read none, or some; what replaces everything may have any."""
    with pytest.raises(SchemaError, match=message) as caught:
        noted(after, after=noted(before))
    assert caught.value.code == "SCHEMA_CHANGE"
    assert noted(after, after=noted(before), cause=BatchWrite(mode=SaveMode.OVERWRITE)) == noted(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FLAT, FLAT),
        (by("day", "country"), by("DAY", "country")),
        (BucketAssigner.date_time_bucket_assigner("'day='yyyy-MM-dd"), by("day")),
        (by("day"), BucketAssigner.expression_bucket_assigner("concat('day=', day)")),
    ],
)
def test_partition_columns_that_are_the_same_or_not_known_go_on(before, after):
    """What other assigners put into a path only their users know."""
    grown = PARTITIONED.append(pa.field("more", TEXT))
    assert noted(after, after=noted(before), schema=grown) == noted(after, schema=grown)


def test_partition_columns_of_a_release_that_noted_none_go_on():
    """Nothing is known of them, and from now on they are."""
    old = Section(1, PARTITIONED.serialize().to_pybytes())
    assert noted(by("day"), after=old) == noted(by("day")) != old


def test_partition_columns_are_compared_as_spark_compares_names():
    """``Day=`` and ``day=`` are one column."""
    other = PARTITIONED.set(1, pa.field("Day", TEXT))
    noted(by("day"), after=noted(by("day")), schema=other)


def test_csv_keeps_the_order():
    """Readers of CSV go by position: a new column in the middle would move the others."""
    world = World(plan=plan_of(Encoder.csv()))
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT, b=INT), 1))
    refused(world, micro_batch(1), schema_of(a=INT, c=INT, b=INT), "column 2 was 'b' and is 'c'")
    world.driver().run(micro_batch(1), job_of(world, schema_of(a=INT, b=INT, c=INT), 2))
    assert world.rows() == ["1,1", "2,2,2"]


class One(RowEncoder):
    def encode(self, row):
        del row
        return b"one\n"


@pytest.mark.parametrize("encoder", [Encoder.simple_string_encoder(), PerRowEncoder(One())])
def test_formats_whose_files_have_no_columns_take_any(encoder):
    """A line of text is a line; and what a user's encoder writes only the user knows."""
    world = World(plan=plan_of(encoder))
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    world.driver().run(micro_batch(1), job_of(world, schema_of(b=TEXT), 2))
    assert len(world.rows()) == 2


def test_tasks_that_nobody_told_find_out_themselves():
    """Where the engine runs the tasks by itself, each is refused its slot, and so is the commit."""
    world = json_world()
    world.driver().run(micro_batch(0), job_of(world, schema_of(a=INT), 1))
    sink, ledger, other = world.tiers(), world.ledger(), schema_of(b=INT)
    with pytest.raises(SchemaError, match="'a' is gone"):
        slot_for(micro_batch(1), ledger, sink=sink, schema=other, options=EpochOptions())
    ports = Ports(clock=world.clock, ids=world.ids, runner=SerialRunner())
    epochs = CollectedEpochs(sink, ledger, ports=ports, options=EpochOptions())
    with pytest.raises(SchemaError, match="'a' is gone"):
        epochs.commit(micro_batch(1), [], slot=1, schema=other)
    wider = schema_of(a=LONG)
    assert slot_for(micro_batch(1), ledger, sink=sink, schema=wider, options=EpochOptions()) == 1
    epochs.commit(micro_batch(1), [], slot=1, schema=wider)
    refused(world, micro_batch(2), schema_of(a=INT), "'a' was int64")


def following(section, schema, *, sink=None, cause=None):
    """What is said of ``schema`` after a record with ``section``."""
    world = World()
    world.driver().run(micro_batch(0), world.job())
    head = world.ledger().head()
    record = replace(head.record, schema=section)
    head = replace(head, record=EpochRecord.from_bytes(record.to_bytes(), where="here"))
    sink = sink or json_world().tiers()
    return next_schema(sink, schema, cause=cause or micro_batch(1), head=head, ledger=world.ledger())


def test_columns_of_the_first_release_are_read():
    """The checked-in bytes say the same columns for ever, whatever Arrow's newest form is."""
    golden = Section(1, (GOLDEN / "columns-1").read_bytes())
    following(golden, COLUMNS.append(pa.field("more", TEXT)))
    with pytest.raises(SchemaError, match=r"'place' was struct<lat: double>"):
        following(golden, COLUMNS.set(4, pa.field("place", TEXT)))


def test_partition_columns_of_the_first_release_that_noted_them_are_read():
    """The checked-in bytes say for ever that there was one, the day."""
    golden = Section(1, (GOLDEN / "columns-1-partitions").read_bytes())
    noted(by("day"), after=golden)
    with pytest.raises(SchemaError, match="in partitions by 'day'"):
        noted(FLAT, after=golden)


@pytest.mark.parametrize("note", [b"{", b"[1]", b'"day"'])
def test_damaged_partition_columns_are_damage(note):
    """As the columns themselves."""
    damaged = PARTITIONED.with_metadata({b"filesink.partition_columns": note})
    with pytest.raises(StateCorruptError, match="partition columns"):
        noted(FLAT, after=Section(1, damaged.serialize().to_pybytes()))


def test_damaged_columns_are_damage():
    """Neither a crash nor a guess."""
    with pytest.raises(StateCorruptError):
        following(Section(1, b"no columns"), SCHEMA)
    with pytest.raises(InternalError):
        following(Section(2, b"columns of a newer release"), SCHEMA)


def test_comments_and_marks_of_fields_are_not_kept():
    """What somebody has said about a column is not written to the ledger."""
    noted = pa.schema([pa.field("a", INT, metadata={"comment": "a secret"})], {"more": "secrets"})
    assert b"secret" not in following(EMPTY, noted).data
