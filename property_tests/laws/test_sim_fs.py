"""The simulated disk is an honest one: it answers as a real one does, and forgets only what it may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filesink.storage.local.fs import Fs
from filesink.storage.local.posix import PosixFs
from property_tests.simulation.world.disk import Cut, Disk
from property_tests.simulation.world.nodes import Inode
from property_tests.simulation.world.sim_fs import SimFs
from property_tests.simulation.world.world import Plan, Process, World

PATHS = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "a/x"])
CALLS = st.one_of(
    st.tuples(st.sampled_from(["mkdir", "unlink", "stat", "read", "list", "fsync_directory"]), PATHS),
    st.tuples(st.just("new"), PATHS, st.binary(min_size=1, max_size=5)),
    st.tuples(st.just("link"), PATHS, PATHS),
    st.tuples(st.just("append"), PATHS, PATHS),
)


def simulated() -> SimFs:
    world = World(Random(0), Plan(), pace=0)
    return SimFs(world, Process("p"), world.disk)


def answer(fs: Fs, call: tuple[Any, ...]) -> Any:
    """What a call returns, without numbers and times; or the error's number."""
    try:
        match call:
            case ("new", path, data):
                return written(fs, path, lambda handle: fs.write(handle, memoryview(data)))
            case ("append", path, source):
                return written(fs, path, lambda handle: fs.copy(handle, source, 0))
            case ("stat", path):
                found = fs.stat(path)
                return found and (found.kind, found.nlink if found.kind.value == "file" else 0)
            case ("list", path):
                return sorted((entry.name, entry.kind.value) for entry in fs.list(path))
            case (name, *arguments):
                return getattr(fs, name)(*arguments)
    except OSError as error:
        return type(error)


def written(fs: Fs, path: str, write: Callable[[int], int]) -> tuple[int, int]:
    handle = fs.create_exclusive(path)
    try:
        count = write(handle)
        fs.fsync(handle)
        return count, fs.fstat(handle).size
    finally:
        fs.close(handle)


@settings(max_examples=150, deadline=None)
@given(st.lists(CALLS, max_size=25))
def test_it_answers_as_a_real_file_system(calls: list[tuple[Any, ...]]) -> None:
    """The same calls give the same results and the same kinds of error on both."""
    with TemporaryDirectory() as directory:
        real, model = PosixFs(directory), simulated()
        for call in calls:
            assert answer(model, call) == answer(real, call), call


def new_file(disk: Disk, path: str, data: bytes, *, synced: bool) -> Inode:
    handle = disk.create(path, None, 1)
    disk.write(handle, data, 1)
    if synced:
        disk.fsync(handle)
    inode = disk.of(handle)
    disk.close(handle)
    return inode


@pytest.mark.parametrize("policy", Cut)
def test_what_is_synced_survives_every_power_cut(policy: Cut) -> None:
    """Bytes after fsync and names after a sync of their directory are there, whatever is lost besides."""
    for seed in range(50):
        disk = Disk()
        disk.mkdir("d")
        new_file(disk, "d/a", b"abc", synced=True)
        disk.fsync_directory("")
        disk.fsync_directory("d")
        new_file(disk, "d/b", b"def", synced=False)
        disk.cut(policy, Random(seed))
        assert disk.file("d/a").data == b"abc"


@pytest.mark.parametrize("policy", Cut)
def test_what_is_not_synced_may_be_lost(policy: Cut) -> None:
    """Over many cuts a name is sometimes lost, and bytes are sometimes cut: nothing is kept by luck."""
    lost, torn = 0, 0
    for seed in range(200):
        disk = Disk()
        new_file(disk, "a", b"abcdef", synced=False)
        disk.cut(policy, Random(seed))
        found = disk.find("a")
        lost += found is None
        torn += isinstance(found, Inode) and bytes(found.data) != b"abcdef"
    assert lost > 20
    assert torn > 20


def test_a_failed_fsync_is_not_made_good_by_another() -> None:
    """After an fsync that failed, a second one succeeds and the bytes are gone after a power cut."""
    disk = Disk()
    handle = disk.create("a", None, 1)
    disk.fsync_directory("")
    disk.write(handle, b"abc", 1)
    disk.fail_fsync(handle)
    disk.fsync(handle)
    disk.cut(Cut.ORDERED, Random(1))
    assert disk.file("a").data == b""


def test_the_base_of_the_real_one_is_left_alone(tmp_path: Path) -> None:
    """The model has no way to the real disk: a simulated write leaves it as it was."""
    answer(simulated(), ("new", "a", b"x"))
    assert list(tmp_path.iterdir()) == []
