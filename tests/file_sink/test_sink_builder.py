"""Building a sink: whatever cannot work is refused at once, with a typed error and a code."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink import BucketAssigner, ConfigError, FileSink, OutputFileConfig, RollingPolicy, SchemaError
from filesink.commit.checkpoints import check_checkpoint
from filesink.commit.replay import EpochOptions, OnReplayMismatch
from filesink.ledger.identity import OnNewQuery
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import SuccessFilePolicy
from filesink.naming import HiddenName, sink_tag
from filesink.parts.bucket import Closed
from filesink.parts.file_format import code_of
from filesink.parts.rolling import DefaultRollingPolicy
from filesink.parts.stages.closed_parts import Waiting
from filesink.storage.base_path import check_base_path
from filesink.storage.open import open_store
from filesink.system import SystemIds
from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    BulkWriterFactory,
    CompressWriterFactory,
    Encoder,
    FormatError,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    RowEncoder,
    SequenceFileWriterFactory,
)
from tests.fakes import World


def lines(path="/data/x"):
    """A builder of a sink of text."""
    return FileSink.for_row_format(path, Encoder.simple_string_encoder())


def parquet(path="/data/x"):
    """A builder of a sink of Parquet."""
    return FileSink.for_bulk_format(path, ParquetWriterFactory())


class Pipes(RowEncoder):
    """A user's own format."""

    def encode(self, row):
        return "|".join(map(str, row.values())).encode()


@pytest.mark.parametrize("build", [lines, parquet])
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "PATH_REQUIRED"),
        ("  ", "PATH_REQUIRED"),
        (None, "PATH_REQUIRED"),
        (7, "BAD_VALUE"),
        ("a\0b", "BAD_VALUE"),
        ("foo://x", "SCHEME"),
        ("memory://x", "SCHEME"),
        ("s3://user:secret@bucket/x", "CREDENTIALS"),
        ("file://host/x", "BAD_VALUE"),
    ],
)
def test_paths(build, path, code):
    """A path that cannot be used is refused before anything else, without repeating secrets."""
    with pytest.raises(ConfigError) as raised:
        build(path)
    assert raised.value.code == code
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("size", [0, -1, "abc", "1e400", "NaN", "", None, 1.5, True, "9" * 30])
def test_part_sizes(size):
    """A size that is none is refused, and the message names the option."""
    with pytest.raises(ConfigError, match="part_size") as raised:
        RollingPolicy.default_rolling_policy(part_size=size)
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    "interval", [0, -5, "abc", "1 fortnight", timedelta(0), 1.5, True, None, "9" * 19 + " d"]
)
def test_intervals(interval):
    """A duration that is none is refused wherever one is taken."""
    for make in (
        lambda value: RollingPolicy.default_rolling_policy(rollover_interval=value),
        lambda value: RollingPolicy.default_rolling_policy(inactivity_interval=value),
        lambda value: lines().with_bucket_check_interval(value),
    ):
        with pytest.raises(ConfigError, match="interval") as raised:
            make(interval)
        assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize("older_than", [0, "soon"])
def test_ages_of_sweeps(tmp_path, older_than):
    """An age that is none does not sweep."""
    sink = lines(tmp_path).build()
    for sweep in (sink.sweep, sink.plan_sweep):
        with pytest.raises(ConfigError):
            sweep(older_than)


def test_sweeps_by_hand_go_by_the_age_that_they_are_given(tmp_path):
    """What is younger is neither named nor removed; a plan removes nothing, and a sweep what was planned."""
    name = HiddenName(target="part-0", tag=sink_tag("uid-x"), slot=0, attempt=SystemIds().uuid())
    dead = tmp_path / str(name)
    dead.touch()
    eight_days_ago = time.time() - 8 * 86_400
    os.utime(dead, (eight_days_ago, eight_days_ago))
    sink = lines(tmp_path).build()
    assert sink.plan_sweep("9 days").files == sink.sweep("9 days").files == ()
    planned = sink.plan_sweep()
    assert [file.path for file in planned.files] == [dead.name]
    assert dead.exists()
    assert sink.sweep() == planned
    assert not dead.exists()


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "10"])
def test_numbers_of_rows(rows):
    """A number of rows is a positive whole number."""
    with pytest.raises(ConfigError, match="max_rows"):
        RollingPolicy.on_checkpoint_rolling_policy(max_rows=rows)


