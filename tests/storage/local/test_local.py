"""The store on a local disk: the contract, and what only a file system can do wrong."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from filesink.errors import (
    CommitConflictError,
    ConfigError,
    SecurityError,
    StagedDataLost,
    StateError,
    StorageError,
)
from filesink.ports import SerialRunner
from filesink.storage.api import Deletion, Entry, Kind, Store
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.storage.staged import HiddenFile, HiddenObject, Staged
from filesink.system import SystemIds, ThreadRunner
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site, finish, hidden, stage
from tests.storage.local.descriptors import descriptors, descriptors_in_use


@dataclass
class LocalSite(Site):
    """Looks at a directory by ``os`` and ``pathlib``."""

    base: Path

    def store(self) -> Store:
        return LocalStore(PosixFs(str(self.base)), runner=ThreadRunner(4), ids=SystemIds())

    def files(self) -> dict[str, bytes]:
        found = (Path(directory) / name for directory, _, names in os.walk(self.base) for name in names)
        return {str(path.relative_to(self.base)): path.read_bytes() for path in found}

    def plant(self, path: str, data: bytes) -> None:
        """A foreign file: another inode, written at another time."""
        full = self.base / path
        full.parent.mkdir(parents=True, exist_ok=True)
        beside = full.parent / "planted"
        beside.write_bytes(data)
        os.utime(beside, ns=(1, 1))
        beside.rename(full)

    def remove(self, path: str) -> None:
        (self.base / path).unlink()

    def half_publish(self, staged: Staged, target: str) -> None:
        os.link(self.base / staged.path, self.base / target)


@pytest.fixture
def site(tmp_path: Path) -> LocalSite:
    """A base path that does not exist yet."""
    return LocalSite(tmp_path / "out")


@pytest.fixture
def store(site: LocalSite) -> Store:
    """A store whose base path exists."""
    store = site.store()
    store.prepare()
    return store


class TestLocalStore(StoreContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        return LocalSite(tmp_path / "out")


class TestPrepare:
    def test_missing_directories_are_made(self, site: LocalSite, tmp_path: Path) -> None:
        """The base is made with everything above it and the root of the ledgers; the probe leaves nothing."""
        site.base = tmp_path / "a" / "b" / "c"
        for _ in range(2):
            site.store().prepare()
        assert list(site.base.rglob("*")) == [site.base / "_filesink"]

    def test_old_probes_are_sought_among_ledgers_only(self, site: LocalSite, tmp_path: Path) -> None:
        """A base of many files is not listed to start a sink; the few old probes are in one place."""
        site.base = tmp_path / "base"
        site.store().prepare()
        names = [f".probe.{'0' * 35}{number}" for number in (1, 2)]
        for name, seconds in zip(names, (1, time.time() - 23 * 3600), strict=True):
            (site.base / "_filesink" / name).write_bytes(b"")
            os.utime(site.base / "_filesink" / name, (seconds, seconds))
        listed = []

        class Watched(PosixFs):
            def list(self, path: str, /) -> list[Entry]:
                listed.append(path)
                return super().list(path)

        LocalStore(Watched(str(site.base)), runner=SerialRunner(), ids=SystemIds()).prepare()
        assert listed == ["_filesink"]
        assert [path.name for path in (site.base / "_filesink").iterdir()] == names[1:]

    def test_a_file_system_that_copies_instead_of_linking_is_refused(self, site: LocalSite) -> None:
        """Its files would be published half by half; that it does not replace is not enough."""

        class Copying(PosixFs):
            def link(self, source: str, target: str, /) -> None:
                handle = self.create_exclusive(target)
                self.write(handle, memoryview(self.read(source)))
                self.close(handle)

        with pytest.raises(ConfigError) as raised:
            LocalStore(Copying(str(site.base)), runner=SerialRunner(), ids=SystemIds()).prepare()
        assert raised.value.code == "NO_EXCLUSIVE_PUBLISH"
        assert site.files() == {}

    @pytest.mark.parametrize("below", [".", "a/b"])
    def test_a_file_in_the_way_is_named(self, site: LocalSite, tmp_path: Path, below: str) -> None:
        """A base path that is a file, or leads through one, is a mistake of configuration."""
        (tmp_path / "file").write_bytes(b"")
        site.base = tmp_path / "file" / below
        with pytest.raises(ConfigError, match="not a directory") as raised:
            site.store().prepare()
        assert raised.value.code == "PATH_NOT_DIR"

    def test_a_base_that_is_a_link_is_the_users_word(self, site: LocalSite, tmp_path: Path) -> None:
        """Only what lies below the base may not be a symbolic link."""
        (tmp_path / "real").mkdir()
        site.base.symlink_to(tmp_path / "real")
        store = site.store()
        store.prepare()
        store.publish(stage(store, "a/part-a-0", b"abc"), "a/part-a-0")
        assert (tmp_path / "real" / "a" / "part-a-0").read_bytes() == b"abc"

    def test_errors_name_path_and_remedy(self, site: LocalSite) -> None:
        """A file system that takes no files is described: operation, path, reason, what to do."""
        site.base = Path("/proc/filesink-test")
        with pytest.raises(StorageError, match=r"cannot create '/proc/filesink-test': .*; .+"):
            site.store().prepare()


class TestFiles:
    def test_the_umask_is_respected(self, site: LocalSite) -> None:
        """Files get 0666 and directories 0777 less the umask, unlike files of ``mkstemp``."""
        before = os.umask(0o027)
        try:
            store = site.store()
            store.prepare()
            store.put_if_absent("l/r", b"1")
            store.put_if_absent("l/empty", b"")
            store.publish(stage(store, "b/part-a-0", b"x"), "b/part-a-0")
        finally:
            os.umask(before)
        files = ("l/r", "l/empty", "b/part-a-0")
        assert {stat.S_IMODE((site.base / name).stat().st_mode) for name in files} == {0o640}
        assert {stat.S_IMODE((site.base / name).stat().st_mode) for name in ("", "b", "l")} == {0o750}

    def test_nothing_stays_open(self, site: LocalSite, store: Store) -> None:
        """At most 64 closed files wait for the end of the task, and none after it."""
        before = descriptors_in_use()
        for number in range(200):
            output = store.create(hidden(f"b/part-{number}-0"), target=None)
            output.write(b"x")
            output.close()
            assert len(descriptors() - before) <= 64
        store.sync()
        assert descriptors() <= before
        assert len(site.files()) == 200

    def test_a_discarded_file_is_closed(self, store: Store) -> None:
        """Discarding ends the descriptor too, of open files and of those that wait for sync."""
        before = descriptors_in_use()
        first, second = (store.create(hidden("b/part-a-0"), target=None) for _ in range(2))
        first.write(b"x")
        second.write(b"x")
        store.discard(second.close().path)
        first.discard()
        assert descriptors() <= before

    def test_a_changed_file_cannot_be_closed(self, site: LocalSite, store: Store) -> None:
        """If something else has appended to the file, it is not reported."""
        path = hidden("part-a-0")
        output = store.create(path, target=None)
        output.write(b"abc")
        with (site.base / path).open("ab") as zombie:
            zombie.write(b"late")
        with pytest.raises(StorageError) as raised:
            output.close()
        assert raised.value.code == "SIZE"
        output.discard()
        assert site.files() == {}


class TestIdentity:
    def test_a_moved_directory_keeps_its_files(self, site: LocalSite, store: Store, tmp_path: Path) -> None:
        """Recorded files are known again after the directory was copied with its times."""
        published, waiting = (stage(store, f"a/part-{n}-0", b"abc") for n in range(2))
        finish(store, published, "a/part-0-0")
        subprocess.run(["/bin/cp", "-a", site.base, tmp_path / "copy"], check=True)  # noqa: S603
        site.base = tmp_path / "copy"
        moved = site.store()
        moved.verify(waiting)
        moved.publish(published, "a/part-0-0")
        finish(moved, waiting, "a/part-1-0")
        assert site.files() == {"a/part-0-0": b"abc", "a/part-1-0": b"abc"}

    @pytest.mark.parametrize("unit", [100, 1_000, 1_000_000, 1_000_000_000])
    def test_a_backup_may_keep_less_of_the_time(self, site: LocalSite, store: Store, unit: int) -> None:
        """What NTFS, SMB or ``tar`` give back is known again; a copy without the times is named as such."""
        whole = stage(store, "a/part-a-0", b"abc")
        moment = (site.base / whole.path).stat().st_mtime_ns // 1_000_000_000 * 1_000_000_000
        (site.base / "copy").write_bytes(b"abc")
        (site.base / "copy").replace(site.base / whole.path)
        os.utime(site.base / whole.path, ns=(moment, moment))
        store.verify(replace(whole, inode=0, mtime_ns=moment + unit - 1))
        with pytest.raises(StagedDataLost, match="a tool that does not keep the time of modification"):
            store.verify(replace(whole, inode=0, mtime_ns=moment + 1_000_000_000))

    def test_a_file_whose_time_was_changed_is_the_same(self, site: LocalSite, store: Store) -> None:
        """Somebody has touched everything: inode and size still say which file it is, hidden or published."""
        waiting, published = (stage(store, f"a/part-{n}-0", b"abc") for n in range(2))
        store.publish(published, "a/part-1-0")
        for path in (waiting.path, published.path):
            os.utime(site.base / path, ns=(7, 7))
        store.verify(waiting)
        assert store.is_published(published, "a/part-1-0")
        finish(store, waiting, "a/part-0-0")
        finish(store, published, "a/part-1-0")
        assert site.files() == {"a/part-0-0": b"abc", "a/part-1-0": b"abc"}

    def test_equal_size_is_no_identity(self, site: LocalSite, store: Store) -> None:
        """A file of the same length with another inode and time is another file."""
        staged = stage(store, "a/part-a-0", b"abc")
        site.plant(staged.path, b"xyz")
        with pytest.raises(StagedDataLost):
            store.publish(staged, "a/part-a-0")

    def test_a_file_edited_in_place_is_another(self, site: LocalSite, store: Store) -> None:
        """Same name, length and inode, a nanosecond later: it is left to whoever has changed it."""
        finish(store, stage(store, "a/x", b"abc"), "a/x")
        (listed,) = store.list("a")
        before = (site.base / "a" / "x").stat()
        (site.base / "a" / "x").write_bytes(b"xyz")
        os.utime(site.base / "a" / "x", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        assert (site.base / "a" / "x").stat().st_ino == before.st_ino
        changed = site.store().delete_if_unchanged("a/x", size=listed.size, version=listed.version)
        assert changed is Deletion.CHANGED
        assert site.files() == {"a/x": b"xyz"}

    def test_a_file_of_another_kind_of_store_is_refused(self, site: LocalSite, store: Store) -> None:
        """The base path was moved while files were held: they are neither absent nor lost, but elsewhere."""
        staged = HiddenObject(path="a/.x", size=3, token="t")
        for step in (
            lambda: store.verify(staged),
            lambda: store.publish(staged, "a/x"),
            lambda: store.concat([staged, b""], ".merged", target="a/x"),
        ):
            with pytest.raises(StateError) as raised:
                step()
            assert raised.value.code == "OTHER_STORE"
        assert site.files() == {}

    def test_a_directory_is_no_file(self, site: LocalSite, store: Store) -> None:
        """A directory under the final name is a conflict."""
        staged = stage(store, "a/part-a-0", b"abc")
        (site.base / "a" / "part-a-0").mkdir()
        with pytest.raises(CommitConflictError):
            store.publish(staged, "a/part-a-0")


class TestLinks:
    @pytest.mark.parametrize("path", ["link/part-a-0", "a/link/part-a-0", "a/link/b/part-a-0"])
    def test_no_link_is_followed(self, site: LocalSite, store: Store, tmp_path: Path, path: str) -> None:
        """A link that stands for a directory, wherever on the way, is refused by every step."""
        outside = tmp_path / "outside"
        (outside / "b").mkdir(parents=True)
        (outside / "part-a-0").write_bytes(b"secret")
        (outside / "b" / "part-a-0").write_bytes(b"secret")
        link = site.base / path[: path.index("link") + 4]
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(outside)
        staged = HiddenFile(path=path, size=6, inode=1, mtime_ns=1)
        directory = path.rpartition("/")[0]
        for step in (
            lambda: store.create(path + "x", target=None).write(b"x"),
            lambda: store.verify(staged),
            lambda: store.publish(staged, path + "y"),
            lambda: store.discard(path),
            lambda: store.delete(path),
            lambda: store.read(path),
            lambda: store.open_input(path),
            lambda: store.list(directory),
            lambda: store.put_if_absent(path + "z", b"x"),
            lambda: store.put_if_absent(path + "z", b""),
            lambda: store.sync_directories([directory]),
        ):
            with pytest.raises(SecurityError, match="symbolic link"):
                step()
        assert sorted(str(found.relative_to(outside)) for found in outside.rglob("*")) == [
            "b",
            "b/part-a-0",
            "part-a-0",
        ]

    def test_a_link_to_a_file_is_not_read(self, site: LocalSite, store: Store, tmp_path: Path) -> None:
        """The last component is no exception; a listing shows it as nothing of ours."""
        (tmp_path / "secret").write_bytes(b"secret")
        (site.base / "x").symlink_to(tmp_path / "secret")
        for step in (store.read, store.open_input):
            with pytest.raises(SecurityError):
                step("x")
        assert {entry.name: entry.kind for entry in store.list("")}["x"] is Kind.OTHER
        with pytest.raises(CommitConflictError):
            store.create("x", target=None).write(b"abc")
        with pytest.raises(CommitConflictError):
            store.publish(stage(store, "y", b"abc"), "x")
        assert (tmp_path / "secret").read_bytes() == b"secret"

    def test_a_link_to_our_bytes_is_not_our_file(self, site: LocalSite, store: Store, tmp_path: Path) -> None:
        """Neither under the final name nor the hidden one: what it points to may go at any time."""
        staged = stage(store, "a/part-a-0", b"abc")
        (site.base / "a" / "part-a-0").symlink_to(site.base / staged.path)
        assert not store.is_published(staged, "a/part-a-0")
        (site.base / staged.path).rename(tmp_path / "moved")
        (site.base / staged.path).symlink_to(tmp_path / "moved")
        with pytest.raises(StagedDataLost):
            store.verify(staged)

    def test_pipes_and_sockets_do_not_block(self, site: LocalSite, store: Store) -> None:
        """What is no regular file is an error, at once."""
        os.mkfifo(site.base / "pipe")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(site.base / "socket"))
        before = descriptors_in_use()
        for path in ("pipe", "socket"):
            with pytest.raises(StorageError):
                store.read(path)
        assert descriptors() <= before


def test_one_thread_is_enough(tmp_path: Path) -> None:
    """A simulation runs the store without threads."""
    store = LocalStore(PosixFs(str(tmp_path)), runner=SerialRunner(), ids=SystemIds())
    store.prepare()
    store.publish(stage(store, "a/part-a-0", b"abc"), "a/part-a-0")
    assert (tmp_path / "a" / "part-a-0").read_bytes() == b"abc"
