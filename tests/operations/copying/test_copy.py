"""Copies of a path: whole, restartable, and sinks themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import filesink
from filesink.errors import ConcurrentDriverError, ConfigError, StagedDataLost, StateError, StorageError
from filesink.operations.copying.copy import Copy
from filesink.sink_directory.opening import site_of
from filesink.storage.address import StoreAddress
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.system import SystemClock
from tests.fakes import micro_batch
from tests.fakes import records as lines
from tests.operations.broken_paths import Killed, unfinished, whole, with_open_parts
from tests.operations.damage_to_files import file_lost, garbage
from tests.sink_directory.written import Written, records


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """For writers: here none is at work."""
    monkeypatch.setattr(SystemClock, "sleep", lambda _self, _seconds: None)


def rows(base: Path) -> list[Any]:
    """All of them, as readers by versions see them."""
    table = filesink.open(base).snapshot().dataset(on_other_schema="union").to_table()
    return sorted(map(str, table.to_pylist()))


def data(base: Path) -> dict[str, bytes]:
    """Every file that readers of directories see."""
    found = [path for path in base.rglob("*") if path.is_file() and "_filesink" not in path.parts]
    return {str(path.relative_to(base)): path.read_bytes() for path in found if path.name[0] != "."}


def at(written: Written, base: Path) -> Written:
    """The program of a sink with another base path, and with a copy of its checkpoint."""
    written.base = base
    written.world.open_store = StoreAddress(base_path=str(base))
    return written


def test_a_copy_is_the_same_and_a_sink_itself(tmp_path: Path) -> None:
    """Files, versions, epochs; its streams go on, know their batches, and the source stays as it is."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written = whole(base)
    (base / "k=1" / "_SUCCESS").touch()
    (base / "k=1" / "by-hand.csv").write_text("1\n")
    garbage(base)
    plan = filesink.plan_copy(base, copy)
    assert not copy.exists()
    assert plan.others == ("k=1/by-hand.csv",)
    report = filesink.copy(base, copy)
    assert (report.version, report.files, report.bytes, report.found) == (
        plan.version,
        plan.files,
        plan.bytes,
        0,
    )
    assert data(copy) == {path: found for path, found in data(base).items() if "by-hand" not in path}
    assert filesink.open(copy).version == filesink.open(base).version
    assert list(filesink.open(copy).epochs()) == list(filesink.open(base).epochs())
    assert filesink.fsck(copy, depth="deep").findings == ()
    before = data(base)
    at(written, copy).write(records(9, "new"))
    assert len(rows(copy)) == len(rows(base)) + 1
    assert data(base) == before
    assert filesink.fsck(copy, depth="deep").findings == ()


def test_a_stream_with_open_parts_goes_on(tmp_path: Path) -> None:
    """What it holds back is copied, and its ledger knows the copies: each row comes once."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written = with_open_parts(base)
    assert filesink.copy(base, copy).files == 2
    assert filesink.fsck(copy).findings == ()
    at(written, copy)._run(lines("c", bucket="day=1"), written.world.sink_id, micro_batch(2))
    written.world.driver().finish()
    text = "".join(found.decode() for found in data(copy).values())
    assert [text.count(f'"{value}"') for value in "abc"] == [1, 1, 1]
    assert filesink.fsck(copy).findings == ()
    assert filesink.open(base).status().held


def test_dead_letters_go_along(tmp_path: Path) -> None:
    """They were committed with their epochs."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    whole(base)
    (some, *_) = base.rglob("k=1/part-*.parquet")
    (base / "_dead_letters").mkdir()
    shutil.copy2(some, base / "_dead_letters")
    filesink.copy(base, copy)
    assert data(copy) == data(base)