def test_a_bulk_format_takes_checkpoint_policies_only():
    """A columnar file cannot be continued in the next epoch, and the message says what to do."""
    with pytest.raises(ConfigError, match="on_checkpoint_rolling_policy") as raised:
        parquet().with_rolling_policy(RollingPolicy.default_rolling_policy())
    assert raised.value.code == "CONFLICT"
    parquet().with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy("1MiB")).build()


def test_formats_belong_to_their_kind():
    """A row format is no bulk format, and a class is no instance."""
    for make, form in (
        (FileSink.for_row_format, ParquetWriterFactory()),
        (FileSink.for_bulk_format, Encoder.json_lines()),
        (FileSink.for_row_format, Pipes),
        (FileSink.for_bulk_format, "parquet"),
    ):
        with pytest.raises(ConfigError) as raised:
            make("/data/x", form)
        assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("with_bucket_assigner", "dt"),
        ("with_rolling_policy", 128),
        ("with_output_file_config", {"part_prefix": "a"}),
        ("with_uid", ""),
        ("with_uid", "a/b"),
        ("with_uid", None),
        ("on_new_query", "ignore"),
        ("on_new_query", True),
        ("on_replay_mismatch", "append"),
        ("on_replay_mismatch", []),
    ],
)
def test_arguments_of_other_kinds(method, value):
    """Whatever a method cannot take, it names what it takes."""
    with pytest.raises(ConfigError) as raised:
        getattr(lines(), method)(value)
    assert raised.value.code == "BAD_VALUE"


def test_a_builder_never_changes():
    """Every step returns a new builder; one may be the start of many sinks."""
    start = lines()
    changed = (
        start.with_uid("u")
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_output_file_config(OutputFileConfig(part_prefix="a"))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_bucket_check_interval("5 min")
        .on_new_query("append")
        .on_replay_mismatch("keep_first")
        .with_storage_options(a=1)
    )
    assert start == lines()
    assert changed != start
    assert changed.check_interval_ms == 300_000
    with pytest.raises(FrozenInstanceError):
        start.uid = "v"


def test_no_call_takes_back_what_an_earlier_one_has_said():
    """Options of the store add up, and those of epochs are the same in any order."""
    assert lines().with_storage_options(a=1).with_storage_options(b=2).storage_options == {"a": 1, "b": 2}
    chosen = EpochOptions(on_new_query=OnNewQuery.APPEND, on_replay_mismatch=OnReplayMismatch.KEEP_FIRST)
    assert lines().on_new_query("append").on_replay_mismatch("keep_first").epochs == chosen
    assert lines().on_replay_mismatch("keep_first").on_new_query("append").epochs == chosen


def test_tasks_know_when_to_look_and_what_makes_a_watermark():
    """The interval of checks, the column of times, and whose wall clock it shows."""
    trigger = PartitionCommit.partition_time(extractor="$day", watermark_column="ts", time_zone="Asia/Tokyo")
    commit = PartitionCommit(trigger=trigger, policies=[SuccessFilePolicy()])
    plan = lines().with_bucket_check_interval("5 min").with_partition_commit(commit).tiers().plan
    assert plan.check_interval_ms == 300_000
    assert (plan.watermark_column, plan.watermark_zone) == ("ts", "Asia/Tokyo")


class InTheOrderOfTheTable:
    """What comes of a frame that is put into the order of a table; the engine says what it was given."""


def test_tasks_hold_what_is_to_be_merged():
    """With compaction their parts wait; once it is turned off they are published as they are again."""
    strategy = FileCompactStrategy(checkpoints=2)
    merging = lines().enable_compact(strategy, FileCompactor.concat_file_compactor())
    assert merging.tiers().plan.closed is Closed.HELD
    assert merging.tiers().compaction.strategy is strategy
    off = merging.disable_compact().tiers()
    assert (off.plan.closed, off.compaction) == (Closed.PENDING, Waiting.PUBLISHED)
    assert (lines().tiers().plan.closed, lines().tiers().compaction) == (Closed.PENDING, Waiting.REFUSED)


