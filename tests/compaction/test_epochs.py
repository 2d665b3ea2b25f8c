"""Compaction inside the epoch loop: small files wait, are merged, and each row is there once."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compaction import FileCompactor, FileCompactStrategy, RewritingFileCompactor
from compaction.contract import Rewrite
from compaction.record_wise import RecordWiseFileCompactor
from filesink import CompactionError, ConfigError, FileSink, StateError, StorageError
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.parts.stages.closed_parts import Compaction, Waiting
from filesink.parts.stages.merger import MergeRequest
from filesink.ports import Ports
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.storage.open import open_store
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from formats import CompressWriterFactory, OrcBulkWriterFactory, ParquetWriterFactory
from formats.encoders import Encoder
from formats.parquet.layout import ParquetLayout
from tests.fakes import SCHEMA, World, held, keep_open, micro_batch, plan_of, records
from tests.storage.fake_objects import FakeObjects


def compacting(compactor=None, **strategy):
    """A sink with compaction, by bytes if nothing else is said."""
    return Compaction(
        strategy=FileCompactStrategy(**strategy),
        compactor=compactor or FileCompactor.concat_file_compactor(),
    )


def write(world, driver, number, *values, bucket=""):
    """One micro-batch of lines."""
    return driver.run(micro_batch(number), world.job(records(*values, bucket=bucket)))


def test_small_files_wait_until_they_are_enough():
    """Nothing is visible below the threshold; then one file, and no input is left."""
    world = World(compaction=compacting(size_threshold=6))
    driver = world.driver()
    for number in range(2):
        outcome = write(world, driver, number, str(number))
        assert (world.rows(), outcome.rows) == ([], 1)
    assert len(world.hidden()) == 2
    world.fault = lambda operation, _path: setattr(world.clock, "now", 12) if operation == "concat" else None
    outcome = write(world, driver, 2, "2")
    assert list(world.visible().values()) == [b"0\n1\n2\n"]
    assert world.hidden() == []
    assert (outcome.metrics["merged_files_in"], outcome.metrics["merged_files_out"]) == (3, 1)
    assert (outcome.metrics["merged_bytes_in"], outcome.metrics["merged_bytes_out"]) == (6, 6)
    assert outcome.metrics["merge_ms"] == 12


def test_merging_is_refused_where_nothing_can_be_removed():
    """At the start: what is merged would stay, hidden, for ever. Without compaction there is a warning."""
    objects, ids = FakeObjects(deletes=False), World().ids
    store = S3Store(objects, "", options=S3Options(), clock=World().clock, ids=ids)
    with pytest.raises(ConfigError, match="merges small files") as raised:
        World(compaction=compacting(checkpoints=2), open_store=lambda: store).tiers().prepare(SCHEMA)
    assert raised.value.code == "NO_REMOVAL"
    World(open_store=lambda: store).tiers().prepare(SCHEMA)


def test_sixty_batches_make_one_file():
    """Sixty epochs, one file of all records in their order."""
    world = World(compaction=compacting(checkpoints=60))
    driver = world.driver()
    for number in range(60):
        assert world.visible() == {}
        write(world, driver, number, f"{number:02}")
    assert list(world.visible().values()) == [b"".join(b"%02d\n" % number for number in range(60))]
    assert world.hidden() == []


def test_a_file_that_is_large_enough_is_not_copied():
    """It is published in its own epoch as the task wrote it; the small ones go on waiting."""
    world = World(compaction=compacting(size_threshold=6))
    driver = world.driver()
    write(world, driver, 0, "a")
    inodes = {file.inode for file in world.files.files.values()}
    outcome = write(world, driver, 1, "large enough")
    assert world.rows() == ["large enough"]
    assert "merged_files_in" not in outcome.metrics
    assert len(world.hidden()) == 1
    assert inodes <= {file.inode for file in world.files.files.values()}


def test_a_lone_file_is_promoted_without_a_copy():
    """When only one file waits and its time has come, it is published as it lies."""
    world = World(compaction=compacting(max_age=1000))
    driver = world.driver()
    write(world, driver, 0, "a")
    (before,) = (file.inode for path, file in world.files.files.items() if path in world.hidden())
    assert driver.upkeep() is None
    world.clock.now += 1000
    assert driver.upkeep() is not None
    (path,) = world.visible()
    assert world.files.files[path].inode == before


def test_the_end_of_input_publishes_all():
    """finish() leaves nothing hidden, and a batch write never does."""
    world = World(compaction=compacting(size_threshold="1MiB"))
    driver = world.driver()
    for number, bucket in enumerate(("x", "x", "y")):
        write(world, driver, number, str(number), bucket=bucket)
    driver.finish()
    assert sorted(world.visible().values()) == [b"0\n1\n", b"2\n"]
    assert world.hidden() == []
    assert driver.finish() is None


def test_parts_that_stayed_open_are_merged_with_others():
    """A rolled part of several segments goes into the merge as it is, without being assembled first."""
    world = World(plan=plan_of(policy=keep_open(part_size=5)), compaction=compacting(checkpoints=4))
    driver = world.driver()
    for number in range(3):
        write(world, driver, number, "aa")
    assert len(world.hidden()) == 3
    write(world, driver, 3, "bb", bucket="")
    driver.finish()
    assert world.rows() == ["aa", "aa", "aa", "bb"]
    assert world.hidden() == []


@pytest.mark.parametrize("restart", [False, True])
def test_a_restart_goes_on_with_what_waits(restart):
    """Held files and their age survive a restart, also one with another strategy."""
    world = World(compaction=compacting(size_threshold=100, checkpoints=3))
    driver = world.driver()
    write(world, driver, 0, "a")
    write(world, driver, 1, "b")
    if restart:
        driver = world.driver()
    write(world, driver, 2, "c")
    assert list(world.visible().values()) == [b"a\nb\nc\n"]


def test_a_changed_strategy_applies_to_what_waits():
    """With a smaller threshold what waits is merged by the next upkeep, without new data."""
    world = World(compaction=compacting(size_threshold=100))
    write(world, world.driver(), 0, "a", "b")
    world.compaction = compacting(size_threshold=2)
    assert world.driver().upkeep() is not None
    assert world.rows() == ["a", "b"]


def test_a_changed_compactor_applies_to_what_waits():
    """After a restart it is the new one that makes a file of what the old one has let wait."""
    world = World(compaction=compacting(size_threshold=100))
    write(world, world.driver(), 0, "a", "b")
    world.compaction = compacting(Dashes(), checkpoints=2)
    write(world, world.driver(), 1, "c")
    assert list(world.visible().values()) == [b"-a\nb\n-c\n"]
    write(world, world.driver(), 2, "d")
    world.compaction = compacting(FileCompactor.identical_file_compactor(), checkpoints=2)
    write(world, world.driver(), 3, "e")
    assert sorted(world.visible().values()) == [b"-a\nb\n-c\n", b"d\n", b"e\n"]
    assert world.hidden() == []


_RECORDS = FileCompactor.record_wise_file_compactor()
_BYTES = FileCompactor.concat_file_compactor()
_PARQUET = BulkFormat(ParquetWriterFactory())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((_PARQUET, _RECORDS), (Encoder.json_lines(), _BYTES)),
        ((Encoder.json_lines(), _BYTES), (_PARQUET, _RECORDS)),
        ((Encoder.csv(header=True), _BYTES), (Encoder.csv(header=False), _BYTES)),
        ((_PARQUET, _RECORDS), (BulkFormat(ParquetWriterFactory(compression="zstd")), _RECORDS)),
    ],
    ids=["parquet to lines", "lines to parquet", "other options", "other codec"],
)
def test_after_a_change_of_format_what_waits_is_published_as_it_is(old, new):
    """Nothing is merged by a compactor that was not made for it; what is written since then is."""
    world = World(plan=plan_of(old[0]), compaction=compacting(old[1], size_threshold="1MiB"))
    for number in range(2):
        write(world, world.driver(), number, str(number))
    before = [world.files.files[path].content for path in world.hidden()]
    world.plan, world.compaction = plan_of(new[0]), compacting(new[1], size_threshold="1MiB")
    for number in range(2, 4):
        write(world, world.driver(), number, str(number))
    outcome = world.driver().finish()
    published = list(world.visible().values())
    assert len(published) == 3
    assert all(data in published for data in before)
    assert (outcome.metrics["merged_files_in"], outcome.metrics["merged_files_out"]) == (2, 1)
    assert world.hidden() == []


def test_on_off_on():
    """Each row once through every change; what waits is refused unless it is said what becomes of it."""
    world = World(compaction=compacting(size_threshold=100))
    write(world, world.driver(), 0, "a")
    on, world.compaction = world.compaction, Waiting.REFUSED
    with pytest.raises(StateError, match="disable_compact") as raised:
        write(world, world.driver(), 1, "b")
    assert raised.value.code == "COMPACTION_OFF"
    assert world.rows() == []
    world.compaction = Waiting.PUBLISHED
    write(world, world.driver(), 1, "b")
    assert world.rows() == ["a", "b"]
    world.compaction = on
    driver = world.driver()
    write(world, driver, 2, "c")
    assert world.rows() == ["a", "b"]
    driver.finish()
    assert world.rows() == ["a", "b", "c"]
    assert world.hidden() == []


def test_turned_off_what_waits_is_published_without_data():
    """Upkeep drains what waits."""
    world = World(compaction=compacting(size_threshold=100))
    write(world, world.driver(), 0, "a")
    world.compaction = Waiting.PUBLISHED
    assert world.driver().upkeep() is not None
    assert world.rows() == ["a"]


def test_headers_once_and_delimiters_between():
    """A merged CSV file has one header; a delimiter stands between files, not after the last."""
    csv = plan_of(Encoder.csv(header=True))
    world = World(plan=csv, compaction=compacting(checkpoints=3))
    driver = world.driver()
    for number in range(3):
        write(world, driver, number, str(number))
    assert list(world.visible().values()) == [b"value\n0\n1\n2\n"]
    bars = compacting(FileCompactor.concat_file_compactor(b"|"), checkpoints=2)
    world = World(compaction=bars)
    driver = world.driver()
    for number in range(2):
        write(world, driver, number, "ab"[number])
    assert list(world.visible().values()) == [b"a\n|b\n"]


def test_identical():
    """Files wait for their time and are published one by one, as they were written."""
    world = World(compaction=compacting(FileCompactor.identical_file_compactor(), checkpoints=2))
    driver = world.driver()
    write(world, driver, 0, "a")
    assert world.rows() == []
    outcome = write(world, driver, 1, "b")
    assert sorted(world.visible().values()) == [b"a\n", b"b\n"]
    assert "merged_files_in" not in outcome.metrics


def test_parquet_by_records(tmp_path):
    """Row groups are joined, schema and records stay; on a real disk."""
    world = World(
        plan=plan_of(BulkFormat(ParquetWriterFactory())),
        compaction=compacting(FileCompactor.record_wise_file_compactor(), checkpoints=3),
        open_store=lambda: open_store(tmp_path, {}),
    )
    driver = world.driver()
    for number in range(3):
        write(world, driver, number, *(f"{number}-{n}" for n in range(5)))
    (path,) = tmp_path.glob("*.parquet")
    file = pq.ParquetFile(path)
    assert file.num_row_groups == 1
    assert file.read().column("value").to_pylist() == [f"{m}-{n}" for m in range(3) for n in range(5)]
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == [path.name]


@pytest.mark.parametrize(
    "layout",
    [
        ParquetLayout(),
        ParquetLayout(dictionary=()),
        ParquetLayout(bloom_filters={"value": 0.01}),
        ParquetLayout(timestamps="int96", page_index=True),
    ],
)
def test_parquet_of_any_layout(tmp_path, layout):
    """Texts of few values, nulls, times and lists come back as they went in, whatever the layout."""
    factory = ParquetWriterFactory(layout=layout)
    world = World(
        plan=plan_of(BulkFormat(factory)),
        compaction=compacting(FileCompactor.record_wise_file_compactor(), checkpoints=2),
        open_store=lambda: open_store(tmp_path, {}),
    )
    driver = world.driver()
    for number in range(2):
        table = pa.table(
            {
                "bucket": [""] * 3000,
                "value": [None if n % 7 == 0 else f"{number}-{n % 3}" for n in range(3000)],
                "time": pa.array(range(3000), pa.timestamp("us", "UTC")),
                "list": [[str(n), None] for n in range(3000)],
            }
        )
        (batch,) = table.to_batches()
        driver.run(micro_batch(number), world.job(batch))
    (path,) = tmp_path.glob("*.parquet")
    found = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
    assert found.column("value").type == pa.string()
    assert found.num_rows == 6000
    times = found.column("time").cast(pa.timestamp("us", "UTC"))  # INT96 has no zone
    found = found.set_column(1, "time", times)
    assert found.slice(3000).to_pylist() == table.drop_columns("bucket").to_pylist()
    assert pq.ParquetFile(path).num_row_groups == 1


@pytest.mark.parametrize(
    ("layout", "unique"), [(ParquetLayout(), False), (ParquetLayout(dictionary=("value", "few")), True)]
)
def test_a_dictionary_that_does_not_pay_is_left_out(tmp_path, layout, unique):
    """A column whose values do not repeat gets none in a merged file, unless the layout names it."""
    world = World(
        plan=plan_of(BulkFormat(ParquetWriterFactory(layout=layout))),
        compaction=compacting(FileCompactor.record_wise_file_compactor(), checkpoints=2),
        open_store=lambda: open_store(tmp_path, {}),
    )
    driver = world.driver()
    for number in range(2):
        table = pa.table(
            {
                "bucket": [""] * 10_000,
                "value": [f"{number}-{n}" for n in range(10_000)],
                "few": [n % 7 for n in range(10_000)],
                "void": pa.nulls(10_000),  # of which Arrow counts no distinct values
            }
        )
        (batch,) = table.to_batches()
        driver.run(micro_batch(number), world.job(batch))
    (path,) = tmp_path.glob("*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    found = {column.path_in_schema: column.has_dictionary_page for column in columns}
    assert (found["value"], found["few"]) == (unique, True)
    assert pq.read_table(path).column("value").to_pylist()[-1] == "1-9999"


def test_sorted_files_are_not_merged():
    """What a file says of its order would not be true of a merged one."""
    factory = ParquetWriterFactory(layout=ParquetLayout(sorted_by=("a",)))
    with pytest.raises(ConfigError, match="sorted_by"):
        FileSink.for_bulk_format("/data/x", factory).enable_compact(
            FileCompactStrategy(checkpoints=1), FileCompactor.record_wise_file_compactor()
        )


class Dashes(RewritingFileCompactor):
    """A user's own: inputs between dashes. ``lies`` is added to the number of records."""

    def __init__(self, lies=0):
        self.lies = lies

    def rewrite(self, inputs, output, form):
        del form
        rows = self.lies
        for file in inputs:
            with file.open() as stream:
                output.write(b"-" + stream.read())
            rows += file.rows
        return rows


