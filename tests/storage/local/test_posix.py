"""The adapter of system calls, where it does more than pass them on."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from filesink.errors import SecurityError
from filesink.storage.api import Kind
from filesink.storage.local import posix_copy
from filesink.storage.local.posix import PosixFs
from tests.storage.local.descriptors import descriptors, descriptors_in_use

CONTENT = os.urandom(3 << 20)


@pytest.mark.parametrize(
    "code",
    [
        errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ETXTBSY, errno.ENOTSOCK,
    ],
)  # fmt: skip
@pytest.mark.parametrize("refusing", [1, 2])
@pytest.mark.parametrize("after", [0, 1 << 20])
def test_copying_falls_back_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, refusing: int, after: int
) -> None:
    """If the kernel cannot copy between these files, or not all of it, the next way goes on."""

    def partly(reader: int, writer: int) -> int:
        position = os.lseek(reader, 0, os.SEEK_CUR)
        if position >= after:
            raise OSError(code, os.strerror(code))
        return os.write(writer, os.read(reader, after - position))

    steps = [partly] * refusing + list(posix_copy._COPY_STEPS[refusing:])
    monkeypatch.setattr(posix_copy, "_COPY_STEPS", steps)
    (tmp_path / "source").write_bytes(CONTENT)
    fs = PosixFs(str(tmp_path))
    handle = fs.create_exclusive("copy")
    fs.write(handle, memoryview(b"head"))
    assert fs.copy(handle, "source", 0) == len(CONTENT)
    fs.close(handle)
    assert (tmp_path / "copy").read_bytes() == b"head" + CONTENT


def test_short_writes_of_a_copy_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel cannot copy, bytes go through here, and the system may take fewer than given."""
    monkeypatch.setattr(posix_copy, "_COPY_STEPS", posix_copy._COPY_STEPS[-1:])
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[: 1 << 18]))
    (tmp_path / "source").write_bytes(CONTENT)
    fs = PosixFs(str(tmp_path))
    handle = fs.create_exclusive("copy")
    assert fs.copy(handle, "source", 1) == len(CONTENT) - 1
    fs.close(handle)
    assert (tmp_path / "copy").read_bytes() == CONTENT[1:]


def test_other_errors_of_copying_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is not a reason to try another way."""

    def full(_reader: int, _writer: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(posix_copy, "_COPY_STEPS", [full, *posix_copy._COPY_STEPS])
    (tmp_path / "source").write_bytes(CONTENT)
    fs = PosixFs(str(tmp_path))
    handle = fs.create_exclusive("copy")
    with pytest.raises(OSError, match="No space left"):
        fs.copy(handle, "source", 0)
    fs.close(handle)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every directory")
def test_directories_that_may_only_be_searched_are_passed(tmp_path: Path) -> None:
    """A file below a directory without read permission can still be read and written."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o111)
    fs = PosixFs(str(tmp_path))
    fs.close(fs.create_exclusive("a/b/x"))
    assert fs.read("a/b/x") == b""
    (tmp_path / "a").chmod(0o755)


@pytest.mark.parametrize("above", ["none", "a/none", "file", "a/file", "a/link", "a/link/a"])
def test_no_descriptor_is_left_after_errors(tmp_path: Path, above: str) -> None:
    """Whether a step on the way is absent, a file or a link, everything opened is closed again."""
    (tmp_path / "a").mkdir()
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "a" / "file").write_bytes(b"")
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    fs = PosixFs(str(tmp_path))
    before = descriptors_in_use()
    for call in (fs.read, fs.list, fs.fsync_directory, fs.unlink, fs.mkdir, fs.create_exclusive):
        with pytest.raises((OSError, SecurityError)):
            call(f"{above}/x")
    with pytest.raises((OSError, SecurityError)):
        fs.link("file", f"{above}/x")
    assert descriptors() <= before


def test_a_link_to_a_link_does_not_reach_its_target(tmp_path: Path) -> None:
    """A symbolic link swapped in for a hidden file is not published as the file it points to."""
    (tmp_path / "a").mkdir()
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "a" / "hidden").symlink_to(tmp_path / "target")
    PosixFs(str(tmp_path)).link("a/hidden", "a/published")
    assert (tmp_path / "a" / "published").is_symlink()
    assert (tmp_path / "target").stat().st_nlink == 1


@pytest.mark.parametrize("target", ["target", "none"])
def test_a_link_is_told_from_what_it_points_to(tmp_path: Path, target: str) -> None:
    """A look at a symbolic link sees the link, be it whole or broken, and not a file of its content."""
    (tmp_path / "a").mkdir()
    (tmp_path / "target").write_bytes(b"secret")
    for path in ("link", "a/link"):
        (tmp_path / path).symlink_to(tmp_path / target)
        found = PosixFs(str(tmp_path)).stat(path)
        assert found is not None
        assert (found.kind, found.inode) == (Kind.OTHER, (tmp_path / path).lstat().st_ino)


def test_names_that_vanish_while_they_are_listed_hide_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver removes a file and a directory between their names and a look at them."""
    for name in ("before", "gone", "later"):
        (tmp_path / name).write_bytes(b"abc")
    (tmp_path / "gone-too").mkdir()
    scandir = os.scandir

    @contextmanager
    def removing(directory: int) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(directory) as entries:
            found = list(entries)
            (tmp_path / "gone").unlink()
            (tmp_path / "gone-too").rmdir()
            yield found

    monkeypatch.setattr(os, "scandir", removing)
    before = descriptors_in_use()
    listed = PosixFs(str(tmp_path)).list("")
    assert {entry.name: entry.size for entry in listed} == {"before": 3, "later": 3}
    assert descriptors() <= before


@pytest.mark.parametrize("missing", ["", "b", "b/c"])
def test_the_name_of_a_directory_found_is_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Whoever made the base, or one above it, may have died before its name was on disk."""
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    (tmp_path / "a").mkdir()
    base = tmp_path / "a" / missing
    PosixFs(str(base)).make_base()
    assert base.is_dir()
    made = [tmp_path / "a", tmp_path / "a" / "b"][: len(Path(missing).parts)]
    assert synced == [tmp_path, *made]


@pytest.mark.parametrize("rival", ["directory", "file"])
def test_a_base_that_another_process_makes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rival: str
) -> None:
    """Two sinks start at once: who comes second finds the directory made; a file is in the way."""
    mkdir = Path.mkdir

    def late(path: Path) -> None:
        if rival == "directory":
            mkdir(path)
        else:
            path.touch()
        mkdir(path)

    monkeypatch.setattr(Path, "mkdir", late)
    fs = PosixFs(str(tmp_path / "base"))
    if rival == "file":
        with pytest.raises(FileExistsError):
            fs.make_base()
    else:
        fs.make_base()
        assert (tmp_path / "base").is_dir()


@pytest.mark.parametrize(
    ("code", "tolerated"),
    [
        (errno.EACCES, True),
        (errno.EPERM, True),
        (errno.EROFS, True),
        (errno.EINVAL, True),
        (errno.EIO, False),
    ],
)
def test_a_base_below_a_directory_that_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, tolerated: bool
) -> None:
    """A directory above that may not be synced stops nobody whose base is there; a bad disk does."""

    def refuse(_handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    if tolerated:
        PosixFs(str(tmp_path)).make_base()
    for base in [tmp_path / "new"] if tolerated else [tmp_path, tmp_path / "new"]:
        with pytest.raises(OSError, match=os.strerror(code)):
            PosixFs(str(base)).make_base()