def test_every_door_puts_columns_into_the_order_of_the_table(tmp_path):
    """What is written, and checked before that, is never the frame as the user has it."""
    sink = replace(lines(tmp_path), in_order=lambda: lambda _df: InTheOrderOfTheTable()).build()
    unordered = SimpleNamespace(isStreaming=False)
    for door in (
        lambda: sink.write(unordered),
        lambda: sink.start(unordered, checkpoint_location=tmp_path / "_checkpoint"),
        lambda: sink.foreach_batch(unordered, 0),
    ):
        with pytest.raises(ConfigError, match="a DataFrame of Spark, got InTheOrderOfTheTable"):
            door()


def test_defaults_are_flink_s():
    """Hourly buckets, 128 MiB and a minute for row formats; each epoch its files for bulk formats."""
    assert lines().policy == DefaultRollingPolicy(
        part_size=128 << 20, rollover_interval_ms=60_000, inactivity_interval_ms=60_000
    )
    assert lines().check_interval_ms == 60_000
    assert parquet().policy == RollingPolicy.on_checkpoint_rolling_policy()
    assert "yyyy-MM-dd--HH" in repr(lines().assigner)


def test_building_touches_nothing(tmp_path):
    """Neither building nor looking makes a directory."""
    sink = lines(tmp_path / "new").build()
    repr(sink)
    with pytest.raises(ConfigError, match="no sink has written"):
        sink.plan_sweep()
    assert not (tmp_path / "new").exists()


def test_a_sink_shows_what_it_is_and_no_secret():
    """Path, uid, format, buckets and policy; options of the store are left out."""
    sink = lines().with_uid("u").with_storage_options(secret_key="hunter2").build()
    text = f"{sink!r} {sink._builder!r} {sink._tiers!r}"
    for shown in ("/data/x", "uid='u'", "TextEncoder", "DefaultRollingPolicy"):
        assert shown in repr(sink)
    assert "hunter2" not in text


def test_storage_options_of_a_local_path_are_refused(tmp_path):
    """An option that nothing would read is a mistake, and its value is not repeated."""
    sink = lines(tmp_path).with_storage_options(secret_key="hunter2").build()
    with pytest.raises(ConfigError, match="secret_key") as raised:
        sink.plan_sweep()
    assert raised.value.code == "UNKNOWN_OPTION"
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("builder", [lines(), parquet(), FileSink.for_row_format("/data/x", Pipes())])
def test_what_goes_to_the_tasks_can_be_pickled(builder):
    """Tiers cross to the executors and come back as they were."""
    tiers = builder.with_uid("u").build()._tiers
    again = pickle.loads(pickle.dumps(tiers))  # noqa: S301
    assert code_of(again.plan.format).signature() == code_of(tiers.plan.format).signature()
    assert (again.address, again.plan.names) == (tiers.address, tiers.plan.names)
    assert again.uid == "u"
    assert again.plan.policy == tiers.plan.policy


def test_paths_have_one_spelling(tmp_path, monkeypatch):
    """Relative paths, Path objects and file URIs of one directory are one base path."""
    monkeypatch.chdir(tmp_path)
    wanted = str(tmp_path / "x")
    for path in ("x", tmp_path / "x", f"file://{tmp_path}/x", f"file:{tmp_path}/x"):
        assert lines(path).base_path == wanted


