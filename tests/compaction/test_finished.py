"""Small files that are visible already: planned, merged, removed; and left alone if they are not ours."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import compaction
import filesink
from compaction.offline import groups
from filesink import CompactionError, ConfigError
from filesink.commit.committer import FileCommitter
from filesink.commit.layout_guard import OnOtherLayout
from filesink.ledger.identity import batch_write
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite
from filesink.naming import OutputFileConfig
from filesink.parts.file_format import BulkFormat
from filesink.save_mode import SaveMode
from filesink.storage.api import Removal
from filesink.storage.local.store import LocalStore
from filesink.storage.open import open_store
from formats import (
    CompressWriterFactory,
    Encoder,
    OrcBulkWriterFactory,
    ParquetEncryption,
    ParquetLayout,
    ParquetWriterFactory,
)
from tests.fakes import World, micro_batch, plan_of, records
from tests.formats.bulk.test_parquet import Kms

PARQUET = ParquetWriterFactory(compression="zstd")


def any_layout(**options) -> World:
    """A world whose sinks may write what does not go with what is there."""
    return World(on_other_layout=OnOtherLayout.ALLOW, **options)


def filled(base: Path, *, form=None, files=5, uid="u") -> World:
    """A sink that has published small files in the buckets x and y."""
    world = World(
        on_other_layout=OnOtherLayout.ALLOW,
        plan=plan_of(form),
        uid=uid,
        open_store=lambda: open_store(base, {}),
    )
    driver = world.driver()
    for number in range(files):
        driver.run(micro_batch(number), world.job(records(f"{number}", bucket="x")))
    driver.run(micro_batch(files), world.job(records("last", bucket="y")))
    return world


def names(base: Path) -> list[str]:
    """What a reader lists."""
    found = (path.relative_to(base) for path in base.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(part[0] in "._" for part in path.parts))


def hidden(base: Path) -> list[str]:
    """Hidden files outside of ledgers."""
    return [str(path) for path in base.rglob(".*") if "_filesink" not in path.parts]


def test_parquet_by_records(tmp_path):
    """One file of the same records, with codec, metadata and schema of the format; other buckets stay."""
    factory = replace(PARQUET, metadata={"who": "us"})
    filled(tmp_path, form=BulkFormat(factory))
    planned = compaction.plan(tmp_path)
    assert (len(planned.groups), planned.files) == (1, 5)
    before = names(tmp_path)
    report = compaction.compact(tmp_path, factory)
    assert [(file.rows, file.bucket) for file in report.files] == [(5, "x")]
    (path,) = (tmp_path / "x").glob("*.parquet")
    file = pq.ParquetFile(path)
    values = file.read().column("value").to_pylist()
    assert sorted(values) == ["0", "1", "2", "3", "4"]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.metadata.metadata[b"who"] == b"us"
    assert [name for name in names(tmp_path) if name in before] == [name for name in before if name[0] == "y"]
    assert hidden(tmp_path) == []
    assert compaction.compact(tmp_path, factory) is None


def test_text_by_bytes(tmp_path):
    """Lines are joined; the sink goes on afterwards as if nothing had happened."""
    world = filled(tmp_path)
    compaction.compact(tmp_path, Encoder.simple_string_encoder(), bucket="x")
    (path,) = (tmp_path / "x").glob("part-*")
    assert sorted(path.read_text().split()) == ["0", "1", "2", "3", "4"]
    (file,) = (file for file in filesink.open(tmp_path).snapshot().files if file.bucket == "x")
    assert file.rows == 5
    world.driver().run(micro_batch(6), world.job(records("more", bucket="x")))
    assert len(names(tmp_path / "x")) == 2


def test_files_of_several_prefixes_stay_apart(tmp_path):
    """Who reads some of them by their names finds after the merge what was there before."""
    for number, prefix in enumerate(["part", "events"] * 2):
        plan = plan_of(names=OutputFileConfig(part_prefix=prefix))
        world = World(
            on_other_layout=OnOtherLayout.ALLOW, plan=plan, open_store=lambda: open_store(tmp_path, {})
        )
        world.driver().run(micro_batch(number), world.job(records(f"{number}", bucket="x")))
    compaction.compact(tmp_path, Encoder.simple_string_encoder())
    found = {path.name.partition("-")[0]: path.read_text() for path in tmp_path.glob("x/*-*")}
    assert found == {"part": "0\n2\n", "events": "1\n3\n"}
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize(
    "call",
    [
        compaction.plan,
        lambda path, **options: compaction.compact(path, Encoder.simple_string_encoder(), **options),
        compaction.files,
    ],
    ids=["plan", "compact", "files"],
)
def test_options_of_the_store_get_there(tmp_path, call):
    """A local directory takes none, and says so; the same path without options is read."""
    filled(tmp_path, files=1)
    with pytest.raises(ConfigError, match="do not apply") as raised:
        call(tmp_path, storage_options={"key": "hunter2"})
    assert raised.value.code == "UNKNOWN_OPTION"
    call(tmp_path)


def test_files_that_are_large_enough_stay(tmp_path):
    """With a small target nothing is merged, and nothing is written."""
    filled(tmp_path)
    assert compaction.plan(tmp_path, target_size=1).groups == ()
    before = names(tmp_path)
    assert compaction.compact(tmp_path, Encoder.simple_string_encoder(), target_size=2) is None
    assert names(tmp_path) == before


def test_files_fill_an_output_until_it_has_the_target_size(tmp_path):
    """Each output is begun anew, and none is larger than the target and one more input."""
    filled(tmp_path, files=7)  # of two bytes each
    for target_size in (5, 6):
        planned = compaction.plan(tmp_path, target_size=target_size)
        assert [len(group.files) for group in planned.groups] == [3, 3]
        assert (planned.files, planned.bytes) == (6, 12)


def test_a_file_of_the_target_size_is_no_small_one(tmp_path):
    """It is left alone, though one that is smaller comes before it."""
    world = any_layout(open_store=lambda: open_store(tmp_path, {}))
    for number, value in enumerate(["", "1"]):
        world.driver().run(micro_batch(number), world.job(records(value, bucket="x")))
    assert compaction.plan(tmp_path, target_size=2).groups == ()
    assert compaction.plan(tmp_path, target_size=3).files == 2


def test_the_size_that_is_aimed_at_is_that_of_the_documentation(tmp_path):
    """128 MiB, of what is planned and of what is done."""
    filled(tmp_path, files=2)
    shutil.rmtree(tmp_path / "_filesink" / "_inventory")  # it knows other sizes

    def resize(size):
        for path in tmp_path.glob("x/part-*"):
            os.truncate(path, size)

    text = Encoder.simple_string_encoder()
    resize(128 << 20)
    assert (compaction.plan(tmp_path).files, compaction.compact(tmp_path, text)) == (0, None)
    resize((128 << 20) - 1)
    assert compaction.plan(tmp_path).files == 2
    resize(1 << 20)
    compaction.compact(tmp_path, text)
    assert [path.stat().st_size for path in tmp_path.glob("x/part-*")] == [2 << 20]


def test_what_is_not_ours_stays(tmp_path):
    """Files of others, also under names that look like ours, and those of an epoch that is not complete."""
    world = filled(tmp_path, files=2)
    strangers = ["x/data.txt", "x/part-0badcafe-0000-8001-8000-000000000000-0", "x/part-1"]
    for name in strangers:
        (tmp_path / name).write_text("mine")
    ours = next(tmp_path.glob("x/part-*-0"))
    (tmp_path / "x" / f"{ours.name[:-1]}1").symlink_to(tmp_path / strangers[0])
    (tmp_path / "x" / f"{ours.name[:-1]}2").mkdir()
    assert compaction.plan(tmp_path).files == 2
    last = world.ledger().head().record.slot
    (tmp_path / "_filesink" / "uid-u" / f"{last:012d}.complete").unlink()
    assert compaction.plan(tmp_path).files == 2
    (tmp_path / "_filesink" / "uid-u" / f"{last:012d}.record").unlink()
    (tmp_path / "_filesink" / "uid-u" / f"{last - 1:012d}.complete").unlink()
    assert compaction.plan(tmp_path).files == 0
    assert all((tmp_path / name).read_text() == "mine" for name in strangers)


@pytest.mark.parametrize("below", ["x", "typo/x"])
def test_a_path_that_is_no_base_path_is_refused(tmp_path, below):
    """Nothing is made there, so that a bucket goes on to belong to its sink."""
    filled(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    text = Encoder.simple_string_encoder()
    for call in (compaction.plan, lambda path: compaction.compact(path, text), compaction.files):
        with pytest.raises(ConfigError, match="name that as bucket") as raised:
            call(tmp_path / below)
        assert raised.value.code == "NO_SINK"
        assert str(tmp_path / below) in raised.value.message
    assert sorted(tmp_path.rglob("*")) == before
    assert compaction.plan(tmp_path, bucket="x").files == 5
    assert compaction.plan(tmp_path, bucket="x/") == compaction.plan(tmp_path, bucket="x")
    assert len(compaction.files(tmp_path, bucket="x")) == len(compaction.files(tmp_path, bucket="x/")) == 5


def test_nothing_is_compacted_where_nothing_can_be_removed(tmp_path, monkeypatch):
    """Else readers would see what was merged beside what it was merged into, for ever."""
    filled(tmp_path)
    before = names(tmp_path)
    monkeypatch.setattr(LocalStore, "removal", lambda _store: Removal.REFUSED)
    with pytest.raises(ConfigError) as raised:
        compaction.compact(tmp_path, Encoder.simple_string_encoder())
    assert raised.value.code == "NO_REMOVAL"
    assert names(tmp_path) == before


def test_there_is_nothing_to_read_before_the_first_epoch(tmp_path):
    """A sink that has started and decided nothing has no files: a reader is told so, as ``plan`` does."""
    open_store(tmp_path, {}).prepare()
    for call in (compaction.plan, compaction.files):
        with pytest.raises(ConfigError) as raised:
            call(tmp_path)
        assert raised.value.code == "NO_SINK"


def test_a_crash_after_the_decision_is_carried_through(tmp_path, monkeypatch):
    """The next call publishes what was decided and removes the inputs; no row is lost or stays twice."""
    filled(tmp_path)

    def crash(_self, _replaced):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FileCommitter, "_remove", crash)
        with pytest.raises(KeyboardInterrupt):
            compaction.compact(tmp_path, Encoder.simple_string_encoder())
    assert len(names(tmp_path / "x")) == 6
    assert compaction.compact(tmp_path, Encoder.simple_string_encoder()) is None
    (path,) = (tmp_path / "x").glob("part-*")
    assert len(path.read_text().split()) == 5
    assert Ledger(open_store(tmp_path, {}), "exclusive").head().complete


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (Encoder.csv(header=True), "header"),
        (ParquetWriterFactory(layout=ParquetLayout(sorted_by=["value"])), "sorted_by"),
        (CompressWriterFactory(encoder=Encoder.json_lines()), "cannot be read back"),
    ],
    ids=["CSV", "Parquet", "JSON"],
)
def test_what_cannot_be_merged_is_refused(tmp_path, form, said):
    """Headers are known to a sink only, an order is lost, and not all files can be read back."""
    filled(tmp_path, files=2)
    before = names(tmp_path)
    with pytest.raises(ConfigError, match=said) as raised:
        compaction.compact(tmp_path, form)
    assert raised.value.code == "COMPACTION"
    assert names(tmp_path) == before


def test_sizes_are_sizes(tmp_path):
    """A word is none."""
    filled(tmp_path, files=1)
    with pytest.raises(ConfigError, match="target_size"):
        compaction.plan(tmp_path, target_size="big")


@pytest.mark.parametrize("form", [Encoder.simple_string_encoder(), PARQUET])
def test_a_file_that_somebody_removes_meanwhile(tmp_path, monkeypatch, form):
    """The call fails and says which; nothing was changed, and the next call merges what is left."""
    filled(tmp_path, form=form if form is not PARQUET else BulkFormat(PARQUET))
    before = names(tmp_path)
    open_input = LocalStore.open_input

    def too_late(store, path):
        (tmp_path / path).unlink(missing_ok=True)
        return open_input(store, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "open_input", too_late)
        with pytest.raises(CompactionError, match="removed after it was listed") as raised:
            compaction.compact(tmp_path, form)
    assert raised.value.code == "GONE"
    (gone,) = set(before) - set(names(tmp_path))
    assert gone in raised.value.message
    assert [file.rows for file in compaction.compact(tmp_path, form).files] == [4]
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("content", ["", "longer\n"])
def test_a_file_that_somebody_writes_over_meanwhile(tmp_path, monkeypatch, content):
    """It is not joined, cut or with rows of others: the call fails, and every file is left alone."""
    filled(tmp_path)
    before = names(tmp_path)
    open_input = LocalStore.open_input

    def too_late(store, path):
        if path in before:
            (tmp_path / path).write_text(content)
        return open_input(store, path)

    monkeypatch.setattr(LocalStore, "open_input", too_late)
    with pytest.raises(CompactionError, match="changed meanwhile") as raised:
        compaction.compact(tmp_path, Encoder.simple_string_encoder())
    assert raised.value.code == "SIZE"
    assert (names(tmp_path), hidden(tmp_path)) == (before, [])


def test_dead_letters_are_not_joined_with_records(tmp_path):
    """They are Parquet beside rows of text, and of another number of columns: nobody merges them."""
    filled(tmp_path, files=2)
    (source,) = (tmp_path / "y").glob("part-*")
    letters = tmp_path / "_dead_letters" / "y"
    letters.mkdir(parents=True)
    for number in range(2):  # with names of the sink, of an epoch that is complete
        (letters / f"{source.name[:-1]}{number}").write_bytes(b"PAR1")
    assert compaction.plan(tmp_path).files == 2
    compaction.compact(tmp_path, Encoder.simple_string_encoder())
    assert [path.read_bytes() for path in letters.iterdir()] == [b"PAR1"] * 2


@pytest.mark.parametrize("other", [Encoder.simple_string_encoder(), Encoder.json_lines()])
def test_files_of_another_format_are_not_joined(tmp_path, other):
    """Parquet after Parquet is no Parquet: the error says which files, and nothing was changed, nor text."""
    filled(tmp_path, form=BulkFormat(PARQUET))
    text = any_layout(uid="text", open_store=lambda: open_store(tmp_path, {}))
    for _ in range(2):
        text.driver().run(BatchWrite(), text.job(records("1", bucket="x")))
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with pytest.raises(CompactionError, match=r"of 'x' are named '\.parquet'") as raised:
        compaction.compact(tmp_path, other)
    assert raised.value.code == "FORMAT"
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before
    assert hidden(tmp_path) == []


def of_several_schemas(base: Path, factory, *tables: dict, bucket="x") -> None:
    """One file of each table, in one bucket."""
    world = World(
        on_other_layout=OnOtherLayout.ALLOW,
        plan=plan_of(BulkFormat(factory)),
        uid=None,
        open_store=lambda: open_store(base, {}),
    )
    world.ids.made = 1000 * len(list(base.iterdir()))  # other ids than those of an earlier call
    for table in tables:
        rows = len(next(iter(table.values())))
        batch = pa.RecordBatch.from_pydict({"bucket": [bucket] * rows, **table})
        sink_id, cause = batch_write(SaveMode.APPEND, None, "", world.ids)
        world.driver(sink_id).run(cause, world.job(batch, schema=batch.schema))


@pytest.mark.parametrize("factory", [PARQUET, OrcBulkWriterFactory()])
def test_files_that_cannot_be_merged_keep_no_others_from_it(tmp_path, factory):
    """The error comes when the others are merged: it names the directory, and what can be done."""
    of_several_schemas(tmp_path, factory, {"n": [1]}, {"n": ["text"]}, bucket="bad")
    of_several_schemas(tmp_path, factory, {"n": [1]}, {"n": [2]}, bucket="good")
    before = names(tmp_path / "bad")
    for _ in range(2):  # the second time nothing else is left to do
        with pytest.raises(CompactionError, match="2 files of 'bad'") as raised:
            compaction.compact(tmp_path, factory)
        assert raised.value.code == "SCHEMA"
        assert "disable_compact" not in raised.value.message
        assert (names(tmp_path / "bad"), len(names(tmp_path / "good"))) == (before, 1)
        assert hidden(tmp_path) == []
    assert compaction.compact(tmp_path, factory, bucket="good") is None
    assert len(compaction.files(tmp_path)) == 3


def test_several_directories_that_cannot_be_merged(tmp_path):
    """They are counted; a damaged file is one of them, and the report of the others is in the ledger."""
    for bucket in ("a", "b", "c"):
        of_several_schemas(tmp_path, PARQUET, {"n": [1]}, {"n": ["t" if bucket == "b" else 2]}, bucket=bucket)
    damaged = min((tmp_path / "a").iterdir())
    damaged.write_bytes(b"PAR1 no footer".ljust(damaged.stat().st_size))
    with pytest.raises(CompactionError, match=r"read back.*except 1 more") as raised:
        compaction.compact(tmp_path, PARQUET)
    assert raised.value.code == "INPUT"
    assert [len(names(tmp_path / bucket)) for bucket in ("a", "b", "c")] == [2, 2, 1]
    with pytest.raises(CompactionError, match=r"read back|different schemas"):
        compaction.compact(tmp_path, PARQUET)
    newest = Ledger(open_store(tmp_path, {}), "exclusive").head()
    assert newest is not None
    assert newest.record.slot == 0, "a call that can merge nothing decides nothing"


def test_what_has_expired_goes_though_nothing_can_be_merged(tmp_path):
    """Inputs of earlier calls are removed as their grace ends."""
    of_several_schemas(tmp_path, PARQUET, {"n": [1]}, {"n": [2]}, bucket="good")
    compaction.compact(tmp_path, PARQUET, reader_grace=1)
    of_several_schemas(tmp_path, PARQUET, {"n": [1]}, {"n": ["text"]}, bucket="bad")
    time.sleep(0.1)
    with pytest.raises(CompactionError, match="of 'bad'"):
        compaction.compact(tmp_path, PARQUET)
    assert len(names(tmp_path)) == 3


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        ({"Value": [1]}, {"value": [2]}, "'value'"),
        ({"s": [{"a": 1}]}, {"s": [{"A": 2}]}, r"'s\.a'"),
        ({"list": [[{"a": 1}]]}, {"list": [[{"A": 2}]]}, r"'list\[\]\.a'"),
    ],
)
def test_names_that_differ_only_in_case_do_not_get_into_one_file(tmp_path, first, second, named):
    """Each file can be read by itself; Spark could not read the merged one."""
    of_several_schemas(tmp_path, PARQUET, first, second)
    before = names(tmp_path)
    with pytest.raises(CompactionError, match=f"{named} has another column") as raised:
        compaction.compact(tmp_path, PARQUET)
    assert raised.value.code == "SCHEMA"
    assert (names(tmp_path), hidden(tmp_path)) == (before, [])


def test_names_that_a_file_has_side_by_side_already(tmp_path):
    """Merging makes it no worse, so it is not refused."""
    of_several_schemas(tmp_path, PARQUET, {"A": [1], "a": [2]}, {"a": [3], "b": [4]})
    compaction.compact(tmp_path, PARQUET)
    (path,) = (tmp_path / "x").glob("*.parquet")
    table = pq.ParquetFile(path).read()
    assert sorted(row["a"] for row in table.to_pylist()) == [2, 3]


@pytest.mark.parametrize("factory", [PARQUET, OrcBulkWriterFactory()])
def test_times_of_several_zones(tmp_path, factory):
    """They are instants, and stay the same ones in UTC; inside of nested columns too."""
    zones = [UTC, ZoneInfo("Europe/Berlin")]
    instant = datetime(2024, 1, 1, tzinfo=UTC)
    tables = []
    for zone in zones:
        kind = pa.timestamp("us", str(zone))
        tables.append(
            {
                "at": pa.array([instant], kind),
                "all": pa.array([[instant]], pa.list_(kind)),
                "plain": pa.array([instant.replace(tzinfo=None)], pa.timestamp("us")),
            }
        )
    of_several_schemas(tmp_path, factory, *tables)
    compaction.compact(tmp_path, factory)
    (path,) = (tmp_path / "x").glob("part-*")
    with path.open("rb") as stream:
        rows = [row for batch in factory.open_reader(stream) for row in batch.to_pylist()]
    plain = instant.replace(tzinfo=None)
    assert rows == [{"at": instant, "all": [instant], "plain": plain}] * 2
    assert str(rows[0]["at"].tzinfo) == "UTC"


@pytest.mark.parametrize("factory", [PARQUET, OrcBulkWriterFactory()])
def test_decimals_that_no_type_of_spark_holds(tmp_path, factory):
    """Each file can be read by itself; the merged one would have 46 digits, and nobody could."""
    tables = [{"d": pa.array([Decimal(1)], pa.decimal128(38, scale))} for scale in (2, 10)]
    of_several_schemas(tmp_path, factory, *tables)
    before = names(tmp_path)
    with pytest.raises(CompactionError, match="more than 38 digits") as raised:
        compaction.compact(tmp_path, factory)
    assert raised.value.code == "SCHEMA"
    assert (names(tmp_path), hidden(tmp_path)) == (before, [])


@pytest.mark.parametrize("factory", [PARQUET, OrcBulkWriterFactory()])
def test_long_names_that_begin_alike(tmp_path, factory):
    """They are columns of their own, and none is left out."""
    long = "n" * 150
    of_several_schemas(tmp_path, factory, {f"{long}1": ["a"]}, {f"{long}2": ["b"]})
    compaction.compact(tmp_path, factory)
    (path,) = (tmp_path / "x").glob("part-*")
    with path.open("rb") as stream:
        rows = [row for batch in factory.open_reader(stream) for row in batch.to_pylist()]
    assert [{name: value for name, value in row.items() if value} for row in rows] == [
        {f"{long}1": "a"},
        {f"{long}2": "b"},
    ]


def test_a_merge_that_loses_records_changes_nothing(tmp_path, monkeypatch):
    """What was written is counted before an input goes."""
    filled(tmp_path, form=BulkFormat(PARQUET))
    before, merge = names(tmp_path), groups.merge_records
    monkeypatch.setattr(groups, "merge_records", lambda inputs, *rest: merge(inputs[:-1], *rest))
    with pytest.raises(CompactionError) as error:
        compaction.compact(tmp_path, PARQUET)
    assert error.value.code == "ROWS"
    assert (names(tmp_path), hidden(tmp_path)) == (before, [])


def test_encrypted_files_are_merged_into_an_encrypted_one(tmp_path):
    """With the keys of the format, which is the only way to read them."""
    factory = ParquetWriterFactory(encryption=ParquetEncryption(open_kms=Kms, footer_key="foot"))
    of_several_schemas(tmp_path, factory, {"n": [1]}, {"n": [2]})
    compaction.compact(tmp_path, factory)
    (path,) = (tmp_path / "x").glob("*.parquet")
    with path.open("rb") as file:
        assert sorted(n for batch in factory.open_reader(file) for n in batch["n"].to_pylist()) == [1, 2]
    with pytest.raises(OSError, match="encrypted"):
        pq.read_table(path)


def test_a_directory_that_is_none_is_refused(tmp_path):
    """A mistyped day must not look like one with nothing to do, or nothing to read."""
    filled(tmp_path)
    text = Encoder.simple_string_encoder()
    for call in (compaction.plan, partial(compaction.compact, form=text), compaction.files):
        with pytest.raises(ConfigError, match="Did you mean 'x'") as raised:
            call(tmp_path, bucket="xx")
        assert raised.value.code == "NO_DIRECTORY"
        with pytest.raises(ConfigError, match="Name one that a sink has written"):
            call(tmp_path, bucket="day=1/")
    assert len(names(tmp_path / "x")) == 5
