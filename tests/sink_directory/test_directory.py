"""What a path holds, for readers who have no Spark and may not write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import filesink
from filesink import ConfigError, Epoch, LiveFile, StateError
from filesink.ledger.record import BatchWrite, Upkeep
from filesink.sink_directory.opening import is_sink_directory
from tests.fakes import keep_open, plan_of
from tests.fakes import records as lines
from tests.sink_directory.written import SCHEMA, Written, records


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Three epochs: two of one sink, and one of another."""
    made = Written(tmp_path / "base")
    made.write(records(1, "a", "b"))
    made.write(records(2, "c"))
    made.write(records(1, "d"), uid="v")
    return made


def test_what_is_there(written: Written) -> None:
    """Version, files, rows and bytes; texts are for people."""
    directory = filesink.open(written.base)
    snapshot = directory.snapshot()
    assert (directory.version, snapshot.version, snapshot.rows, len(snapshot.files)) == (3, 3, 4, 3)
    assert snapshot.bytes == sum((written.base / file.path).stat().st_size for file in snapshot.files)
    assert directory.path == str(written.base)
    assert repr(directory) == f"<SinkDirectory '{written.base}'>"
    assert repr(snapshot) == f"<Snapshot 3: 3 files, 4 rows, {snapshot.bytes:,} bytes>"
    assert repr(snapshot.files) == "<3 files>"


def test_the_list_of_files(written: Written) -> None:
    """A sequence in the order of paths, whose values know where they come from."""
    files = filesink.open(written.base).snapshot().files
    assert [file.path for file in files] == sorted(file.path for file in files)
    assert {(file.bucket, file.sink, file.slot, file.added, file.rows) for file in files} == {
        ("k=1", "uid-u", 0, 1, 2), ("k=2", "uid-u", 1, 2, 1), ("k=1", "uid-v", 0, 3, 1),
    }  # fmt: skip
    assert isinstance(files[-1], LiveFile)
    assert files[-1] == list(files)[2]
    assert list(files[1:]) == list(files)[1:]
    assert list(files[::-1]) == list(files)[::-1]
    with pytest.raises(IndexError):
        files[3]
    with pytest.raises(IndexError):
        files[-4]


def test_the_list_as_a_table(written: Written) -> None:
    """For Arrow and pandas: a row for each file."""
    snapshot = filesink.open(written.base).snapshot()
    table = snapshot.to_arrow()
    assert table["path"].to_pylist() == [file.path for file in snapshot.files]
    assert table.column_names == list(LiveFile.__dataclass_fields__)
    assert list(snapshot.to_pandas()["rows"]) == [file.rows for file in snapshot.files]


def test_older_versions(written: Written) -> None:
    """By number and by moment; before the first there was nothing."""
    directory = filesink.open(written.base)
    moments = [epoch.visible for epoch in directory.epochs()]
    for version in range(4):
        assert directory.snapshot(at=version).version == version
        assert len(directory.snapshot(version).files) == version
    assert directory.snapshot(at=moments[1]).version == 2
    assert directory.snapshot(at=moments[1] - timedelta(milliseconds=1)).version == 1
    assert directory.snapshot(at=moments[0] - timedelta(days=1)).version == 0
    assert directory.snapshot(at=datetime.now(UTC)).version == 3


def test_epochs(written: Written) -> None:
    """What happened when; those after a version, for who follows."""
    directory = filesink.open(written.base)
    first, *_, last = directory.epochs()
    assert isinstance(first, Epoch)
    assert (first.version, first.kind, first.sink, first.slot, first.query_id, first.batch_id) == (
        1, "micro-batch", "uid-u", 0, "query-u", 0,
    )  # fmt: skip
    assert (first.mode, first.txn_id, first.rows, first.files, first.removed) == (None, None, 2, 1, 0)
    assert first.decided <= first.visible
    assert first.visible.tzinfo is UTC
    assert repr(last) == "<Epoch 3: micro-batch 0 of 'uid-v', 1 rows in, 1 files, 0 removed>"
    assert [epoch.version for epoch in directory.epochs(after=1)] == [2, 3]
    assert list(directory.epochs(after=3)) == []


def test_columns(written: Written) -> None:
    """Of the newest data, those in the directories included; and all that there were, by id."""
    directory = filesink.open(written.base)
    assert directory.schema() == SCHEMA
    (columns,) = directory.schemas().values()
    assert columns.equals(SCHEMA)
    wider = pa.RecordBatch.from_pydict({"k": [3], "value": ["e"], "more": [1]})
    written.write(wider.cast(pa.schema([*SCHEMA, pa.field("more", pa.int64())])))
    assert directory.schema().names == ["k", "value", "more"]
    assert [schema.names for schema in directory.schemas().values()] == [
        ["k", "value"],
        ["k", "value", "more"],
    ]


def test_sinks(written: Written) -> None:
    """How far each is."""
    one, other = filesink.open(written.base).sinks()
    assert (one.id, one.uid, one.query_id, one.slot, one.complete) == ("uid-u", "u", "query-u", 1, True)
    assert (other.id, other.uid, other.query_id, other.slot) == ("uid-v", "v", "query-v", 0)
    assert one.decided is not None
    assert (one.open_parts, one.open_rows, one.waiting_files, one.waiting_rows) == (0, 0, 0, 0)
    assert one.waiting_partitions == ()