def test_a_path_that_is_a_file(tmp_path):
    """A file where the base should be is refused when the sink is prepared."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError) as raised:
        open_store(tmp_path / "file", {}).prepare()
    assert raised.value.code == "PATH_NOT_DIR"


@pytest.mark.parametrize(
    ("builder", "schema", "code"),
    [
        (lines(), {"a": pa.string(), "b": pa.string()}, "TYPE"),
        (lines(), {"a": pa.map_(pa.string(), pa.string())}, "TYPE"),
        (
            parquet().with_bucket_assigner(BucketAssigner.partition_bucket_assigner("dt")),
            {"a": pa.int64()},
            "BUCKET_COLUMN",
        ),
        (
            parquet().with_bucket_assigner(BucketAssigner.partition_bucket_assigner("a")),
            {"a": pa.int64()},
            "NO_DATA_COLUMNS",
        ),
    ],
)
def test_schemas_are_checked_before_anything_is_written(builder, schema, code):
    """Columns that do not fit format or buckets are found on the driver."""
    with pytest.raises(SchemaError) as raised:
        builder.build()._tiers.check_schema(pa.schema(schema.items()))
    assert raised.value.code == code


def test_the_columns_of_the_path_need_no_format():
    """What is in the path is not written, so the format is asked about the rest only."""
    World().tiers().check_schema(pa.schema([("bucket", pa.string()), ("value", pa.string())]))


def test_recover_takes_three_words(tmp_path):
    """Anything else is named before a file is looked at."""
    with pytest.raises(ConfigError, match="lost must be 'raise' or 'rewrite' or 'accept'"):
        lines(tmp_path).build().recover(lost="delete")


def test_finish_without_a_stream(tmp_path):
    """A sink without uid that has not run here does not know what to finish."""
    with pytest.raises(ConfigError) as raised:
        lines(tmp_path).build().finish()
    assert raised.value.code == "NO_STREAM"


@pytest.mark.parametrize(
    ("base", "checkpoint"),
    [
        ("/data/x", "/data/x"),
        ("/data/x", "/data/x/"),
        ("/data/x", "/data/x/checkpoint"),
        ("/data/x", "file:/data/x/checkpoint"),
        ("/data/x", "/data/y/../x/a=1/checkpoint"),
        ("/data/x", "/data/x/_filesink/checkpoint"),
        ("/data/x", "/data/x/a/_filesink/checkpoint"),
        ("/data/x", "/data/x/_dead_letters/checkpoint"),
        ("data", "data/checkpoint"),
        ("/", "/checkpoint"),
        ("s3a://bucket/x", "s3://bucket/x/checkpoint"),
        ("s3://bucket", "s3://bucket/checkpoint"),
        ("hdfs://host/x", "hdfs://host/x/checkpoint"),
    ],
)
def test_a_checkpoint_among_the_data_is_refused(base, checkpoint):
    """Readers would take it for data, and an overwrite would remove it; nothing is started."""
    with pytest.raises(ConfigError, match="checkpoint_location is") as raised:
        lines(base).build().start(None, checkpoint_location=checkpoint)
    assert raised.value.code == "CHECKPOINT"


@pytest.mark.parametrize(
    "checkpoint",
    [
        "/data/x/_checkpoint",
        "/data/x/.checkpoint",
        "/data/x/a/_checkpoints/a",
        "/data/xy",
        "/data",
        "/cp",
        "hdfs://host/data/x/checkpoint",
        "dbfs:/data/x/checkpoint",
        "s3://bucket/x",
    ],
)
def test_a_checkpoint_that_readers_skip_is_allowed(checkpoint):
    """Elsewhere, or below a name that begins with a dot or an underscore."""
    check_checkpoint(checkpoint, check_base_path("/data/x"))


def test_a_checkpoint_is_found_through_links(tmp_path):
    """Whichever name of the base path is used."""
    (tmp_path / "base").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "base")
    for base, location in (("base", "link"), ("link", "base")):
        with pytest.raises(ConfigError, match="'cp' below the base path"):
            lines(tmp_path / base).build().start(None, checkpoint_location=tmp_path / location / "cp")


JSON = Encoder.json_lines()
GZIP = CompressWriterFactory(encoder=JSON, codec="gzip")


class Packed(RowEncoder):
    """A user's own format, which says how its files end."""

    extension = ".packed"

    def encode(self, row):
        return bytes(len(row))


