"""Records that cannot be written: put aside once, or named by the error that fails the epoch."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filesink import DeadLetters, FileSink
from filesink.buckets.assigner import BucketAssigner
from filesink.errors import BucketError, ConfigError, EncoderError, SchemaError, SecurityError
from filesink.ledger.sweep import hidden_files
from filesink.metastore.announcements import gathered
from filesink.naming import OutputFileConfig
from filesink.parts.bucket import Closed
from filesink.parts.committables import PendingFile, Watermark
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.parts.plan import WriterLimits
from filesink.parts.rolling import RollingPolicy
from formats import ParquetWriterFactory
from formats.encoders import Encoder
from tests.fakes import ByColumn, World, keep_open, micro_batch, plan_of, records


class ByK(BucketAssigner):
    """An assigner as a user writes it."""

    def assign(self, batch, context):
        del context
        return batch.column("k")


class ByError(ByColumn):
    """Whose column has the name that dead letters give the error."""

    def partition_columns(self):
        return ("_error",)


def world_of(dead_letters=None, **plan):
    """A world whose encoder has no bytes for what is not ASCII."""
    made = plan_of(Encoder.simple_string_encoder("ascii"), **plan)
    return World(plan=replace(made, on_bad_record=dead_letters))


def write(world, *batches):
    """One epoch's files."""
    writer = world.writer()
    for batch in batches:
        writer.write(batch, world.context())
    return writer, writer.prepare_commit(0)


def letters(world, file):
    """What a dead-letter file holds."""
    return pq.read_table(io.BytesIO(world.files.files[file.staged.path].content)).to_pylist()


def test_bad_records_are_put_aside_with_their_error():
    """Every other record is written, in order; a bad one is below the tree of dead letters, in its bucket."""
    world = world_of(DeadLetters())
    writer, files = write(world, records("a", "é", "b", bucket="x"), records("ü", bucket="y"))
    found = {file.bucket: file for file in files}
    assert sorted(found) == ["_dead_letters/x", "_dead_letters/y", "x"]
    assert world.files.files[found["x"].staged.path].content == b"a\nb\n"
    (letter,) = letters(world, found["_dead_letters/x"])
    assert letter["value"] == "é"
    assert "ascii" in letter["_error"]
    assert "é" not in letter["_error"]
    assert found["_dead_letters/x"].target.endswith(".parquet")
    assert sum(file.rows for file in files) == 4
    assert writer.snapshot_state(0) == []


def test_a_bad_record_fails_the_epoch_and_is_named():
    """Partition, bucket and position, and never the value."""
    world = world_of()
    with pytest.raises(EncoderError, match="record 3 of partition 0 in bucket 'x'") as error:
        write(world, records("a", bucket="x"), records("b", "é", bucket="x"))
    assert "é" not in str(error.value)
    assert error.value.code == "FORMAT"


def test_open_parts_stay_open_around_bad_records():
    """Dead letters are published by their epoch, the part they were meant for goes on."""
    world = world_of(DeadLetters(path="_dead_letters_of_mine"), policy=keep_open())
    writer, files = write(world, records("a", "é"))
    assert [file.bucket for file in files] == ["_dead_letters_of_mine"]
    assert [held.rows for held in writer.snapshot_state(0)] == [1]


def test_an_open_part_goes_on_after_an_epoch_of_bad_records():
    """Though the first record that it gets in an epoch, or the only one, is put aside."""
    world = world_of(DeadLetters(), policy=keep_open())
    driver = world.driver()
    for number, values in enumerate([("a",), ("é",), ("ü", "b")]):
        driver.run(micro_batch(number), world.job(records(*values, bucket="x")))
    driver.finish()
    assert [data for path, data in world.visible().items() if path.startswith("x/")] == [b"a\nb\n"]


def test_all_files_of_a_sink_have_its_prefix():
    """Dead letters too, and parts that the driver puts together of what several epochs have written."""
    names = OutputFileConfig(part_prefix="trips")
    world = world_of(DeadLetters(), policy=keep_open(), names=names)
    driver = world.driver()
    for number, values in enumerate([("1", "é"), ("2",)]):
        driver.run(micro_batch(number), world.job(records(*values)))
    driver.finish()
    letter, part = sorted(world.visible())
    assert letter.startswith("_dead_letters/trips-")
    assert part.startswith("trips-")
    assert world.visible()[part] == b"1\n2\n"


def test_dead_letters_are_whole_files_where_few_may_be_open():
    """Beyond the limits a part is written in pieces, which Parquet files cannot be joined from."""
    world = world_of(DeadLetters(), limits=WriterLimits(memory=1, open_files=1))
    _, files = write(world, *(records(f"é{number}", "a", bucket=f"b{number % 2}") for number in range(6)))
    mine = [file for file in files if file.bucket.startswith("_dead_letters")]
    assert {type(file) for file in mine} == {PendingFile}
    assert sum(len(letters(world, file)) for file in mine) == 6


