"""The writer of one task: routing, names, lanes, limits."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from filesink.buckets.assigner import BucketAssigner
from filesink.commit.committer import FileCommitter
from filesink.errors import BucketError, ConfigError, InternalError, StorageError
from filesink.naming import OutputFileConfig, parse_hidden, sink_tag
from filesink.parts.bucket import Closed, WriterBucket
from filesink.parts.committables import DiscardFile, PendingFile
from filesink.parts.file_format import BulkFormat
from filesink.parts.plan import WriterLimits
from filesink.parts.rolling import RollingPolicy
from filesink.parts.writer import FileWriter
from filesink.storage.faulty import Fault, Moment
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from filesink.storage.staged import HiddenObject
from filesink.system import SystemIds
from formats import ParquetWriterFactory
from formats.api import BulkWriter, BulkWriterFactory
from formats.encoders import Encoder
from tests.fakes import SettableClock, World, keep_open, plan_of, records
from tests.storage.fake_objects import FakeObjects

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def write(world, writer, *batches):
    """Write batches and end the epoch."""
    for batch in batches:
        writer.write(batch, world.context())
    return writer.prepare_commit(0)


def test_each_bucket_gets_its_records():
    """Flink's testPreCommit: five records for three buckets make three committables, which are counted."""
    world = World()
    batch = pa.RecordBatch.from_pydict({"bucket": [*"aabbc"], "value": [*"12345"]})
    context = world.context()
    writer = FileWriter(world.plan, world.store(), context)
    writer.write(batch, context)
    files = writer.prepare_commit(0)
    contents = {file.bucket: world.files.files[file.staged.path].content for file in files}
    assert contents == {"a": b"1\n2\n", "b": b"3\n4\n", "c": b"5\n"}
    assert [file.rows for file in files] == [2, 2, 1]
    assert context.metrics.values == {"buckets": 3, "files_written": 3, "bytes_written": 10}


class ByMoment(BucketAssigner):
    """The value of a record, and what the assigner is told."""

    def assign(self, batch, context):
        values = batch.column("value").to_pylist()
        return pa.array([f"{value} {context.processing_time_ms} {context.time_zone}" for value in values])


def test_buckets_are_by_the_time_of_the_driver_and_the_zone_of_the_session():
    """Of records that were gathered until the end of the epoch, too."""
    world = World(plan=replace(plan_of(), assigner=ByMoment()))
    context = replace(world.context(), time_zone="+09:00")
    writer = FileWriter(world.plan, world.store(), context)
    for world.clock.now, values in ((5, "ab"), (6, "c")):
        writer.write(records(*values), context)
    world.clock.now = 7
    files = writer.prepare_commit(0)
    assert [file.bucket for file in files] == ["a 5 +09:00", "b 5 +09:00", "c 7 +09:00"]


def test_a_late_record_reopens_its_bucket():
    """A bucket whose part was closed long ago takes records again, in a part of its own."""
    world = World()
    batches = [records("1", bucket="old"), records("2", bucket="new"), records("3", bucket="old")]
    world.plan = plan_of(policy=RollingPolicy.on_checkpoint_rolling_policy(max_rows=1))
    files = write(world, world.writer(), *batches)
    assert sorted(file.bucket for file in files) == ["new", "old", "old"]


def test_an_empty_bucket_id_is_the_base_path():
    """Files of bucket '' lie directly below the base."""
    world = World()
    (file,) = write(world, world.writer(), records("1"))
    assert "/" not in file.target


def test_names():
    """Finished and hidden names are those that the design promises; only the finished end as data."""
    names = OutputFileConfig(part_prefix="prefix", part_suffix=".ext")
    world = World(plan=plan_of(names=names))
    (file,) = write(world, world.writer(epoch=0), records("1", bucket="b"))
    assert re.fullmatch(rf"b/prefix-{UUID}-0\.ext", file.target)
    hidden = parse_hidden(file.staged.path.removeprefix("b/"))
    tag = sink_tag("uid-u")
    assert (hidden.tag, hidden.slot) == (tag, 0)
    assert file.target.startswith(f"b/prefix-{tag}-")
    assert not file.staged.path.endswith(".ext")