@pytest.mark.slow
@pytest.mark.parametrize("make", [whole, with_open_parts])
@pytest.mark.parametrize("moment", list(Moment))
def test_killed_and_called_again(tmp_path: Path, make: Any, moment: Moment) -> None:
    """At first after each operation on the target, then after every so many: the second call ends it."""
    base = tmp_path / "base"
    make(base)
    kept = 0
    for step in (*range(9), *range(14, 10_000, 7)):
        copy, seen = tmp_path / f"copy-{step}", 0

        def fault(_operation: str, _path: str, *, step: int = step) -> Fault | None:
            nonlocal seen
            seen += 1
            return Fault(moment=moment, error=Killed()) if seen > step else None

        address = StoreAddress(base_path=str(copy))
        site = site_of(base, {})
        world = Written(tmp_path / "unused").world
        once = Copy(
            source=site,
            open_target=lambda address=address, fault=fault: FaultyStore(address(), fault),
            target_path=str(copy),
            ports=world.ports(),
        )
        try:
            once.run()
        except Killed:
            kept += filesink.copy(base, copy).found
        assert data(copy) == data(base)
        assert filesink.fsck(copy, depth="deep").findings == ()
        assert not list((copy / "_filesink").glob(".copy*"))
        if seen <= step:
            break
    assert make is not whole or kept > 0


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A place where something is is refused; so is another sink, a copy that is done, and the path itself."""
    base, other = tmp_path / "base", tmp_path / "other"
    whole(base)
    whole(other / "sink")
    for target in (other, other / "sink"):
        before = data(other)
        for call in (filesink.plan_copy, filesink.copy):
            with pytest.raises(ConfigError) as caught:
                call(base, target)
            assert caught.value.code == "TARGET_NOT_EMPTY"
        assert data(other) == before
    filesink.copy(base, tmp_path / "copy")
    with pytest.raises(ConfigError, match="is not empty"):
        filesink.copy(base, tmp_path / "copy")
    for target in (base, base / "copy", tmp_path):
        with pytest.raises(ConfigError, match="one is in the other"):
            filesink.copy(base, target)


def test_an_interrupted_copy_is_not_gone_on_with_from_elsewhere(tmp_path: Path) -> None:
    """Or with a file that somebody has put there."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    whole(base)
    elsewhere = tmp_path / "other" / "base"
    other = Written(elsewhere)
    other.world.ids.made = 1000
    other.write(records(1, "a"))
    interrupted(base, copy)
    with pytest.raises(ConfigError, match="no interrupted copy"):
        filesink.copy(elsewhere, copy)
    path = min(data(base))
    (copy / path).parent.mkdir(exist_ok=True)
    (copy / path).write_bytes(b"mine")
    with pytest.raises(ConfigError, match="is another file"):
        filesink.copy(base, copy)
    assert (copy / path).read_bytes() == b"mine"


def interrupted(base: Path, copy: Path, *, at_path: str = "_inventory") -> None:
    """Killed when it comes to the ledgers."""
    address = StoreAddress(base_path=str(copy))

    def fault(operation: str, path: str) -> Fault | None:
        is_there = operation == "put_if_absent" and at_path in path
        return Fault(moment=Moment.AFTER, error=Killed()) if is_there else None

    once = Copy(
        source=site_of(base, {}),
        open_target=lambda: FaultyStore(address(), fault),
        target_path=str(copy),
        ports=Written(base.parent / "unused").world.ports(),
    )
    with pytest.raises(Killed):
        once.run()