def test_dead_letters_do_not_wait_for_compaction():
    """Though data does; both are counted."""
    world = world_of(DeadLetters())
    world.plan = replace(world.plan, closed=Closed.HELD)
    writer, files = write(world, records("a", "é"))
    assert sorted(type(file).__name__ for file in files) == ["HeldFile", "PendingFile"]
    written = {"files_written": 2, "bytes_written": sum(file.size for file in files), "dead_letters": 1}
    assert written.items() <= writer._context.metrics.values.items()


def test_a_file_that_no_record_came_into_is_not_counted():
    """Nothing is written of a part whose only record was put aside."""
    world = world_of(DeadLetters())
    writer, files = write(world, records("é", bucket="x"), records("a", bucket="y"))
    assert len(files) == 2
    assert writer._context.metrics.values["files_written"] == 2


def test_too_many_dead_letters_fail_the_epoch():
    """As many as the limit says are put aside; with one more, it is not a matter of some bad records."""
    world = world_of(DeadLetters(limit=2))
    _, files = write(world, records("é"), records("é"))
    assert [file.rows for file in files] == [2]
    with pytest.raises(EncoderError, match="more than 2") as error:
        write(world, records("é", "é"), records("é"))
    assert error.value.code == "DEAD_LETTERS"


def test_a_failed_attempt_leaves_no_dead_letters():
    """They are discarded with the rest."""
    world = world_of(DeadLetters(), policy=RollingPolicy.on_checkpoint_rolling_policy(max_rows=1))
    writer, files = write(world, records("a", "é", "b"))
    assert len(files) == 3
    writer.abort_prepare()
    assert world.files.files == {}


def test_dead_letters_are_swept_and_never_announced():
    """Hidden files are found in their tree; a metastore does not hear of it."""
    world = world_of(DeadLetters())
    _, files = write(world, records("a", "é", bucket="x"))
    assert {hidden.path for hidden in hidden_files(world.store())} == {file.staged.path for file in files}
    announced, _ = gathered((), files, slot=0, now_ms=0)
    assert [one.bucket for one in announced] == ["x"]


def test_a_column_named_as_the_error_is_refused():
    """Before anything is written, and only where records may be put aside."""
    schema = pa.schema([("bucket", pa.string()), ("_Error", pa.string())])
    with pytest.raises(SchemaError, match="'_Error'") as error:
        world_of(DeadLetters()).tiers().check_schema(schema)
    assert error.value.code == "DUPLICATE_COLUMN"
    world_of().tiers().check_schema(schema)


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"path": "letters"}, ConfigError, "BAD_VALUE"),
        ({"path": "_filesink"}, ConfigError, "BAD_VALUE"),
        ({"path": "_dead_letters/../day=1"}, SecurityError, "ESCAPE"),
        ({"limit": 0}, ConfigError, "BAD_VALUE"),
    ],
    ids=str,
)
def test_places_that_readers_look_into_are_refused(options, kind, code):
    """Dead letters are not data. One of them may be enough."""
    assert DeadLetters(limit=1).path == "_dead_letters"
    assert DeadLetters() == DeadLetters(limit=10_000)
    with pytest.raises(kind) as error:
        DeadLetters(**options)
    assert error.value.code == code


def test_a_record_that_could_not_be_put_aside_is_refused():
    """Before anything is written: an encoder of the user's may take what Parquet has no type for."""
    schema = pa.schema([("bucket", pa.string()), ("n", pa.month_day_nano_interval())])
    with pytest.raises(SchemaError, match="'n'") as error:
        DeadLetters().check_schema(schema)
    assert error.value.code == "TYPE"


