"""Who waits for long work is told how far it is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import filesink
from filesink import ConfigError, Retention
from filesink.operations.at_path import operations_at
from filesink.operations.progress import Progress, counted, progress_of, telling
from filesink.storage.address import StoreAddress
from tests.operations.broken_paths import whole
from tests.operations.damage_to_files import garbage, hidden_old
from tests.operations.test_fsck import everything
from tests.sink_directory.written import Written, records

Told = list[tuple[str, int, int | None]]


def written(base: Path) -> None:
    """Four files."""
    path = Written(base)
    for number in range(4):
        path.write(records(number, f"value {number % 2}"))


def of(told: Told, step: str) -> list[tuple[int, int | None]]:
    """What was told of one step."""
    return [(done, total) for name, done, total in told if name == step]


def test_an_erasure_tells_of_each_search_and_of_what_it_writes(tmp_path: Path) -> None:
    """Up to the total, in the plan as well."""
    base, told = tmp_path / "base", list[tuple[str, int, int | None]]()
    written(base)

    def hear(step: str, done: int, total: int | None) -> None:
        told.append((step, done, total))

    filesink.plan_erase(base, "value = 'value 1'", progress=hear)
    assert of(told, "files searched") == [(done, 4) for done in (1, 2, 3, 4)]
    told.clear()
    filesink.erase(base, "value = 'value 1'", progress=hear)
    assert of(told, "files searched") == [(done, 4) for done in (1, 2, 3, 4)]
    assert of(told, "files written anew") == [(1, 2), (2, 2)]
    assert of(told, "files searched again") == [(1, 2), (2, 2)]


def test_a_copy_tells_of_files_and_ledgers(tmp_path: Path) -> None:
    """Of those that are there already nothing is told: they take no time."""
    written(tmp_path / "base")
    told: Told = []
    filesink.copy(tmp_path / "base", tmp_path / "copy", progress=lambda *step: told.append(step))
    assert of(told, "files") == [(done, 4) for done in (1, 2, 3, 4)]
    ledgers = of(told, "ledgers")
    assert [done for done, _ in ledgers] == list(range(1, len(ledgers) + 1))
    assert {total for _, total in ledgers} == {len(ledgers)}


def test_a_retention_tells_of_listings_and_of_files_that_go(tmp_path: Path) -> None:
    """One by one; the plan only lists."""
    base, told = tmp_path / "base", list[tuple[str, int, int | None]]()
    written(base)

    def hear(step: str, done: int, total: int | None) -> None:
        told.append((step, done, total))

    filesink.plan_retain(base, Retention(keep=1), progress=hear)
    assert {step for step, _, _ in told} == {"directories listed"}
    told.clear()
    filesink.retain(base, Retention(keep=1), progress=hear)
    assert of(told, "files removed") == [(done, None) for done in (1, 2, 3)]
    listed = of(told, "directories listed")
    assert listed == [(done, None) for done in range(1, len(listed) + 1)]


def test_a_sweep_tells_of_each_file_that_it_removes(tmp_path: Path) -> None:
    """Hidden ones here; the plan removes none."""
    base, told = tmp_path / "base", list[tuple[str, int, int | None]]()
    whole(base)
    left = [hidden_old(base), garbage(base)]

    def hear(step: str, done: int, total: int | None) -> None:
        told.append((step, done, total))

    operations = operations_at(str(base))
    assert len(operations.plan_sweep(progress=hear).files) == 2
    assert of(told, "files removed") == []
    told.clear()
    operations.sweep(progress=hear)
    assert of(told, "files removed") == [(1, None), (2, None)]
    assert of(told, "directories listed")[0] == (1, None)
    assert not any(path.exists() for path in left)


def test_an_adoption_tells_of_each_directory(tmp_path: Path) -> None:
    """Those of the ledgers are among them, since they are listed as well."""
    base, told = tmp_path / "base", list[tuple[str, int, int | None]]()
    path = Written(base)
    path.write(records(1, "a"), uid="u")
    path.write(records(2, "b", "c"), uid="v")
    path.forget_inventory()
    adopted = filesink.adopt(base, progress=lambda *step: told.append(step))
    assert adopted.snapshot().rows == 3
    listed = of(told, "directories listed")
    assert len(listed) > 3
    assert listed == [(done, None) for done in range(1, len(listed) + 1)]


@pytest.mark.parametrize("call", [filesink.erase, filesink.plan_erase, filesink.copy])
def test_what_cannot_be_told_is_refused_before_anything_is_done(tmp_path: Path, call: object) -> None:
    """A bar itself, say, instead of a function that moves it."""
    written(tmp_path / "base")
    second = str(tmp_path / "copy") if call is filesink.copy else "value = 'x'"
    with pytest.raises(ConfigError) as raised:
        call(tmp_path / "base", second, progress=7)  # type: ignore[operator]
    assert raised.value.code == "BAD_VALUE"
    assert not (tmp_path / "copy").exists()


def test_nor_do_those_that_replace_or_adopt_begin_with_it(tmp_path: Path) -> None:
    """They refuse it as the others do, and every file stays as it was."""
    base = tmp_path / "base"
    whole(base)
    before, bar = everything(base), cast("Any", 7)
    for call in (
        lambda: filesink.retain(base, Retention(keep=1), progress=bar),
        lambda: filesink.plan_retain(base, Retention(keep=1), progress=bar),
        lambda: filesink.adopt(base, progress=bar),
        lambda: operations_at(str(base)).sweep(progress=bar),
    ):
        with pytest.raises(ConfigError, match="progress must be"):
            call()
    assert everything(base) == before


Operation = Callable[[Path, Progress], object]


@pytest.mark.parametrize(
    "operation",
    [
        lambda base, progress: filesink.erase(base, "value = 'value 1'", progress=progress).certificate(),
        lambda base, progress: filesink.copy(base, base.parent / "copy", progress=progress),
        lambda base, progress: filesink.retain(base, Retention(keep=1), progress=progress),
        lambda base, progress: filesink.adopt(base, progress=progress),
        lambda base, progress: operations_at(str(base)).sweep(progress=progress),
        lambda base, progress: filesink.fsck(base, progress=progress),
    ],
    ids=["erase", "copy", "retain", "adopt", "sweep", "fsck"],
)
def test_what_progress_raises_ends_nothing(
    tmp_path: Path, operation: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    """At any step: it is in the log once, is not asked again, and the work is done as without it.

    An erasure that ended behind its epoch would have no certificate, for there is nothing left to erase.
    """
    written(tmp_path / "first" / "base")
    told: Told = []
    operation(tmp_path / "first" / "base", lambda *step: told.append(step))
    assert told
    for name in sorted({step for step, _, _ in told}):
        base, asked = tmp_path / name / "base", list[str]()
        written(base)
        with caplog.at_level(logging.WARNING, "filesink"):
            caplog.clear()
            operation(base, partial(_fail_at, name, asked))
        assert asked.count(name) == 1
        assert asked[-1] == name
        assert [one.getMessage().split(";")[0] for one in caplog.records] == [
            "progress failed with ValueError: no such bar"
        ]
        assert filesink.fsck(base).is_good


def _fail_at(name: str, asked: list[str], step: str, done: int, total: int | None) -> None:
    del done, total
    asked.append(step)
    if step == name:
        raise ValueError("no such bar")


def test_who_ends_the_program_ends_the_work(tmp_path: Path) -> None:
    """A user at a terminal, whose interrupt may come in the middle of a bar."""
    written(tmp_path / "base")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filesink.copy(tmp_path / "base", tmp_path / "copy", progress=interrupted)
    filesink.copy(tmp_path / "base", tmp_path / "copy")
    assert filesink.fsck(tmp_path / "copy").is_good


def test_only_calls_that_have_returned_count(tmp_path: Path) -> None:
    """All stores that are opened count together, and one that nobody watches is the store itself."""
    store = StoreAddress(base_path=str(tmp_path))()
    store.prepare()
    store.put_if_absent("there", b"x")
    told: Told = []
    opened = telling(
        lambda: store, lambda *step: told.append(step), {"open_input": "opened", "read": "opened"}
    )
    opened().open_input("there").close()
    with pytest.raises(FileNotFoundError):
        opened().open_input("gone")
    assert opened().read("there") == b"x"
    opened().list("")
    assert told == [("opened", 1, None), ("opened", 2, None)]
    assert telling(lambda: store, progress_of(None), {"read": "read"})() is store


def test_pieces_of_several_threads_are_told_one_after_the_other() -> None:
    """In the order of their numbers, so that a bar never goes back."""
    told: list[int] = []

    def hear(step: str, done: int, total: int | None) -> None:
        del step, total
        time.sleep(0.001)
        told.append(done)

    piece = counted(hear, "pieces", 40, lambda number: number)
    threads = [threading.Thread(target=lambda: [piece(number) for number in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == list(range(1, 41))
