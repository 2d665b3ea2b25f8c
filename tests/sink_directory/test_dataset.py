"""A snapshot as a dataset of Arrow: every row once, with the columns of the directories."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import compaction
import filesink
from filesink import ConfigError, Encoder, SchemaError, StateError, StorageError
from filesink.parts.file_format import BulkFormat, RowFormat
from filesink.storage.memory import MemoryStore
from formats import ArrowWriterFactory, OrcBulkWriterFactory, ParquetWriterFactory
from tests.sink_directory.written import SCHEMA, Written, records

FACTORIES = [ParquetWriterFactory(), OrcBulkWriterFactory(), ArrowWriterFactory()]


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: type(factory).__name__)
def test_every_row_once(tmp_path: Path, factory: object) -> None:
    """In each format that Arrow has datasets of; strangers' files beside ours are not seen."""
    written = Written(tmp_path, format=BulkFormat(factory))
    written.write(records(1, "a", "b"))
    written.write(records(2, "c"))
    (tmp_path / "k=1" / "stranger.parquet").write_bytes(b"")
    table = filesink.open(tmp_path).snapshot().dataset().to_table()
    assert sorted(table.select(["k", "value"]).to_pylist(), key=str) == [
        {"k": 1, "value": "a"},
        {"k": 1, "value": "b"},
        {"k": 2, "value": "c"},
    ]
    assert table.schema.field("k").type == pa.int32()


def test_partitions_are_pruned(tmp_path: Path) -> None:
    """A filter on what directories show reads no other file."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    written.write(records(2, "b"))
    snapshot = filesink.open(tmp_path).snapshot()
    for file in snapshot.files:
        if file.bucket == "k=1":
            (tmp_path / file.path).unlink()
    found = snapshot.dataset().to_table(filter=pc.field("k") == 2)
    assert found.to_pylist() == [{"k": 2, "value": "b"}]


def test_partitions_have_the_types_of_the_input(tmp_path: Path) -> None:
    """Days are days, null is null, and names may need escapes."""
    schema = pa.schema([("day", pa.date32()), ("a/b", pa.string()), ("v", pa.int64())])
    written = Written(tmp_path, partitions=("day", "a/b"))
    rows = {"day": [date(2026, 1, 31), None], "a/b": ["x=y/z", "%"], "v": [1, 2]}
    written.write(pa.RecordBatch.from_pydict(rows, schema=schema))
    snapshot = filesink.open(tmp_path).snapshot()
    table = snapshot.dataset().to_table().sort_by("v")
    assert table.to_pydict() == rows
    assert snapshot.schema == schema


def test_partitions_that_no_column_has_made_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of an assigner that names its directories itself."""
    monkeypatch.setattr("filesink.inventory.chains.kept_rows", lambda _store: {})  # who would know better
    written = Written(tmp_path)
    written.write(records(1, "a"))
    version = filesink.open(tmp_path).snapshot()
    (file,) = version.files
    (tmp_path / "day=x").mkdir()
    target = f"day=x/{file.path.rpartition('/')[2]}"
    (tmp_path / file.path).rename(tmp_path / target)
    (tmp_path / "_filesink" / "_inventory").rename(tmp_path / "away")
    snapshot = filesink.adopt(tmp_path).snapshot()
    assert snapshot.schema.field("day").type == pa.string()
    assert snapshot.dataset().to_table().select(["day", "value"]).to_pylist() == [{"day": "x", "value": "a"}]


