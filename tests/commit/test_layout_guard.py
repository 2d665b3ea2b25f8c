"""What lies below a base path stays one table: another layout is refused, whoever wrote what is there."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.commit.external_epochs import CollectedEpochs
from filesink.commit.layout_guard import OnOtherLayout
from filesink.commit.replay import EpochOptions
from filesink.commit.task import WriteTask
from filesink.errors import ConfigError, SchemaError, StateCorruptError, StorageError
from filesink.ledger.identity import batch_write
from filesink.ledger.layouts import Layouts, Noted
from filesink.naming import OutputFileConfig
from filesink.parts.file_format import BulkFormat
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from formats import ParquetWriterFactory
from formats.encoders import Encoder
from tests.fakes import World, micro_batch, plan_of

DECIMAL = pa.decimal128(10, 2)
BUSY = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))


class Crash(BaseException):
    """The driver is gone."""


def parquet(**names):
    """A world of Parquet files."""
    return World(plan=plan_of(BulkFormat(ParquetWriterFactory()), names=OutputFileConfig(**names)))


def beside(world, form=None, *, uid="other", **names):
    """Another sink below the same base path; of the same format, unless said otherwise."""
    plan = world.plan if form is None else plan_of(form)
    other = World(plan=replace(plan, names=OutputFileConfig(**names)), uid=uid)
    other.files, other.clock, other.ids = world.files, world.clock, world.ids
    return other


def partitioned(world, *columns):
    """The same sink with directories of Hive partitions, or with none."""
    assigner = (
        BucketAssigner.partition_bucket_assigner(*columns)
        if columns
        else BucketAssigner.base_path_bucket_assigner()
    )
    world.plan = replace(world.plan, assigner=assigner)
    return world


def job(world, kind=None, **columns):
    """One record: ``bucket``, and ``value`` of ``kind`` or the given columns."""
    types = {"bucket": pa.string(), **(columns or {"value": kind or pa.string()})}
    batch = pa.RecordBatch.from_arrays(
        [pa.array([""] if name == "bucket" else [None], of) for name, of in types.items()],
        names=list(types),
    )
    return world.job(batch, schema=batch.schema)


def write(world, kind=None, mode="append", txn_id="", **columns):
    """A batch write of a driver that starts now."""
    sink_id, cause = batch_write(SaveMode(mode), world.uid, txn_id, world.ids)
    return world.driver(sink_id).run(cause, job(world, kind, **columns))


def refused(world, *args, **kwargs):
    """The message of a write that is refused before a task runs, and changes nothing."""
    before = dict(world.files.files)
    with pytest.raises(SchemaError) as raised:
        write(world, *args, **kwargs)
    assert raised.value.code == "OTHER_LAYOUT"
    assert dict(world.files.files) == before
    return raised.value.message


def noted(world) -> Noted:
    """What counts now."""
    return Layouts(world.store()).newest()


def crash_at(world, operation, end=""):
    """The driver dies before a call of a kind on a path that ends so."""

    def fault(name, path):
        if name == operation and path.endswith(end):
            return Fault(moment=Moment.BEFORE, error=Crash())
        return None

    world.fault = fault


def at_peace(world):
    """Nothing fails any more."""
    world.fault = lambda _operation, _path: None


# --- what is another layout


def test_another_format_is_refused():
    """CSV into a path of Parquet; the message names both and the ways out."""
    world = parquet()
    write(world)
    message = refused(beside(world, Encoder.csv()))
    assert "are parquet, and those of this write would be csv" in message
    assert "mode='overwrite'" in message
    assert ".on_other_layout('allow')" in message


DAY, MOMENT = pa.date32(), pa.timestamp("us", "UTC")


@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
@pytest.mark.parametrize(
    ("before", "after"), [(DAY, MOMENT), (MOMENT, DAY), (pa.int64(), pa.float64()), (pa.int32(), DECIMAL)]
)
def test_a_partition_is_written_in_one_way(before, after, mode):
    """A rerun whose day is a timestamp now would not replace the day, but stand beside it."""
    world = partitioned(parquet(), "bucket", "day")
    write(world, value=pa.string(), day=before)
    message = refused(world, mode=mode, value=pa.string(), day=after)
    assert "'day' as a" in message
    write(world, mode="overwrite", value=pa.string(), day=after)
    assert noted(world).layouts[0].spelled[1] != ""
    refused(world, value=pa.string(), day=before)


def test_a_partition_may_be_text():
    """Nobody knows what it looks like, and whole numbers of all widths look the same."""
    world = partitioned(parquet(), "bucket", "day")
    for kind in (pa.string(), DAY, pa.string()):
        write(world, value=pa.string(), day=kind)
    assert noted(world).layouts[0].spelled == ("", "a date")
    other = partitioned(parquet(), "bucket", "n")
    for kind in (pa.int8(), pa.int64(), pa.decimal128(5)):
        write(other, value=pa.string(), n=kind)


def test_a_layout_of_an_older_driver_learns_how_partitions_are_written():
    """It says nothing of them, so the next write may have any, and is noted."""
    world = partitioned(parquet(), "bucket", "day")
    write(world, value=pa.string(), day=DAY)
    layouts = Layouts(world.store())
    seen = layouts.newest()
    assert layouts.put(seen.number + 1, [replace(one, spelled=()) for one in seen.layouts])
    write(world, value=pa.string(), day=MOMENT)
    assert noted(world).layouts[0].spelled == ("", "a timestamp")


@pytest.mark.parametrize("mode", ["append", "overwrite_partitions"])
def test_another_suffix_is_refused(mode):
    """Who reads ``*.parquet`` would leave out what ends with ``.pq``."""
    world = parquet()
    write(world)
    assert "'.parquet'" in refused(beside(world, part_suffix=".pq"), mode=mode)
    write(beside(world, part_suffix=".x.parquet"), mode=mode)


@pytest.mark.parametrize(("before", "after"), [(["a"], []), ([], ["a"]), (["a"], ["b"]), (["a"], ["a", "b"])])
def test_other_partition_columns_are_refused(before, after):
    """Spark refuses to read a directory with several kinds, or leaves some out."""
    columns = {"a": pa.string(), "b": pa.string(), "c": pa.string()}
    world = partitioned(parquet(), *before)
    write(world, **columns)
    assert "lie in" in refused(partitioned(beside(world), *after), **columns)


def test_partition_columns_are_compared_regardless_of_case():
    """As Spark does; and what only the user knows fits anything."""
    world = parquet()
    write(world, a=pa.string(), b=pa.string())
    write(partitioned(beside(world), "a"), a=pa.string(), b=pa.string())
    write(partitioned(beside(world), "A"), A=pa.string(), b=pa.string())
    refused(partitioned(beside(world), "b"), a=pa.string(), b=pa.string())


def test_another_type_is_refused_by_every_way_in():
    """STRING lands beside DECIMAL neither by another uid, nor by a txn_id, nor without any."""
    world = parquet()
    write(world, DECIMAL)
    assert "column 'value' is decimal128(10, 2)" in refused(beside(world))
    assert "column 'VALUE'" not in refused(beside(world), VALUE=pa.string())
    refused(beside(world, uid=None))
    refused(world, txn_id="day")
    stream = beside(world, uid="stream")
    with pytest.raises(SchemaError, match="OTHER_LAYOUT"):
        stream.driver().run(micro_batch(0), job(stream))


def test_what_tasks_have_written_already_is_refused_before_it_is_visible():
    """Where Spark runs the tasks by itself, it is the commit that asks."""
    world = parquet()
    write(world)
    before = world.visible()
    other = beside(world, Encoder.csv())
    task = WriteTask(
        sink=other.tiers(), sink_id=other.sink_id, slot=0, driver_ms=0, time_zone="UTC", states={}
    )
    one = job(other)
    ports = Ports(clock=other.clock, ids=other.ids, runner=SerialRunner())
    epochs = CollectedEpochs(other.tiers(), other.ledger(), ports=ports, options=EpochOptions())
    with pytest.raises(SchemaError, match="OTHER_LAYOUT"):
        epochs.commit(micro_batch(0), one.write(task.run), slot=0, schema=one.schema)
    assert world.contents() == before


# --- what is not


def test_columns_come_and_types_widen():
    """Columns that one side lacks are fine; a type that holds all values of the other stands for both."""
    world = parquet()
    write(world, pa.int32())
    write(beside(world), n=pa.string())
    write(beside(world), pa.int64())
    write(world, pa.int32(), txn_id="t")  # its own are whole in the wider one
    (layout,) = noted(world).layouts
    assert layout.columns == pa.schema([("value", pa.int64()), ("n", pa.string())])
    refused(beside(world), n=pa.int32())


def test_what_changes_nothing_puts_nothing():
    """A write costs a look; numbers go up only with what is new."""
    world = parquet()
    for _ in range(3):
        write(world)
    assert noted(world).number == 0


def test_micro_batches_cost_nothing():
    """Only the first epoch of a run looks, and one with other columns."""
    world = parquet()
    looks = []
    world.fault = lambda _operation, path: (
        looks.append(path) if path.endswith(("_layout", ".layout")) else None
    )
    driver = world.driver()
    driver.run(micro_batch(0), job(world))
    looks.clear()
    driver.run(micro_batch(1), job(world))
    assert looks == []
    driver.run(micro_batch(2), job(world, value=pa.string(), more=pa.string()))
    assert looks
    assert noted(world).number == 1


def test_allow_writes_beside_and_changes_nothing():
    """Who means it may; the next one is refused as before."""
    world = parquet()
    write(world)
    other, tiers = beside(world, Encoder.csv()), World.tiers
    allowed = replace(tiers(other), on_other_layout=OnOtherLayout.ALLOW)
    other.tiers = lambda: allowed
    write(other)
    assert sorted(path.rpartition(".")[2] for path in world.visible()) == ["csv", "parquet"]
    assert noted(world).number == 0
    refused(beside(world, Encoder.csv()))
    write(world)


def test_a_path_without_any_file_begins_anew():
    """Also after files were removed by hand; but not beside what others hold, hidden."""
    world = parquet()
    write(world)
    for path in world.visible():
        del world.files.files[path]
    csv = beside(world, Encoder.csv())
    write(csv, mode="error_if_data_exists")
    refused(world)
    with pytest.raises(ConfigError, match="DATA_EXISTS"):
        write(world, mode="error_if_data_exists")


# --- two at once


@pytest.mark.parametrize("fails", [False, True])
def test_of_two_first_writers_one_is_refused(fails):
    """Both have seen an empty path; who puts its layout second finds the other's, and decides nothing."""
    world = parquet()
    other = beside(world, Encoder.csv())

    def first(operation, path):
        if operation == "put_if_absent" and path.endswith(".layout"):
            at_peace(other)
            write(world)
            return BUSY if fails else None
        return None

    other.fault = first
    with pytest.raises(SchemaError, match="OTHER_LAYOUT"):
        write(other)
    assert [path.rpartition(".")[2] for path in world.contents()] == ["parquet"]