def test_the_extension_is_the_format_s():
    """Without a suffix of the user's the file ends as its format does; "" ends it at the counter."""
    for suffix, expected in ((None, ".json"), ("", "-0"), (".txt", ".txt")):
        names = OutputFileConfig(part_suffix=suffix)
        world = World(plan=plan_of(Encoder.json_lines(), names=names))
        (file,) = write(world, world.writer(), records("1"))
        assert file.target.endswith(expected)


def test_nothing_is_visible_before_publication():
    """While parts are open and when they are pending, readers see no file."""
    world = World()
    writer = world.writer()
    writer.write(records("x" * 300_000), world.context())
    assert len(world.contents()) == 1
    assert world.visible() == {}
    writer.prepare_commit(0)
    assert world.visible() == {}


def test_two_attempts_share_no_name():
    """Attempts of one task for one slot, at the same time, never touch the same file."""
    world = World()
    first, second = world.writer(), world.writer()
    files = [*write(world, first, records("1")), *write(world, second, records("1"))]
    assert len({file.staged.path for file in files}) == 2
    assert len({file.target for file in files}) == 2


def test_abort_removes_own_files_only():
    """An attempt that fails removes what it made, closed parts too, and nothing of its twin."""
    world = World(plan=plan_of(policy=RollingPolicy.on_checkpoint_rolling_policy(max_rows=1)))
    (twin,) = write(world, world.writer(), records("twin"))
    writer = world.writer()
    writer.write(records("1", "2", "3", bucket="a"), world.context())
    writer.abort_prepare()
    writer.abort_prepare()
    writer.close()
    assert world.hidden() == [twin.staged.path]


def _one_discard_fails(world):
    """The first file that is discarded stays, as under a directory that became read-only."""
    failed = []

    def fault(operation, path):
        if operation != "discard" or (failed and failed != [path]):
            return None
        failed[:] = [path]
        return Fault(moment=Moment.BEFORE, error=StorageError("read-only", code="READ_ONLY"))

    world.fault = fault
    return failed


def test_a_file_that_cannot_be_removed_keeps_no_other():
    """An attempt is given up as far as it can be, and its own error is the one that is told."""
    world = World(plan=plan_of(policy=RollingPolicy.on_checkpoint_rolling_policy(max_rows=1)))
    writer = world.writer()
    writer.write(records("1", "2", "3", bucket="a"), world.context())
    left = _one_discard_fails(world)
    writer.abort_prepare()
    assert world.hidden() == left != []


def test_a_full_disk_is_one_error(monkeypatch, capfd):
    """However many Parquet files are open: dropped, they are not ended, and nothing is printed.

    And if no file can be removed: without descriptors nothing can.
    """
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    plan = replace(plan_of(), policy=RollingPolicy.on_checkpoint_rolling_policy())
    world = World(plan=replace(plan, format=BulkFormat(ParquetWriterFactory(row_group_rows=1))))
    writes = []

    def fault(operation, path):
        writes.extend([path] if operation == "write" else [])
        fails = operation == "discard" or len(writes) > 150
        full = StorageError("no space left", code="NO_SPACE")
        return Fault(moment=Moment.BEFORE, error=full) if fails else None

    world.fault = fault
    writer = world.writer()
    with pytest.raises(StorageError) as raised:
        write(world, writer, *(records("1", bucket=f"b{number}") for number in range(200)))
    writer.abort_prepare()
    assert raised.value.code == "NO_SPACE"
    del writer, raised
    gc.collect()
    assert (len(writes), printed) == (151, [])
    assert capfd.readouterr() == ("", "")


def test_three_open_buckets_are_restored():
    """Flink's testSnapshotAndRestore: three open parts go on as three open parts."""
    world = World(plan=plan_of(policy=keep_open()))
    writer = world.writer()
    assert write(world, writer, *(records("1", bucket=bucket) for bucket in "abc")) == []
    state = writer.snapshot_state(0)
    again = world.writer(state)
    assert write(world, again, *(records("2", bucket=bucket) for bucket in "abc")) == []
    groups = {held.group for held in state}
    assert {held.group for held in again.snapshot_state(0)} == groups
    assert len(again.snapshot_state(0)) == 6


