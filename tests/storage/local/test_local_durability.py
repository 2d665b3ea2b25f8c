"""In which order the local store makes files durable, and what it does when that fails."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from filesink.errors import StorageError
from filesink.storage.api import PutResult
from filesink.storage.faulty import Moment
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.sync import MAX_UNSYNCED
from tests.contracts.store_site import finish, hidden
from tests.storage.scripted_fs import DATA, TARGET, ScriptedFs, contents, fail_on, local, write


@pytest.fixture
def fs(tmp_path: Path) -> ScriptedFs:
    """A file system that can be told to fail."""
    return ScriptedFs(PosixFs(str(tmp_path)))


def test_short_writes_are_continued(fs: ScriptedFs) -> None:
    """The system may take fewer bytes than it is given, in files and in records."""
    fs.longest_write = 7
    store = local(fs)
    finish(store, write(store), TARGET)
    store.put_if_absent("l/0", DATA)
    assert contents(fs.base) == {TARGET: DATA, "l/0": DATA}


def test_a_write_that_takes_nothing_fails(fs: ScriptedFs) -> None:
    """A system that takes no byte and reports no error does not hang the task."""
    fs.longest_write = 0
    with pytest.raises(StorageError):
        write(local(fs))
    assert contents(fs.base) == {}


def test_a_failed_write_cannot_be_papered_over(fs: ScriptedFs) -> None:
    """Whoever goes on after a torn write is stopped at close, since bytes would stand twice."""
    fs.longest_write = 7
    output = local(fs).create(hidden(TARGET), target=TARGET)
    fs.fail = lambda _number, name: (
        (Moment.BEFORE, errno.ENOSPC) if name == "write" and fs.calls[-1][0] == "write" else None
    )
    with pytest.raises(StorageError):
        output.write(DATA)
    fs.fail = lambda _number, _name: None
    output.write(DATA)
    with pytest.raises(StorageError, match="earlier write failed"):
        output.close()
    output.discard()
    assert (fs.handles, contents(fs.base)) == ({}, {})


def test_a_failing_fsync_is_not_repeated(fs: ScriptedFs) -> None:
    """The kernel reports a lost page once; a second fsync would succeed without the bytes."""
    store = local(fs)
    outputs = [store.create(hidden(f"b/part-{n}-0"), target=None) for n in range(3)]
    for output in outputs:
        output.write(DATA)
        output.close()
    failed: list[int] = []

    def fail_first(number: int, name: str) -> tuple[Moment, int] | None:
        if name != "fsync" or failed:
            return None
        failed.append(number)
        return Moment.BEFORE, errno.EIO

    fs.fail = fail_first
    with pytest.raises(StorageError) as raised:
        store.sync()
    assert raised.value.code == "IO"
    assert len([name for name, _ in fs.calls if name == "fsync"]) == 3
    assert fs.handles == {}
    store.sync()
    assert len([name for name, _ in fs.calls if name == "fsync"]) == 3


def test_an_early_fsync_that_failed_is_not_forgotten(fs: ScriptedFs) -> None:
    """When files are synced before the end because they are many, ``sync`` still tells of the loss, once."""
    fs.fail = fail_on("fsync", Moment.BEFORE, errno.EIO)
    store = local(fs)
    with pytest.raises(StorageError):  # noqa: PT012 - which of the closes syncs is not the claim
        for number in range(MAX_UNSYNCED):
            output = store.create(hidden(f"b/part-{number}-0"), target=None)
            output.write(DATA)
            output.close()
    fs.fail = lambda _number, _name: None
    with pytest.raises(StorageError):
        store.sync()
    assert fs.handles == {}
    write(store)


def test_everything_is_durable_before_an_epoch_is_decided(fs: ScriptedFs) -> None:
    """After ``sync`` each file was fsynced after its last byte, then its directory and all above it."""
    store = local(fs)
    write(store)
    names = [name for name, _ in fs.calls]
    assert names.index("write") < names.index("fsync") < names.index("fsync_directory")
    assert {path for name, path in fs.calls if name == "fsync_directory"} == {"", "dt=1", "dt=1/h=2"}
    assert names.count("fsync_directory") == 3


def test_directories_that_another_attempt_made_are_synced(fs: ScriptedFs, tmp_path: Path) -> None:
    """Who made a directory may have died before it was durable, so finding it is not enough."""
    (tmp_path / "dt=1" / "h=2").mkdir(parents=True)
    write(local(fs))
    assert {path for name, path in fs.calls if name == "fsync_directory"} == {"", "dt=1", "dt=1/h=2"}


def test_directories_whose_sync_has_failed_are_not_taken_for_durable(fs: ScriptedFs) -> None:
    """Who tries once more, with the directories that are there by then, syncs all of them."""
    store = local(fs)
    fs.fail = fail_on("fsync_directory", Moment.BEFORE, errno.EMFILE)
    with pytest.raises(StorageError):
        write(store)
    fs.fail = lambda _number, _name: None
    fs.calls.clear()
    write(store, "dt=1/h=2/part-b-0")
    assert {path for name, path in fs.calls if name == "fsync_directory"} == {"", "dt=1", "dt=1/h=2"}


def test_directories_above_are_synced_once(fs: ScriptedFs) -> None:
    """Ten epochs with many files cost one directory fsync each, besides the first."""
    store = local(fs)
    write(store)
    fs.calls.clear()
    for epoch in range(10):
        store.put_if_absent(f"dt=1/h=2/{epoch}", DATA)
    assert [path for name, path in fs.calls if name == "fsync_directory"] == ["dt=1/h=2"] * 10


def test_a_published_name_is_durable_before_sync_directories_returns(fs: ScriptedFs) -> None:
    """The directory is synced after the links, once for all files in it, and before any name goes."""
    store = local(fs)
    staged = [write(store, f"a/part-{n}-0") for n in range(3)]
    fs.calls.clear()
    for number, one in enumerate(staged):
        store.publish(one, f"a/part-{number}-0")
    store.sync_directories(["a", "a"])
    for one in staged:
        store.release(one)
    names = [name for name, _ in fs.calls]
    assert names == ["stat", "link"] * 3 + ["fsync_directory"] + ["unlink"] * 3


def test_a_record_is_durable_before_it_has_its_name(fs: ScriptedFs) -> None:
    """A record appears whole: written and fsynced under a hidden name, then linked, then its directory."""
    store = local(fs)
    store.put_if_absent("l/0", DATA)
    fs.calls.clear()
    store.put_if_absent("l/1", DATA)
    assert [name for name, _ in fs.calls] == [
        "create_exclusive",
        "write",
        "fsync",
        "close",
        "link",
        "unlink",
        "fsync_directory",
    ]


@pytest.mark.parametrize("data", [DATA, b""])
def test_a_record_of_another_is_durable_before_anybody_goes_on(fs: ScriptedFs, data: bytes) -> None:
    """Who made it may have died before its name was on disk, and what follows must not outlive it."""
    local(PosixFs(fs.base)).put_if_absent("l/0", data)
    assert local(fs).put_if_absent("l/0", data) is PutResult.EXISTS
    assert ("fsync_directory", "l") in fs.calls