def test_of_two_that_add_columns_both_stay():
    """Who finds the number taken adds its own to what stands there."""
    world = parquet()
    write(world)
    other = beside(world)

    def first(operation, path):
        if operation == "put_if_absent" and path.endswith("1.layout"):
            at_peace(other)
            write(world, a=pa.string())

    other.fault = first
    write(other, b=pa.string())
    assert noted(world).layouts[0].columns.names == ["value", "a", "b"]


def test_a_batch_looks_again_before_it_decides():
    """A job runs for hours, and what is there may have been replaced meanwhile."""
    world = parquet()
    write(world)
    late = job(world)

    def tasks(task, inner=late.write):
        results = inner(task)
        write(beside(world, Encoder.csv()), mode="overwrite")
        return results

    late.write = tasks
    sink_id, cause = batch_write(SaveMode.APPEND, "u", "", world.ids)
    # While nobody knows of the overwrite being complete but by its chain, that is asked.
    with pytest.raises(SchemaError, match="OTHER_LAYOUT"):
        world.driver(sink_id).run(cause, late)
    assert [path.rpartition(".")[2] for path in world.contents()] == ["csv"]


# --- overwriting


def test_an_overwrite_begins_anew():
    """Afterwards the new layout counts, and the old one is refused."""
    world = parquet()
    write(world, DECIMAL)
    csv = beside(world, Encoder.csv())
    write(csv, mode="overwrite")
    refused(world, DECIMAL)
    write(beside(csv))
    assert [(one.format, one.by) for one in noted(world).layouts] == [("csv", "")]
    for _ in range(2):
        write(csv, mode="overwrite")
    assert noted(world).number == 2  # one layout after the other; the same again is none