@pytest.mark.parametrize(
    ("form", "value", "runs"),
    [
        (RowFormat(Encoder.simple_string_encoder()), "a\nb", 0),  # one record is written, two are read
        (RowFormat(Encoder.simple_string_encoder()), "a\nb", 1 << 20),
        (BulkFormat(CompressWriterFactory(encoder=Encoder.simple_string_encoder())), "a\nb", 0),
        (BulkFormat(OrcBulkWriterFactory()), datetime(9999, 12, 31, tzinfo=UTC), 0),
    ],
)
def test_what_cannot_be_read_back_is_published_as_it_is(monkeypatch, caplog, form, value, runs):
    """Else its bucket would wait for ever, and every epoch of all buckets would fail. Others are merged."""
    monkeypatch.setattr(RecordWiseFileCompactor, "on_driver", runs)  # by the driver, and as a job
    world = World(
        plan=plan_of(form), compaction=compacting(FileCompactor.record_wise_file_compactor(), checkpoints=2)
    )
    driver = world.driver()
    good = "c" if isinstance(value, str) else datetime(2024, 1, 1, tzinfo=UTC)
    batches = [
        pa.RecordBatch.from_pydict(
            {"bucket": ["bad", "good"], "value": [value if not number else good, good]}
        )
        for number in range(2)
    ]
    for number, batch in enumerate(batches):
        driver.run(micro_batch(number), world.job(batch))
    assert sorted(path.split("/")[0] for path in world.visible()) == ["bad", "bad", "good"]
    assert "2 files of 'bad' are published as they are" in caplog.text
    assert world.hidden() == []
    assert driver.run(micro_batch(2), world.job(batches[1])).rows == 2


