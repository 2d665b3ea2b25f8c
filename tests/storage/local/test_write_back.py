"""The kernel is asked to begin with the disk early, and no error gets lost by that."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from filesink.errors import StorageError
from filesink.ports import SerialRunner
from filesink.storage.local import write_back
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.system import SystemIds

STEP = 1 << 16
Submit = Callable[[int, int, int, int], None]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Start and length of what was submitted, in steps of ``STEP``, without waiting for what comes of it."""
    found: list[tuple[int, int]] = []

    def submit(_handle: int, start: int, size: int, how: int) -> None:
        assert how == 2, "who waits is told of a lost page, and fsync is not"
        found.append((start, size))

    monkeypatch.setattr(write_back, "STEP", STEP)
    monkeypatch.setattr(write_back, "_submit", submit)
    return found


@pytest.mark.parametrize("piece", [1000, STEP - 1, STEP, STEP + 1, 3 * STEP + 7])
def test_whole_steps_are_submitted_once(tmp_path: Path, submitted: list[tuple[int, int]], piece: int) -> None:
    """However long single writes are, what is submitted are the whole steps, one after the other."""
    fs = PosixFs(str(tmp_path))
    handle = fs.create_exclusive("x")
    total = 0
    while total < 10 * STEP:
        total += fs.write(handle, memoryview(bytes(piece)))
    fs.close(handle)
    reached = 0
    for start, size in submitted:
        assert start == reached
        assert size % STEP == 0 < size
        reached += size
    assert reached == total // STEP * STEP


def test_copies_are_submitted_too(tmp_path: Path, submitted: list[tuple[int, int]]) -> None:
    """What the kernel copies from file to file goes to the disk the same way."""
    (tmp_path / "source").write_bytes(bytes(5 * STEP + 1))
    fs = PosixFs(str(tmp_path))
    handle = fs.create_exclusive("copy")
    fs.copy(handle, "source", 0)
    fs.close(handle)
    assert sum(size for _, size in submitted) == 5 * STEP


@pytest.mark.skipif(write_back._submit is None, reason="this system has no sync_file_range")
def test_the_system_takes_what_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call of the C library gets its arguments right: it does not complain, and finds a bad one."""
    submit = write_back._submit
    assert submit is not None
    monkeypatch.setattr(write_back, "STEP", STEP)
    fs = PosixFs(str(tmp_path))
    handle = fs.create_exclusive("x")
    fs.write(handle, memoryview(bytes(2 * STEP)))
    submit(handle, 1 << 40, STEP, write_back._WRITE)
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        submit(handle, -1, STEP, write_back._WRITE)
    fs.close(handle)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        submit(handle, 0, STEP, write_back._WRITE)


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ESPIPE])
def test_a_system_that_cannot_be_asked_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Some file systems have no such call and some sandboxes forbid it; files are written all the same."""
    refuse_with(code, monkeypatch)
    assert write_file(tmp_path) == 2 * STEP


def test_without_the_call_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems other than Linux write as they always did."""
    monkeypatch.setattr(write_back, "STEP", STEP)
    monkeypatch.setattr(write_back, "_submit", None)
    assert write_file(tmp_path) == 2 * STEP


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_what_is_said_about_the_bytes_fails_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A disk that is full or broken may say so to the one who submits, and to nobody after."""
    refuse_with(code, monkeypatch)
    with pytest.raises(StorageError):
        write_file(tmp_path)


def test_the_error_of_fsync_is_still_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That everything was submitted makes nothing durable: fsync is called, and what it says counts."""

    def fail(_handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(write_back, "STEP", STEP)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError):
        write_file(tmp_path)


def refuse_with(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every submission is an error."""

    def refuse(_handle: int, _start: int, _size: int, _how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(write_back, "STEP", STEP)
    monkeypatch.setattr(write_back, "_submit", refuse)


def write_file(base: Path) -> int:
    """The size of a hidden file of two steps, when it is durable."""
    store = LocalStore(PosixFs(str(base)), runner=SerialRunner(), ids=SystemIds())
    output = store.create("x", target=None)
    try:
        output.write(bytes(2 * STEP))
        output.close()
        store.sync()
    except StorageError:
        output.discard()
        raise
    return (base / "x").stat().st_size