def test_an_overwrite_forgets_columns():
    """No file has them any more, so that they may come back with another type."""
    world = parquet()
    write(world, value=DECIMAL, more=DECIMAL)
    write(beside(world), more=pa.string(), mode="overwrite")
    write(beside(world), more=pa.string(), value=pa.string())


def test_an_overwrite_that_fails_changes_nothing():
    """What was there is still there, and its layout counts, not that of the failed write."""
    world = parquet()
    write(world)
    csv = beside(world, Encoder.csv())
    crash_at(csv, "put_if_absent", ".record")
    with pytest.raises(Crash):
        write(csv, mode="overwrite")
    at_peace(csv)
    refused(beside(world, Encoder.csv(), uid="third"))
    write(world)
    write(csv, mode="overwrite")
    write(csv)


def test_an_overwrite_that_is_half_done_leaves_both():
    """It is decided: its driver may be about to publish, and the old files are still there."""
    world = parquet()
    write(world)
    csv = beside(world, Encoder.csv())
    crash_at(csv, "publish")
    with pytest.raises(Crash):
        write(csv, mode="overwrite")
    at_peace(csv)
    write(csv)
    write(world)
    refused(beside(world, Encoder.json_lines()))


def test_a_first_overwrite_that_fails_is_no_layout():
    """Nothing was there, and nothing is."""
    world = parquet()
    crash_at(world, "put_if_absent", ".record")
    with pytest.raises(Crash):
        write(world, mode="overwrite")
    at_peace(world)
    write(beside(world, Encoder.csv()))
    refused(world)