def test_two_parts_of_one_bucket_are_never_both_open():
    """Of two open parts of a lane and bucket one is closed as it is."""
    world = World(plan=plan_of(policy=keep_open()))
    states = []
    for value in "12":
        writer = world.writer()
        write(world, writer, records(value))
        states += writer.snapshot_state(0)
    both = world.writer(states)
    assert both.prepare_commit(0) == states[1:]
    assert both.snapshot_state(0) == states[:1]


def test_age_is_looked_at_between_batches():
    """Flink's testOnProcessingTime: a part is closed within its task once it is old enough."""
    policy = keep_open(rollover_interval=10, inactivity_interval=1000)
    world = World(plan=plan_of(policy=policy, check_interval_ms=5))
    world.clock.now = 10
    writer = world.writer()
    for now, bucket in ((10, "b1"), (15, "b2"), (20, "b3")):
        world.clock.now = now
        writer.write(records("x", bucket=bucket), world.context())
    (closed,) = writer.prepare_commit(0)
    assert closed.bucket == "b1"
    assert [held.bucket for held in writer.snapshot_state(0)] == ["b2", "b3"]


def test_age_is_looked_at_when_the_interval_has_passed():
    """At the very millisecond, and not one before."""
    policy = keep_open(rollover_interval=1, inactivity_interval=1000)
    for now, closed in ((4, []), (5, ["b1"])):
        world = World(plan=plan_of(policy=policy, check_interval_ms=5))
        writer = world.writer()
        writer.write(records("x", bucket="b1"), world.context())
        world.clock.now = now
        writer.write(records("x", bucket="b2"), world.context())
        assert [held.bucket for held in writer.prepare_commit(0)] == closed


def test_a_writer_serves_one_epoch():
    """Another slot than that of its context is a bug of the engine."""
    with pytest.raises(InternalError):
        World().writer(epoch=1).prepare_commit(2)


@pytest.mark.parametrize("bucket", ["..", "a/../b", "/etc", ".hidden", "_x", "a\0b", "x" * 256, None])
def test_unusable_buckets_write_nothing(bucket):
    """A bucket id that no directory can have fails the task, and the path is never touched."""
    world = World()
    writer = world.writer()
    with pytest.raises(BucketError):
        writer.write(records("1", bucket=bucket).cast(records("1").schema), world.context())
    writer.abort_prepare()
    assert world.contents() == {}


@pytest.mark.parametrize("limits", [{"memory": 0}, {"open_files": 0}, {"memory": -1}])
def test_limits_are_positive(limits):
    """A writer that may hold nothing cannot write."""
    with pytest.raises(ConfigError):
        WriterLimits(**limits)


def test_limits_of_a_task():
    """128 MiB of records, and as many files as the advice about descriptors says."""
    assert WriterLimits() == WriterLimits(memory=128 << 20, open_files=400)


def on_objects(objects, form):
    """A world on an object store."""
    return World(
        plan=plan_of(form),
        open_store=lambda: S3Store(objects, "", options=S3Options(), clock=SettableClock(), ids=SystemIds()),
    )


def test_what_may_be_held_is_no_upload_when_its_task_ends():
    """A rule of the bucket may abort uploads: small files that wait to be merged are objects."""
    objects = FakeObjects()
    world = on_objects(objects, BulkFormat(ParquetWriterFactory()))
    world.plan = replace(world.plan, closed=Closed.HELD)
    (waiting,) = write(world, world.writer(), records("1"))
    assert isinstance(waiting.staged, HiddenObject)
    assert (list(objects.objects), objects.uploads) == ([waiting.staged.path], {})