def test_an_older_snapshot_is_read_as_it_was(tmp_path: Path) -> None:
    """While its files are there; then the error names file, version, and the version to read."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    directory = filesink.open(tmp_path)
    old = directory.snapshot()
    (file,) = old.files
    written.overwrite(records(1, "b"))
    assert directory.snapshot().dataset().to_table()["value"].to_pylist() == ["b"]
    with pytest.raises(StorageError, match=r"replaced since\. Read version 2") as caught:
        old.dataset().to_table()
    assert caught.value.code == "SNAPSHOT_GONE"
    assert file.path in caught.value.message
    assert "of version 1 of" in caught.value.message


def test_a_file_that_somebody_removed_by_hand_is_told(tmp_path: Path) -> None:
    """There is no other version to read."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    snapshot = filesink.open(tmp_path).snapshot()
    (tmp_path / snapshot.files[0].path).unlink()
    with pytest.raises(StorageError, match=r"no sink has removed it.*filesink\.adopt"):
        snapshot.dataset().to_table()


def test_columns_that_came_later_are_null_before(tmp_path: Path) -> None:
    """Of one sink, whose files go on from one another."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    wider = pa.schema([*SCHEMA, pa.field("more", pa.int64())])
    written.write(pa.RecordBatch.from_pydict({"k": [1], "value": ["b"], "more": [7]}, schema=wider))
    table = filesink.open(tmp_path).snapshot().dataset().to_table().sort_by("value")
    assert table["more"].to_pylist() == [None, 7]


def test_two_sinks_with_other_columns_are_named(tmp_path: Path) -> None:
    """Unless it is said that they are to be read together."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    other = pa.schema([SCHEMA.field("k"), pa.field("number", pa.int64())])
    written.write(pa.RecordBatch.from_pydict({"k": [1], "number": [7]}, schema=other), uid="v")
    snapshot = filesink.open(tmp_path).snapshot()
    assert snapshot.schema.names == ["k", "number"]
    with pytest.raises(
        SchemaError, match="'uid-v' have a column 'number', and those of sink 'uid-u'"
    ) as caught:
        snapshot.dataset()
    assert caught.value.code == "TWO_SCHEMAS"
    table = snapshot.dataset(on_other_schema="union").to_table().sort_by("number")
    assert table.select(["number", "value"]).to_pylist() == [
        {"number": 7, "value": None},
        {"number": None, "value": "a"},
    ]
    with pytest.raises(ConfigError, match="on_other_schema must be 'refuse' or 'union'"):
        snapshot.dataset(on_other_schema="other")


def test_two_sinks_with_other_types_are_named(tmp_path: Path) -> None:
    """Nobody can read them as one table."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    other = pa.schema([SCHEMA.field("k"), pa.field("value", pa.int64())])
    written.write(pa.RecordBatch.from_pydict({"k": [1], "value": [7]}, schema=other), uid="v")
    for choice in ("refuse", "union"):
        with pytest.raises(
            SchemaError, match="'value' is int64 in files of sink 'uid-v', and string"
        ) as caught:
            filesink.open(tmp_path).snapshot().dataset(on_other_schema=choice)
        assert caught.value.code == "TWO_SCHEMAS"


def test_formats_that_arrow_has_no_datasets_of(tmp_path: Path) -> None:
    """Lines of text are not guessed at."""
    written = Written(tmp_path, format=RowFormat(Encoder.json_lines()))
    written.write(records(1, "a"))
    with pytest.raises(ConfigError, match=r"no dataset of files such as .*\.json") as caught:
        filesink.open(tmp_path).snapshot().dataset()
    assert caught.value.code == "NO_READER"


def test_two_formats_in_one_directory_are_told(tmp_path: Path) -> None:
    """Both are named."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    other = Written(tmp_path, format=BulkFormat(OrcBulkWriterFactory()))
    other.world.ids = written.world.ids
    other.world.clock = written.world.clock
    other.write(records(1, "b"), uid="v")
    with pytest.raises(SchemaError, match=r"of format '(orc|parquet)', and .* of '(orc|parquet)'") as caught:
        filesink.open(tmp_path).snapshot().dataset()
    assert caught.value.code == "TWO_FORMATS"