def test_what_cannot_be_read_back_is_no_other_group_of_a_job():
    """Merges that run side by side come back in another order than they were asked for."""

    class Picky(Dashes):
        def rewrite(self, inputs, output, form):
            if any(b"bad" in file.open().read() for file in inputs):
                raise CompactionError("unreadable", code="INPUT")
            return super().rewrite(inputs, output, form)

    world = World(compaction=compacting(Picky(), checkpoints=2, max_concurrent=2))
    driver = world.driver()
    written = []
    for number in range(2):
        values = [f"{'bad' if bucket == 1 else 'g' * (bucket + 1)}{number}" for bucket in range(5)]
        batches = [records(value, bucket=f"b{bucket}") for bucket, value in enumerate(values)]
        driver.run(micro_batch(number), world.job(pa.concat_batches(batches)))
        written += values
    assert sorted(row.lstrip("-") for row in world.rows()) == sorted(written)


@pytest.mark.parametrize(("how", "files"), [("record_wise", 1), ("concat", 2)])
def test_avro_parts_can_be_read_after_a_merge(how, files):
    """By records they get one header; by bytes those of two headers are not joined."""
    encoder = Encoder.avro()
    compactor = getattr(FileCompactor, f"{how}_file_compactor")()
    world = World(plan=plan_of(encoder), compaction=compacting(compactor, checkpoints=2))
    for number in range(2):
        write(world, world.driver(), number, str(number))
    found = [
        row["value"]
        for data in world.visible().values()
        for batch in encoder.open_reader(io.BytesIO(data))
        for row in batch.to_pylist()
    ]
    assert (sorted(found), len(world.visible())) == (["0", "1"], files)


