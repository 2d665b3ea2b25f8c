"""What the kernel is told to make durable, and when: the real calls of a store on a real disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from filesink.storage.api import PutResult
from filesink.storage.local.posix import PosixFs
from tests.contracts.store_site import finish, hold, stage
from tests.storage.local.descriptors import descriptors, descriptors_in_use
from tests.storage.scripted_fs import DATA, TARGET, local

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="without /proc a descriptor does not tell its path"
)


@dataclass(frozen=True)
class Sync:
    """One fsync as it was asked for: of what, below the base, and what this had in it by then."""

    path: str
    size: int = 0
    names: frozenset[str] = frozenset()


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sync]:
    """Every fsync of this process from now on, done as well as noted."""
    noted: list[Sync] = []
    real: Callable[[int], None] = os.fsync

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        name = os.path.relpath(path, tmp_path)
        if path.is_dir():
            noted.append(Sync(name, names=frozenset(each.name for each in path.iterdir())))
        else:
            noted.append(Sync(name, size=path.stat().st_size))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return noted


def test_files_and_then_their_directories_are_synced(tmp_path: Path, synced: list[Sync]) -> None:
    """``sync`` has the kernel write each file after its last byte, and after all files their names."""
    store = local(PosixFs(str(tmp_path)))
    staged = []
    for target in ("a/part-0", "a/part-1", "b/c/part-0"):
        output = store.create(f"{target}.hidden", target=target)
        output.write(DATA)
        output.write(DATA)
        staged.append(output.close())
    assert synced == []
    store.sync()
    files, directories = synced[:3], synced[3:]
    assert sorted(files, key=lambda each: each.path) == [Sync(f.path, size=2 * len(DATA)) for f in staged]
    assert sorted(directories, key=lambda each: each.path) == [
        Sync(".", names=frozenset("ab")),
        Sync("a", names=frozenset({"part-0.hidden", "part-1.hidden"})),
        Sync("b", names=frozenset("c")),
        Sync("b/c", names=frozenset({"part-0.hidden"})),
    ]


def test_each_of_many_files_is_synced_once(tmp_path: Path, synced: list[Sync]) -> None:
    """Nor is one forgotten whose descriptor was given up early because there were many."""
    store, before = local(PosixFs(str(tmp_path))), len(descriptors_in_use())
    for number in range(100):
        output = store.create(f"a/.{number}", target=None)
        output.write(DATA)
        output.close()
    assert len(descriptors()) - before < 80
    store.sync()
    files = [each for each in synced if each.path not in {".", "a"}]
    assert sorted(each.path for each in files) == sorted(f"a/.{number}" for number in range(100))
    assert {each.size for each in files} == {len(DATA)}


def test_a_joined_file_is_synced(tmp_path: Path, synced: list[Sync]) -> None:
    """What the kernel has copied is made durable as what was written."""
    store = local(PosixFs(str(tmp_path)))
    held = hold(store, "a/part-0", DATA)
    synced.clear()
    merged = store.concat([held, b"end"], "a/.merged", target="a/part-1")
    store.sync()
    assert synced[0] == Sync(merged.path, size=len(DATA) + 3)
    assert synced[-1].path == "a"


def test_a_published_name_is_synced(tmp_path: Path, synced: list[Sync]) -> None:
    """The directory is written with the final name in it, while the hidden name still stands."""
    store = local(PosixFs(str(tmp_path)))
    staged = stage(store, TARGET, DATA)
    synced.clear()
    finish(store, staged, TARGET)
    directory, _, name = TARGET.rpartition("/")
    assert synced == [Sync(directory, names=frozenset({name, staged.path.rpartition("/")[2]}))]


def test_a_record_is_synced_before_its_name(
    tmp_path: Path, synced: list[Sync], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes of a record are on disk before anybody can find it, and its name is when we go on."""
    store = local(PosixFs(str(tmp_path)))
    store.put_if_absent("l/0", DATA)
    synced.clear()
    link = os.link
    before_link = []

    def noted(*arguments: Any, **keywords: Any) -> None:
        before_link.extend(synced)
        link(*arguments, **keywords)

    monkeypatch.setattr(os, "link", noted)
    assert store.put_if_absent("l/1", DATA) is PutResult.CREATED
    file, directory = synced
    assert file.path.startswith("l/.1.put.")
    assert file.size == len(DATA)
    assert before_link == [file]
    assert directory.path == "l"
    assert "1" in directory.names


@pytest.mark.parametrize("data", [DATA, b""], ids=["bytes", "empty"])
def test_a_record_of_another_is_synced_too(tmp_path: Path, synced: list[Sync], data: bytes) -> None:
    """Who made the record may have died before its name was durable; what follows must not outlive it."""
    store = local(PosixFs(str(tmp_path)))
    store.put_if_absent("l/0", b"")
    (tmp_path / "l" / "1").write_bytes(b"theirs")
    synced.clear()
    assert store.put_if_absent("l/1", data) is PutResult.EXISTS
    assert [each for each in synced if "1" in each.names] == [Sync("l", names=frozenset("01"))]


def test_the_root_of_ledgers_is_synced(tmp_path: Path, synced: list[Sync]) -> None:
    """A start makes durable that the base path is a sink's, for starts above it to see."""
    base = tmp_path / "new" / "out"
    local(PosixFs(str(base))).prepare()
    assert Sync("new/out", names=frozenset({"_filesink"})) in synced


@pytest.mark.parametrize("removed", ["dt=1", "dt=1/h=2"])
def test_a_directory_made_again_is_synced_as_a_new_one(
    tmp_path: Path, synced: list[Sync], removed: str
) -> None:
    """Somebody removed it: that its name was durable once says nothing of the one made since."""
    store = local(PosixFs(str(tmp_path)))
    for _ in range(2):
        synced.clear()
        stage(store, "dt=1/h=2/part-0", DATA)
        directories = {each.path: each.names for each in synced if each.names}
        assert set(directories) == {".", "dt=1", "dt=1/h=2"}
        assert directories["dt=1"] == {"h=2"}
        shutil.rmtree(tmp_path / removed)
