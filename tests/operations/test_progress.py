"""Who waits for long work is told how far it is."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import filesink
from filesink import ConfigError
from filesink.operations.progress import counted
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


@pytest.mark.parametrize("call", [filesink.erase, filesink.plan_erase, filesink.copy])
def test_what_cannot_be_told_is_refused_before_anything_is_done(tmp_path: Path, call: object) -> None:
    """A bar itself, say, instead of a function that moves it."""
    written(tmp_path / "base")
    second = str(tmp_path / "copy") if call is filesink.copy else "value = 'x'"
    with pytest.raises(ConfigError) as raised:
        call(tmp_path / "base", second, progress=7)  # type: ignore[operator]
    assert raised.value.code == "BAD_VALUE"
    assert not (tmp_path / "copy").exists()


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