def test_what_sinks_hold_back(tmp_path: Path) -> None:
    """Rows in parts that stay open; an epoch that is decided and not complete; other chains."""
    written = Written(tmp_path, partitions=())
    world = written.world
    world.plan = plan_of(policy=keep_open())
    world.driver().run(Upkeep(), world.job(lines("1", "2"), lines("3", bucket="x")))
    world.driver("appends").run(BatchWrite(writer="batch-1"), world.job(lines("4")))
    (tmp_path / "_filesink" / "appends" / "000000000000.complete").unlink()
    appends, stream = filesink.open(tmp_path).sinks()
    assert (stream.open_parts, stream.open_rows, stream.query_id) == (2, 3, None)
    assert (appends.id, appends.uid, appends.complete, appends.slot) == ("appends", None, False, 0)


def test_nothing_is_written_by_readers(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may only read can ask everything."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("put_if_absent", "delete", "discard", "create", "publish", "prepare"):
        monkeypatch.setattr(f"filesink.storage.local.store.LocalStore.{name}", refuse)
    directory = filesink.open(written.base)
    directory.sinks()
    directory.schemas()
    list(directory.epochs())
    assert directory.snapshot().dataset().to_table().num_rows == 4


@pytest.mark.parametrize("at", [-1, True, "1", 1.0, datetime(2026, 1, 1)])  # noqa: DTZ001 - that is what is refused
def test_a_version_that_is_none_is_refused(written: Written, at: object) -> None:
    """Moments need a time zone."""
    directory = filesink.open(written.base)
    with pytest.raises(ConfigError, match="at must be") as caught:
        directory.snapshot(at)
    assert caught.value.code == "BAD_VALUE"


@pytest.mark.parametrize("after", [-1, False, "1"])
def test_epochs_after_what_is_no_version_are_refused(written: Written, after: object) -> None:
    """Before anything is read."""
    with pytest.raises(ConfigError, match="after must be") as caught:
        filesink.open(written.base).epochs(after)
    assert caught.value.code == "BAD_VALUE"


def test_a_mistyped_path_is_an_error_that_says_where_to_look(written: Written) -> None:
    """Nothing there, something else there, and a directory of the sink."""
    base = written.base
    (base.parent / "data").mkdir()
    (base.parent / "data" / "x.parquet").write_bytes(b"")
    for path, code, hint in (
        (base.parent / "nowhere", "NO_PATH", "there is nothing at"),
        (base.parent / "data", "NO_SINK", "no sink has written to"),
        (base / "k=1", "NO_SINK", f"A sink has written to '{base}'"),
        (base.parent, "NO_SINK", f"A sink has written to '{base}'"),
        (base.parent / "bases", "NO_PATH", "there is nothing at"),
    ):
        for call in (filesink.open, filesink.adopt):
            with pytest.raises(ConfigError, match=hint) as caught:
                call(path)
            assert caught.value.code == code


@pytest.mark.parametrize("call", [filesink.open, filesink.adopt])
@pytest.mark.parametrize("given", [(None,), (1,), ("",), ("ftp://x",), ("/x", 1), ("/x", {"a": 1})])
def test_wrong_arguments_are_refused(call: object, given: tuple[object, ...]) -> None:
    """In our own words."""
    with pytest.raises(ConfigError):
        call(*given)  # type: ignore[operator]


def test_a_path_of_an_earlier_release_is_adopted(tmp_path: Path) -> None:
    """Its sinks are known without; for files and epochs it needs an inventory, which the error says."""
    written = Written(tmp_path)
    written.write(records(1, "a", "b"))
    written.forget_inventory()
    directory = filesink.open(tmp_path)
    assert len(directory.sinks()) == 1
    with pytest.raises(StateError, match=r"filesink\.adopt") as caught:
        directory.snapshot()
    assert caught.value.code == "NO_INVENTORY"
    adopted = filesink.adopt(tmp_path)
    assert (adopted.version, adopted.snapshot().rows, adopted.schema()) == (1, 2, SCHEMA)
    written.write(records(1, "c"))
    assert directory.snapshot().version == 2
    assert directory.snapshot().dataset().to_table()["value"].to_pylist() == ["a", "b", "c"]


def test_changes_lead_from_any_version_to_any_later_one(written: Written) -> None:
    """The files of a snapshot, less those removed, with those added, are those of the later snapshot."""
    written.overwrite(records(1, "e"))
    written.write(records(3, "f"))
    directory = filesink.open(written.base)
    for after in range(6):
        before = {file.path for file in directory.snapshot(after).files}
        for until in range(after, 6):
            found = directory.changes(after, until)
            added = {file.path for file in found.added}
            removed = dict(
                zip(*(found.removed[name].to_pylist() for name in ("path", "removed")), strict=True)
            )
            assert before - removed.keys() | added == {file.path for file in directory.snapshot(until).files}
            assert (removed.keys() <= before, added.isdisjoint(before)) == (True, True)
            assert set(removed.values()) <= {4}
            assert (found.after, found.version) == (after, until)
    assert repr(directory.changes(3)) == "<FileChanges 3 to 5: 2 files added, 3 removed>"


def test_changes_of_wrong_versions(written: Written) -> None:
    """Backwards, and beyond the newest."""
    directory = filesink.open(written.base)
    with pytest.raises(ConfigError, match="BAD_VALUE"):
        directory.changes(2, 1)
    for wrong in [(0, 9), (9, None)]:
        with pytest.raises(ConfigError, match="NO_VERSION"):
            directory.changes(*wrong)


def test_a_file_is_no_directory_of_a_sink(tmp_path: Path) -> None:
    """Who reads a single file asks this first."""
    (tmp_path / "lines.txt").write_text("a\n")
    assert not is_sink_directory(tmp_path / "lines.txt")