def test_the_source_may_go_on_before_the_second_call(tmp_path: Path) -> None:
    """What is new is copied, and what has gone since is not left there."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written = whole(base)
    interrupted(base, copy, at_path=".record")
    written.overwrite(records(7, "all", "new"))
    report = filesink.copy(base, copy)
    assert report.found == 0
    assert data(copy) == data(base)
    assert rows(copy) == rows(base)
    assert filesink.fsck(copy, depth="deep").findings == ()


@pytest.mark.parametrize("at_path", ["k=1/part-", "_inventory", ".record"])
def test_a_call_that_slept_changes_nothing_any_more(tmp_path: Path, at_path: str) -> None:
    """Meanwhile another call has made the copy, and a sink has gone on there."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written, address = whole(base), StoreAddress(base_path=str(copy))
    slept = []

    def fault(operation: str, path: str) -> None:
        if not slept and operation in {"publish", "put_if_absent"} and at_path in path:
            slept.append(path)
            filesink.copy(base, copy)
            at(written, copy).overwrite(records(8, "new"))
            slept.append(data(copy))

    once = Copy(
        source=site_of(base, {}),
        open_target=lambda: FaultyStore(address(), fault),
        target_path=str(copy),
        ports=Written(tmp_path / "unused").world.ports(),
    )
    with pytest.raises((ConcurrentDriverError, StagedDataLost)):
        once.run()
    assert data(copy) == slept[1]
    assert len(rows(copy)) == 1
    assert filesink.fsck(copy, depth="deep").findings == ()


def test_of_two_that_begin_together_one_goes_on_at_most(tmp_path: Path) -> None:
    """And a third call ends what they have begun."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    whole(base)
    address, others = StoreAddress(base_path=str(copy)), []

    def fault(operation: str, path: str) -> None:
        if not others and operation == "put_if_absent" and ".copy" in path:
            others.append(path)
            interrupted(base, copy)

    once = Copy(
        source=site_of(base, {}),
        open_target=lambda: FaultyStore(address(), fault),
        target_path=str(copy),
        ports=Written(tmp_path / "unused2").world.ports(),
    )
    once.ports.ids.made = 1000
    once.__post_init__()
    with pytest.raises(ConcurrentDriverError):
        once.run()
    filesink.copy(base, copy)
    assert data(copy) == data(base)
    assert filesink.fsck(copy, depth="deep").findings == ()


def test_an_unfinished_copy_stops_a_sink(tmp_path: Path) -> None:
    """With a part of a ledger nobody writes again what was written."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written = whole(base)
    interrupted(base, copy, at_path="_filesink/uid-u/")
    with pytest.raises((StateError, StorageError)):
        at(written, copy).write(records(1, "again"))


def test_a_writer_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has written is copied, too, in a second round; one that never ends is told to stop."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written = whole(base)
    real, times = Copy._held, 0

    def also(self: Copy, *arguments: Any) -> None:
        nonlocal times
        real(self, *arguments)
        if times:
            times -= 1
            written.write(records(1, "meanwhile"))

    monkeypatch.setattr(Copy, "_held", also)
    times = 2
    filesink.copy(base, copy)
    assert rows(copy) == rows(base)
    assert filesink.fsck(copy, depth="deep").findings == ()
    times = 100
    with pytest.raises(ConcurrentDriverError):
        filesink.copy(base, tmp_path / "other")


@pytest.mark.parametrize(
    ("damage", "code"),
    [(unfinished, "AT_WORK"), (lambda base: (whole(base), file_lost(base)), "FILE_LOST")],
)
def test_what_is_not_whole_is_not_copied(tmp_path: Path, damage: Any, code: str) -> None:
    """A copy of it would be no backup."""
    base = tmp_path / "base"
    damage(base)
    with pytest.raises(StateError) as caught:
        filesink.copy(base, tmp_path / "copy")
    assert caught.value.code == code
    assert not (tmp_path / "copy").exists()


def test_files_that_are_still_to_be_removed_stop_nobody(tmp_path: Path) -> None:
    """An overwrite has left them to readers, in a directory without others: the copy goes on without."""
    base, copy = tmp_path / "base", tmp_path / "copy"
    written = Written(base)
    written.write(records(1, "old"))
    written.world.reader_grace_ms = 1
    written.overwrite(records(2, "new"))
    filesink.copy(base, copy)
    assert list((copy / "k=1").iterdir()) == []
    assert filesink.retain(copy, filesink.Retention(keep=1)) is not None
    assert filesink.retain(copy, filesink.Retention(keep=1)) is None
    assert filesink.fsck(copy, depth="deep").is_good