def test_failed_overwrites_are_forgotten():
    """The list does not grow with them, whatever becomes of the chain."""
    world = parquet()
    write(world)
    for encoder in (Encoder.csv(), Encoder.json_lines(), Encoder.csv()):
        other = beside(world, encoder)
        crash_at(other, "put_if_absent", ".record")
        with pytest.raises(Crash):
            write(other, mode="overwrite")
    assert len(noted(world).layouts) == 3
    for _ in range(28):
        write(world, mode="overwrite_partitions")
    assert len(noted(world).layouts) == 1


# --- what is durable


def test_a_damaged_layout_is_named():
    """It is not taken for an absent one; what to restore or remove is said."""
    world = parquet()
    write(world)
    path = "_filesink/_layout/000000.layout"
    content = world.files.files[path].content
    del world.files.files[path]
    world.files.make(path, content[:-1] + b"?")
    with pytest.raises(StateCorruptError, match=path):
        write(world)


def test_half_put_names_are_swept():
    """A driver has died while it put there; another one may still be putting the next number."""
    world = parquet()
    write(world)
    for name in (".000000.layout.put.x", ".000001.layout.put.y"):
        world.files.make(f"_filesink/_layout/{name}", b"half")
    write(world)
    assert [path for path in world.files.files if "/." in path] == ["_filesink/_layout/.000001.layout.put.y"]
    write(world, more=pa.string())
    assert not [path for path in world.files.files if "/." in path]


def test_half_put_names_of_the_next_number_are_swept_by_age():
    """Nobody may ever put that number: then only age tells."""
    world = parquet()
    write(world)
    path = "_filesink/_layout/.000001.layout.put.y"
    world.files.make(path, b"half")
    assert world.maintenance().plan_sweep(10).files == ()
    world.clock.now += 60_000
    assert [file.path for file in world.maintenance().sweep(10).files] == [path]


def test_a_directory_of_an_earlier_release_takes_the_first_layout():
    """Nobody has noted what is there, so the first one to write says."""
    world = parquet()
    write(world)
    for path in [path for path in world.files.files if path.endswith(".layout")]:
        del world.files.files[path]
    write(world)
    refused(beside(world, Encoder.csv()))