PARTITIONS = pa.schema([("k", pa.string()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
LONG = "secret" * 50


def partitioned(dead_letters=None, form=None, assigner=None):
    """A world of Parquet files in Hive partitions by ``k``, unless said otherwise."""
    plan = plan_of(form or BulkFormat(ParquetWriterFactory()))
    assigner = assigner or BucketAssigner.partition_bucket_assigner("k")
    return World(plan=replace(plan, assigner=assigner, on_bad_record=dead_letters))


def of_partitions(*keys):
    """A record for each key; ``n`` counts from 0."""
    rows = [{"k": key, "at": None, "n": number} for number, key in enumerate(keys)]
    return pa.RecordBatch.from_pylist(rows, schema=PARTITIONS)


@pytest.mark.parametrize(
    "form", [Encoder.json_lines(), BulkFormat(ParquetWriterFactory())], ids=["row", "bulk"]
)
def test_records_without_a_bucket_are_put_aside(form):
    """With all their columns, since it is one of the path that is bad, in row and bulk formats."""
    world = partitioned(DeadLetters(), RowFormat(form) if isinstance(form, Encoder) else form)
    _, files = write(world, of_partitions("a", LONG, "b", LONG[:-1], None), of_partitions("a"))
    found = {file.bucket: file for file in files}
    assert sorted(found) == ["_dead_letters_no_bucket", "k=__HIVE_DEFAULT_PARTITION__", "k=a", "k=b"]
    put_aside = letters(world, found["_dead_letters_no_bucket"])
    assert [(letter["k"], letter["n"]) for letter in put_aside] == [(LONG, 1), (LONG[:-1], 3)]
    assert {letter["_error"] for letter in put_aside} == {
        "partition column 'k' makes a directory's name of more than 255 bytes"
    }
    assert sum(file.rows for file in files) == 6


def test_records_without_a_bucket_fail_the_epoch_with_one_error():
    """It names column and rows, says how to go on, and shows no value."""
    world = partitioned()
    with pytest.raises(BucketError) as error:
        write(world, of_partitions("a", LONG, "b", LONG))
    assert error.value.code == "TOO_LONG"
    text = str(error.value)
    assert "partition column 'k' makes" in text
    assert "in 2 records of partition 0" in text
    assert "on_bad_record(DeadLetters())" in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("assigner", "origin"),
    [
        (BucketAssigner.expression_bucket_assigner("k"), "the value of the bucket expression"),
        (ByK(), "the bucket that ByK gives"),
    ],
    ids=["expression", "custom"],
)
def test_every_assigner_may_leave_records_without_a_bucket(assigner, origin):
    """Null, and what is no path; a column that only the assigner needs is not put aside."""
    batch = of_partitions("a", None, "../b", "c\\d")
    batch = batch.append_column("__filesink_bucket", batch.column("k"))
    if isinstance(assigner, ByK):
        batch = batch.drop_columns("__filesink_bucket")
    _, files = write(partitioned(assigner=assigner), batch.slice(0, 1))
    assert [file.bucket for file in files] == ["a"]
    with pytest.raises(BucketError, match=f"{origin} "):
        write(partitioned(assigner=assigner), batch)
    world = partitioned(DeadLetters(), assigner=assigner)
    _, files = write(world, batch)
    put_aside = [
        letter for file in files if file.rows != 1 or file.bucket[0] == "_" for letter in letters(world, file)
    ]
    assert [sorted(letter) for letter in put_aside] == [["_error", "at", "k", "n"]] * 3
    assert sorted(letter["n"] for letter in put_aside) == [1, 2, 3]
    assert all(letter["_error"].startswith(origin) for letter in put_aside)


def test_a_null_time_is_no_bad_record():
    """It has a bucket of its own, beside the others, and no watermark comes of it."""
    world = partitioned(assigner=BucketAssigner.date_time_bucket_assigner("'day='yyyy", column="at"))
    world.plan = replace(world.plan, watermark_column="at")
    batch = of_partitions("a", "b")
    batch = batch.set_column(1, "at", pa.array([None, 0], PARTITIONS.field("at").type))
    _, files = write(world, batch)
    assert {file.bucket for file in files if isinstance(file, PendingFile)} == {
        "day=__HIVE_DEFAULT_PARTITION__",
        "day=1970",
    }
    assert [file.latest_ms for file in files if isinstance(file, Watermark)] == [0]
    _, files = write(world, batch.slice(0, 1))
    assert [file.bucket for file in files] == ["day=__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize(
    ("suffix", "end"), [(None, ".parquet.dead"), (".snappy.parquet", ".parquet.dead"), (".pq", ".parquet")]
)
def test_dead_letters_do_not_end_as_data(suffix, end):
    """Globs of DuckDB and polars look into directories that begin with '_'."""
    world = partitioned(DeadLetters())
    world.plan = replace(world.plan, names=OutputFileConfig(part_suffix=suffix))
    _, (file,) = write(world, of_partitions(LONG))
    assert file.target.endswith(f"-0{end}")


def test_records_without_a_bucket_count_among_dead_letters():
    """Whether they come one by one or many at once."""
    world = partitioned(DeadLetters(limit=3))
    writer, _ = write(world, of_partitions(LONG, LONG), of_partitions(LONG))
    assert writer._context.metrics.values["dead_letters"] == 3
    with pytest.raises(EncoderError, match="more than 3") as error:
        write(world, of_partitions(*[LONG] * 4))
    assert error.value.code == "DEAD_LETTERS"


def test_dead_letters_without_a_bucket_are_swept_and_never_announced():
    """As those that have one."""
    world = partitioned(DeadLetters())
    _, files = write(world, of_partitions(LONG))
    assert {hidden.path for hidden in hidden_files(world.store())} == {file.staged.path for file in files}
    announced, _ = gathered((), files, slot=0, now_ms=0)
    assert not announced


def test_a_partition_column_may_not_be_the_one_of_the_error():
    """It is in what is put aside, though in no file."""
    world = partitioned(DeadLetters(), assigner=ByError())
    with pytest.raises(SchemaError) as error:
        world.tiers().check_schema(pa.schema([("_error", pa.string()), ("n", pa.int64())]))
    assert error.value.code == "DUPLICATE_COLUMN"


def test_records_are_not_rendered_where_they_may_be_put_aside(tmp_path):
    """A dead letter has all columns of its record."""
    builder = FileSink.for_row_format(tmp_path, Encoder.json_lines())
    schema = pa.schema([("a", pa.int32())])
    assert builder.tiers().projection(schema) is not None
    assert builder.on_bad_record(DeadLetters()).tiers().projection(schema) is None