@pytest.mark.parametrize(
    ("code", "suffix", "hint"),
    [
        (Encoder.simple_string_encoder(), ".gz", "not compressed"),
        (JSON, ".json.gz", "not compressed"),
        (JSON, ".jsonl.snappy", "not compressed"),
        (Encoder.csv(), ".zip", "not compressed"),
        (Encoder.avro(), ".avro.zst", "not compressed"),
        (ParquetWriterFactory(), ".parquet.snappy", "not compressed"),
        (SequenceFileWriterFactory(), ".gz", "not compressed"),
        (Packed(), ".packed.bz2", "not compressed"),
        (GZIP, ".json", "use '.json.gz'"),
        (GZIP, "", "use '.gz'"),
        (GZIP, ".json.zst", "use '.json.gz'"),
        (GZIP, ".json.GZ", "use '.json.gz'"),
        (CompressWriterFactory(encoder=JSON, codec="snappy"), ".json.snappy", "use '.json.sz'"),
        (CompressWriterFactory(encoder=Encoder.simple_string_encoder(), codec="zstd"), ".txt", "'.txt.zst'"),
        (GZIP, ".csv.gz", "take them for csv"),
        (JSON, ".csv", "take them for csv"),
        (Encoder.csv(), ".ndjson", "take them for json"),
        (Encoder.simple_string_encoder(), ".parquet", "take them for parquet"),
        (ParquetWriterFactory(), ".orc", "take them for orc"),
        (ParquetWriterFactory(), ".json", "take them for json"),
    ],
)
def test_a_suffix_that_readers_take_for_something_else(code, suffix, hint):
    """Refused when the sink is built, with the ending that goes: readers would fail, or see nothing."""
    make = FileSink.for_bulk_format if isinstance(code, BulkWriterFactory) else FileSink.for_row_format
    builder = make("/data/x", code).with_output_file_config(OutputFileConfig(part_suffix=suffix))
    with pytest.raises(ConfigError, match="part_suffix") as raised:
        builder.build()
    assert raised.value.code == "CONFLICT"
    assert hint in str(raised.value)


@pytest.mark.parametrize(
    ("code", "suffix"),
    [
        (Encoder.simple_string_encoder(), ".txt"),
        (Encoder.simple_string_encoder(), ".json"),
        (Encoder.simple_string_encoder(), ".csv"),
        (Encoder.simple_string_encoder(), ""),
        (JSON, ".ndjson"),
        (JSON, ".log"),
        (JSON, ""),
        (Encoder.csv(), ".tsv"),
        (GZIP, ".jsonl.gz"),
        (GZIP, ".gz"),
        (ParquetWriterFactory(), ".zstd.parquet"),
        (ParquetWriterFactory(), ".gz.parquet"),
        (ParquetWriterFactory(), ".pq"),
        (Packed(), ".parquet"),
        (Pipes(), ".gz"),
    ],
)
def test_a_suffix_of_ones_own_that_misleads_nobody(code, suffix):
    """Other spellings, endings that say nothing, and whatever a format of a user's own may hold."""
    make = FileSink.for_bulk_format if isinstance(code, BulkWriterFactory) else FileSink.for_row_format
    make("/data/x", code).with_output_file_config(OutputFileConfig(part_suffix=suffix)).build()


def test_no_suffix_is_that_of_format_and_codec():
    """Whoever names none gets the ending that readers expect."""
    for codec, ending in {"gzip": ".gz", "zstd": ".zst", "lz4": ".lz4", "bzip2": ".bz2", "xz": ".xz"}.items():
        factory = CompressWriterFactory(encoder=JSON, codec=codec)
        assert OutputFileConfig().suffix(factory.extension) == f".json{ending}"


def test_a_format_for_the_other_builder_says_which():
    """A bulk format among row formats, and the other way round."""
    with pytest.raises(ConfigError, match=r"use FileSink\.for_bulk_format\(path, ParquetWriterFactory"):
        FileSink.for_row_format("/data/x", ParquetWriterFactory())
    for encoder in (JSON, Pipes()):
        with pytest.raises(ConfigError, match=r"use FileSink\.for_row_format") as raised:
            FileSink.for_bulk_format("/data/x", encoder)
        assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    ("make", "given", "name"),
    [
        (lambda name: ParquetWriterFactory(compression=name).compression, "ZSTD", "zstd"),
        (lambda name: OrcBulkWriterFactory(compression=name).compression, "Snappy", "snappy"),
        (lambda name: AvroWriterFactory(compression=name).compression, "Deflate", "deflate"),
        (lambda name: Encoder.avro(name).compression, "NULL", "null"),
        (lambda name: ArrowWriterFactory(compression=name).compression, "LZ4", "lz4"),
        (lambda name: CompressWriterFactory(encoder=JSON, codec=name).codec, "GZIP", "gzip"),
        (lambda name: SequenceFileWriterFactory(codec=name).codec, "BZip2", "bzip2"),
        (lambda name: SequenceFileWriterFactory(compression=name).compression, "BLOCK", "block"),
    ],
)
def test_a_codec_may_be_written_in_any_case(make, given, name):
    """``ZSTD`` is ``zstd``; and what is no codec is refused with those there are."""
    assert make(given) == name
    with pytest.raises(FormatError, match=name):
        make("ZTSD")