def test_an_object_that_was_copied_to_be_published_is_removed_after_it():
    """Of a part that might have stayed open and did not: its hidden object is named beside its upload."""
    objects = FakeObjects()
    world = on_objects(objects, Encoder.simple_string_encoder())
    committables = write(world, world.writer(), records("1"))
    assert [type(file) for file in committables] == [DiscardFile, PendingFile]
    assert [file.path for file in committables[:1]] == list(objects.objects)
    store = world.store()
    assert FileCommitter(store, store.runner).commit(committables) == []
    assert list(objects.objects) == [committables[1].target]


def test_buffers_stay_within_the_memory_limit():
    """Over its memory a writer writes out the largest buffers; every record is still there."""
    world = World(plan=plan_of(limits=WriterLimits(memory=10_000)))
    writer = world.writer()
    for number in range(200):
        writer.write(records("x" * 99, bucket=f"b{number % 50}"), world.context())
        waiting = sum(bucket.writer.buffered for bucket in writer._buckets.values())
        assert waiting <= 10_000
    files = writer.prepare_commit(0)
    assert sum(file.rows for file in files) == 200
    assert sum(len(world.files.files[file.staged.path].content) for file in files) == 200 * 100


@pytest.mark.parametrize("row_format", [True, False])
def test_records_of_many_buckets_count_wherever_they_wait(row_format):
    """Records in groups and in buffers together stay within the memory; each bucket's keep their order."""
    form = Encoder.simple_string_encoder() if row_format else BulkFormat(HoarderFactory())
    world = World(plan=plan_of(form, limits=WriterLimits(memory=100_000)))
    writer, most_held = world.writer(), 0
    for number in range(6):
        writer.write(records("x" * 9_999, bucket=f"large{number}"), world.context())
    for number in range(100):
        batch = pa.RecordBatch.from_pydict(
            {"bucket": [f"b{row * 7 % 300}" for row in range(300)], "value": [f"{number:050}"] * 300}
        )
        writer.write(batch, world.context())
        held = writer._router.held
        most_held = max(most_held, held)
        if row_format:
            buffers = (bucket.writer.buffered for bucket in writer._buckets.values() if bucket.writer)
            assert held + sum(buffers) <= 100_000
    files = writer.prepare_commit(0)
    assert 50_000 < most_held <= 100_000
    assert sum(file.rows for file in files) == 100 * 300 + 6
    if row_format:
        contents = [world.files.files[file.staged.path].content for file in files]
        assert contents[:6] == [b"x" * 9_999 + b"\n"] * 6
        assert contents[6:] == [b"".join(b"%050d\n" % number for number in range(100))] * 300


@pytest.mark.parametrize("row_format", [True, False])
def test_descriptors_stay_within_their_limit(row_format):
    """Over its files a writer ends segments of row parts, and parts of bulk formats; nothing is lost."""
    form = Encoder.simple_string_encoder() if row_format else BulkFormat(ParquetWriterFactory())
    world = World(plan=plan_of(form, limits=WriterLimits(memory=1, open_files=10)))
    writer = world.writer()
    for number in range(100):
        writer.write(records(str(number), bucket=f"b{number % 25}"), world.context())
        open_files = [bucket.writer for bucket in writer._buckets.values() if bucket.writer]
        assert sum(one.is_open for one in open_files) <= 10
    files = writer.prepare_commit(0)
    assert sum(file.rows for file in files) == 100
    assert all(isinstance(file, PendingFile) for file in files) is not row_format


def test_descriptors_stay_within_their_limit_at_the_end(monkeypatch):
    """Records of many buckets that waited until the epoch ends make large files of JSON all at once."""
    form = Encoder.json_lines()
    world = World(plan=plan_of(form, limits=WriterLimits(memory=16 << 20, open_files=10)))
    writer, most = world.writer(), 0
    names = [f"b{number}" for number in range(250)]
    ones = {f"column_{letter * 20}": [1] * 10_000 for letter in "abcdef"}
    batch = pa.RecordBatch.from_pydict({"bucket": names * 40, **ones})
    for _ in range(45):
        writer.write(batch, world.context())
    assert writer._router.held > 5 << 20
    wrote = WriterBucket.write

    def write_and_look(self, piece, now_ms):
        nonlocal most
        wrote(self, piece, now_ms)
        most = max(most, sum(bucket.writer.is_open for bucket in writer._writing()))

    monkeypatch.setattr(WriterBucket, "write", write_and_look)
    files = writer.prepare_commit(0)
    assert sum(file.rows for file in files) == 450_000
    assert 0 < most <= 15  # half the limit may come before it is looked at