def test_segments_of_what_cannot_be_read_back_become_one_file():
    """A part that stayed open is still one file, and what waited is published with it."""
    world = World(
        plan=plan_of(policy=keep_open(part_size=5)),
        compaction=compacting(FileCompactor.record_wise_file_compactor(), checkpoints=4),
    )
    driver = world.driver()
    for number, value in enumerate(("a\nb", "cc", "dd", "ee")):
        write(world, driver, number, value)
    driver.finish()
    assert sorted(world.visible().values()) == [b"a\nb\ncc\n", b"dd\nee\n"]
    assert world.hidden() == []


def test_a_compactor_of_ones_own():
    """It reads whole files and writes one."""
    world = World(compaction=compacting(Dashes(), checkpoints=2))
    driver = world.driver()
    write(world, driver, 0, "a")
    write(world, driver, 1, "b")
    assert list(world.visible().values()) == [b"-a\n-b\n"]


def test_a_compactor_that_loses_records_stops_the_epoch_and_nothing_is_lost():
    """The epoch fails before it is decided; with a compactor that is right it goes on."""
    world = World(compaction=compacting(Dashes(lies=-1), checkpoints=2))
    driver = world.driver()
    write(world, driver, 0, "a")
    with pytest.raises(CompactionError, match="1 records of 2"):
        write(world, driver, 1, "b")
    assert world.visible() == {}
    world.compaction = compacting(Dashes(), checkpoints=2)
    driver = world.driver()
    write(world, driver, 1, "b")
    assert list(world.visible().values()) == [b"-a\n-b\n"]
    assert world.hidden() == []