def test_an_empty_snapshot_has_no_records(tmp_path: Path) -> None:
    """And the columns of the epochs before, if any epoch has noted some."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    directory = filesink.open(tmp_path)
    with pytest.raises(StateError, match="no files") as caught:
        directory.snapshot(at=0).dataset()
    assert caught.value.code == "NO_SCHEMA"
    written.overwrite(pa.RecordBatch.from_pydict({"k": [], "value": []}, schema=SCHEMA))
    snapshot = directory.snapshot()
    assert len(snapshot.files) == 0
    assert snapshot.dataset().to_table().num_rows == 0
    assert snapshot.schema == SCHEMA
    assert (snapshot.rows, snapshot.bytes) == (0, 0)


def test_other_stores_are_read_through_the_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Arrow cannot open files by itself, our store does."""
    name = "memory://dataset"
    written = Written(tmp_path)
    written.write(records(1, "a", "b"))
    from filesink.storage.open import open_store

    store = open_store(name, {})
    assert isinstance(store, MemoryStore)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            store.put_if_absent(str(file.relative_to(tmp_path)), file.read_bytes())
    snapshot = filesink.open(name).snapshot()
    assert snapshot.dataset().to_table()["value"].to_pylist() == ["a", "b"]
    store.delete(snapshot.files[0].path)
    with pytest.raises(StorageError) as caught:
        snapshot.dataset().to_table()
    assert caught.value.code == "SNAPSHOT_GONE"
    monkeypatch.undo()


def test_columns_outlive_a_compaction(tmp_path: Path) -> None:
    """What it makes of files has no columns noted: those of the newest files that have some may be fewer."""
    written = Written(tmp_path)
    written.write(records(1, "a"))
    for value in "bc":
        more = {"k": pa.array([2], pa.int32()), "value": [value], "new": pa.array([7], pa.int64())}
        written.write(pa.RecordBatch.from_pydict(more))
    before = filesink.open(tmp_path).snapshot()
    compaction.compact(tmp_path, ParquetWriterFactory())
    after = filesink.open(tmp_path).snapshot()
    assert [file.schema for file in after.files].count("") == 1
    assert after.schema == after.columns() == before.columns()
    assert after.dataset().to_table()["new"].to_pylist() == [None, 7, 7]


def test_types_outlive_a_compaction(tmp_path: Path) -> None:
    """The files that are left as they were have the narrower type."""
    written = Written(tmp_path)
    for k, value, kind in ((1, 1, pa.int32()), (2, 1 << 40, pa.int64()), (2, 2, pa.int64())):
        written.write(
            pa.RecordBatch.from_pydict({"k": pa.array([k], pa.int32()), "value": pa.array([value], kind)})
        )
    compaction.compact(tmp_path, ParquetWriterFactory())
    table = filesink.open(tmp_path).snapshot().dataset().to_table()
    assert sorted(table["value"].to_pylist()) == [1, 2, 1 << 40]


def test_a_snapshot_can_only_be_read(tmp_path: Path) -> None:
    """Its file system writes and removes nothing."""
    import pyarrow.fs as pf

    written = Written(tmp_path)
    written.write(records(1, "a"))
    snapshot = filesink.open(tmp_path).snapshot()
    files = pf.PyFileSystem(snapshot._store_files())
    path = snapshot.files[0].path
    for change in (
        lambda: files.delete_file(path),
        lambda: files.move(path, "x"),
        lambda: files.copy_file(path, "x"),
        lambda: files.create_dir("x"),
        lambda: files.delete_dir("k=1"),
        lambda: files.delete_dir_contents("k=1"),
        lambda: files.open_output_stream("x"),
        lambda: files.open_append_stream("x"),
    ):
        with pytest.raises(StorageError, match="can only be read"):
            change()
    assert files.get_file_info([path])[0].type is pf.FileType.File
    assert files.get_file_info(pf.FileSelector("")) == []
    with files.open_input_stream(path) as stream:
        assert stream.read(4) == b"PAR1"