class Hoarder(BulkWriter):
    """A user's writer that keeps everything to itself until the end."""

    def __init__(self, output):
        self._output, self._rows = output, 0

    @property
    def buffered_bytes(self):
        return self._rows * 1000

    def write(self, batch):
        self._rows += batch.num_rows

    def flush(self):
        pass

    def finish(self):
        self._output.write(b"x" * self._rows)


class HoarderFactory(BulkWriterFactory):
    """Makes such writers."""

    extension = ".x"

    def create(self, output, schema):
        del schema
        return Hoarder(output)

    def signature(self):
        return "hoarder"


def test_a_writer_that_frees_nothing_is_asked_once():
    """Memory that a user's format does not give back is no reason to ask for it forever."""
    world = World(plan=plan_of(BulkFormat(HoarderFactory()), limits=WriterLimits(memory=1, open_files=4)))
    writer = world.writer()
    for number in range(20):
        writer.write(records(str(number), bucket=f"b{number}"), world.context())
    assert sum(file.rows for file in writer.prepare_commit(0)) == 20


# Peak memory is this program's own: ru_maxrss would count that of the process it was forked from.
MEMORY = """
import re, sys
from pathlib import Path
import numpy as np, pyarrow as pa
from filesink.parts.file_format import BulkFormat
from filesink.storage.open import open_store
from filesink.parts.plan import WriterLimits
from formats import ParquetWriterFactory
from tests.fakes import World, plan_of

base, spread = sys.argv[1], sys.argv[2]
buckets, limit = int(sys.argv[4]), int(sys.argv[5]) << 20
plan = plan_of(BulkFormat(ParquetWriterFactory()), limits=WriterLimits(memory=limit))
world = World(plan=plan, open_store=lambda: open_store(base, {}))
writer, context = world.writer(), world.context()
rng = np.random.default_rng(3)
names = np.array([f"b{number}" for number in range(buckets)])
most = 0
for number in range(int(sys.argv[3])):
    if spread == "even":
        codes = rng.integers(0, buckets, 10_000)
    else:  # most records go to few buckets, and each batch has some for rare ones
        rare = rng.random(10_000) > 0.999
        codes = np.where(rare, rng.integers(0, buckets, 10_000), rng.integers(0, 5, 10_000))
    columns = [pa.array(rng.integers(0, 1 << 62, 10_000)) for _ in range(16)]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array(names[codes])], [*map(str, range(16)), "bucket"])
    writer.write(batch, context)
    buffers = [bucket.writer.buffered for bucket in writer._buckets.values() if bucket.writer]
    most = max(most, sum(buffers) + writer._router.held)
committables = writer.prepare_commit(0)
assert sum(file.rows for file in committables) == 10_000 * (number + 1)
assert most <= limit, most
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())
print(int(peak[1]) // 1024, len(writer._buckets))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")
@pytest.mark.parametrize(
    ("spread", "batches", "buckets", "limit", "most"),
    [
        ("even", 5, 500, 4, 256),
        ("skewed", 15, 2000, 8, 512),
        pytest.param("even", 35, 2000, 32, 512, marks=pytest.mark.nightly),
        pytest.param("skewed", 60, 2000, 32, 512, marks=pytest.mark.nightly),
    ],
)
def test_thousands_of_open_buckets_fit_into_memory(tmp_path, spread, batches, buckets, limit, most):
    """Records of Parquet parts of 16 columns stay within the limit, and the process below ``most``.

    Both are in MiB, and there are more records than the limit.
    """
    root = Path(__file__).parents[2]
    arguments = map(str, (tmp_path, spread, batches, buckets, limit))
    command = [sys.executable, "-c", MEMORY, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    megabytes, opened = map(int, done.stdout.split())
    assert opened == buckets or spread == "skewed"
    assert megabytes < most, megabytes