def test_segments_are_read_as_one_file():
    """An input of several segments is one file for a compactor, from wherever it reads."""

    class Seeking(Dashes):
        def rewrite(self, inputs, output, form):
            for file in inputs:
                with file.open() as stream:
                    assert stream.seek(0, io.SEEK_END) == file.size
                    stream.seek(1)
                    rest = stream.read()
                    stream.seek(0)
                    output.write(stream.read(1) + rest)
            return super().rewrite([], output, form) + sum(file.rows for file in inputs)

    plan = plan_of(policy=keep_open(rollover_interval=1000, inactivity_interval=10**9))
    world = World(plan=plan, compaction=compacting(Seeking(), checkpoints=100))
    driver = world.driver()
    for number in range(4):  # a part alone would be put together without a compactor
        lines = [records(f"{part} {number}", bucket="x") for part in ("line", "other")]
        driver.run(micro_batch(number), world.job(*lines))
        world.clock.now += 400
    driver.finish()
    assert world.rows() == [f"{part} {number}" for part in ("line", "other") for number in range(4)]
    assert (len(world.visible()), world.hidden()) == (1, [])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "COMPACTION"),
        ({"max_concurrent": 3}, "COMPACTION"),
        ({"checkpoints": 0}, "BAD_VALUE"),
        ({"checkpoints": True}, "BAD_VALUE"),
        ({"checkpoints": 1, "max_concurrent": 0}, "BAD_VALUE"),
        ({"size_threshold": 0}, "BAD_VALUE"),
        ({"size_threshold": "abc"}, "BAD_VALUE"),
        ({"max_age": 0}, "BAD_VALUE"),
    ],
)
def test_strategies_that_cannot_work(options, code):
    """At least one condition, and none that is nonsense."""
    with pytest.raises(ConfigError) as raised:
        FileCompactStrategy(**options)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("builder", "compactor", "code"),
    [
        ("parquet", FileCompactor.concat_file_compactor(), "COMPACTION"),
        ("lines", FileCompactor.record_wise_file_compactor(), "COMPACTION"),
        ("lines", "concat", "BAD_VALUE"),
        ("compressed", FileCompactor.record_wise_file_compactor(), "COMPACTION"),
    ],
)
def test_compactors_that_do_not_fit_the_format(builder, compactor, code):
    """Refused when the sink is built, with the one that fits."""
    builders = {
        "parquet": FileSink.for_bulk_format("/data/x", ParquetWriterFactory()),
        "lines": FileSink.for_row_format("/data/x", Encoder.json_lines()),
        "compressed": FileSink.for_bulk_format(
            "/data/x", CompressWriterFactory(encoder=Encoder.json_lines())
        ),
    }
    fitting = {"parquet": "record_wise", "lines": "concat", "compressed": "identical"}[builder]
    with pytest.raises(ConfigError, match=f"{fitting}_file_compactor") as raised:
        builders[builder].enable_compact(FileCompactStrategy(checkpoints=1), compactor)
    assert raised.value.code == code


def test_a_delimiter_is_bytes():
    """Text has no one form in bytes."""
    with pytest.raises(ConfigError) as raised:
        FileCompactor.concat_file_compactor("\n")
    assert raised.value.code == "BAD_VALUE"


def test_merges_run_in_so_many_lanes():
    """max_concurrent bounds how many run at a time, and every request has its result."""

    class Lanes:
        jobs = ()

        def run(self, function, items):
            self.jobs = [*self.jobs, len(list(items))]
            return [function(item) for item in items]

    class OnJob(Dashes):
        on_driver = 0

    world = World(compaction=compacting(OnJob(), checkpoints=2, max_concurrent=2))
    ports = Ports(clock=world.clock, ids=world.ids, runner=(lanes := Lanes()))
    driver = EpochLoop(world.tiers(), world.ledger(), ports=ports, options=EpochOptions())
    for number in range(2):
        batch = pa.concat_batches([records(str(number), bucket=f"b{n}") for n in range(5)])
        driver.run(micro_batch(number), world.job(batch))
    assert lanes.jobs == [2]
    assert len(world.visible()) == 5
    assert all(data == b"-0\n-1\n" for data in world.visible().values())


def request_of(world, *contents):
    """Parts of one segment each that are there, to be merged."""
    parts = []
    for number, content in enumerate(contents):
        output = world.store().create(f".{number}", target=None)
        output.write(content)
        parts.append(
            (replace(held(f".{number}", group=str(number), size=len(content)), staged=output.close()),)
        )
    return MergeRequest(parts=tuple(parts), target="part-0", prefix="part", tag="0" * 8, slot=5)


def test_a_store_that_joins_less_than_it_was_given_is_found_out(monkeypatch):
    """The lengths of what went in are known; records that are missing from a file are nowhere else soon."""
    world = World()
    request = request_of(world, b"1\n", b"2\n")
    concat = FaultyStore.concat
    monkeypatch.setattr(
        FaultyStore,
        "concat",
        lambda store, pieces, *args, **options: concat(store, pieces[:1], *args, **options),
    )
    with pytest.raises(CompactionError, match="made 2 bytes of 4") as raised:
        FileCompactor.concat_file_compactor().combine(None)(world.store(), request, ".merged")
    assert raised.value.code == "SIZE"


class Breaks(RewritingFileCompactor):
    """Writes something and fails."""

    def rewrite(self, inputs, output, form):
        del inputs, form
        output.write(b"half")
        raise KeyboardInterrupt


def test_a_rewrite_that_is_stopped_leaves_nothing():
    """Neither does a worker that is told to end in the middle of it."""
    world = World()
    request = request_of(world, b"1\n", b"2\n")
    with pytest.raises(KeyboardInterrupt):
        Rewrite(Breaks(), world.plan.format)(world.store(), request, ".merged")
    assert world.hidden() == [".0", ".1"]


def test_why_a_rewrite_failed_is_told_although_its_file_stays():
    """The sweep removes that one; whoever merges learns what was wrong with the merge."""
    world = World()
    request = request_of(world, b"1\n", b"2\n")
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, _path: busy if operation == "discard" else None
    with pytest.raises(KeyboardInterrupt):
        Rewrite(Breaks(), world.plan.format)(world.store(), request, ".merged")
