"""The part of a store's contract that is about names: records, listings, paths.

Part of ``store_contract.StoreContract``; subclass that.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import BinaryIO

import pytest

from filesink.errors import (
    SecurityError,
    StagedDataLost,
    StorageError,
)
from filesink.storage.api import Deletion, Kind, PutResult, Store
from filesink.storage.staged import Staged
from tests.contracts.store_site import Site, finish, hold, stage

SUFFIX = ".parquet"
BUCKETS = ("stadt=Zürich", "e\u0301", "é", "日本/東京", "dt=..", "a b%2F'\"", "x" * 255, "é" * 127)


class NamedFilesContract:
    """Each test gets a fresh ``site`` whose base directory is prepared."""

    @pytest.fixture
    def site(self) -> Site:
        """Override: the place under test."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, site: Site) -> Store:
        store = site.store()
        store.prepare()
        return store

    # --- create if absent ----------------------------------------------------------------------

    @pytest.mark.parametrize("data", [b"", b"one", b"x" * 3_000_000])
    def test_put_creates_once(self, site: Site, store: Store, data: bytes) -> None:
        """The first put makes directories and file; the second finds it and changes nothing."""
        path = "_filesink/sink/records/0"
        assert store.put_if_absent(path, data) is PutResult.CREATED
        assert site.store().put_if_absent(path, b"two") is PutResult.EXISTS
        assert store.put_if_absent(path, b"") is PutResult.EXISTS
        assert store.read(path) == data
        assert site.files() == {path: data}

    @pytest.mark.usefixtures("store")
    @pytest.mark.parametrize("size", [0, 100_000])
    def test_one_of_eight_puts_wins(self, site: Site, size: int) -> None:
        """Of eight drivers that put at once exactly one creates, and its bytes are whole."""
        contents = [bytes([n]) * size for n in range(8)]
        start = Barrier(8)

        def put(data: bytes) -> PutResult:
            own = site.store()
            start.wait()
            return own.put_if_absent("_filesink/sink/0", data)

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(put, contents))
        assert results.count(PutResult.CREATED) == 1
        assert results.count(PutResult.EXISTS) == 7
        assert site.files() == {"_filesink/sink/0": contents[results.index(PutResult.CREATED)]}

    # --- reading, listing, deleting ------------------------------------------------------------

    def test_absent_is_not_unreadable(self, site: Site, store: Store) -> None:
        """No file is ``None``; something that cannot be read is an error."""
        assert store.read("_filesink/none") is None
        assert store.read("none/none") is None
        site.plant("_filesink/sink/0", b"")
        assert store.read("_filesink/sink/0") == b""
        with pytest.raises(StorageError):
            store.read("_filesink/sink")

    def test_a_finished_file_is_removed_if_it_is_the_one_that_was_listed(
        self, site: Site, store: Store
    ) -> None:
        """Removed once, gone the second time; another file under that name stays."""
        for path in ("a/x", "a/y"):
            finish(store, stage(store, path, b"abc"), path)
        listed = {entry.name: entry for entry in store.list("a")}
        site.plant("a/y", b"xyz")
        for outcome in (Deletion.GONE, Deletion.GONE):
            found = site.store().delete_if_unchanged("a/x", size=3, version=listed["x"].version)
            assert found is outcome
        changed = store.delete_if_unchanged("a/y", size=3, version=listed["y"].version)
        assert changed is Deletion.CHANGED
        gone = store.delete_if_unchanged("none/z", size=3, version=listed["y"].version)
        assert gone is Deletion.GONE
        assert site.files() == {"a/y": b"xyz"}

    def test_list_tells_names_sizes_and_kinds(self, site: Site, store: Store) -> None:
        """A listing has one entry for each file and directory, none for what lies deeper."""
        for path in ("a/x", "a/.y", "a/b/z", "ab/w"):
            site.plant(path, path.encode())
        entries = {entry.name: entry for entry in store.list("a")}
        assert {name: entry.kind for name, entry in entries.items()} == {
            "x": Kind.FILE,
            ".y": Kind.FILE,
            "b": Kind.DIRECTORY,
        }
        assert entries["x"].size == 3
        assert {entry.name for entry in store.list("")} - {"_filesink"} == {"a", "ab"}
        assert store.list("none") == []
        assert store.list("none/none") == []

    def test_delete_may_be_repeated(self, site: Site, store: Store) -> None:
        """Deleting what is gone is fine; the neighbours stay."""
        site.plant("a/x", b"1")
        site.plant("a/y", b"2")
        for _ in range(2):
            store.delete("a/x")
        store.delete("none/none")
        assert site.files() == {"a/y": b"2"}

    def test_inputs_are_read_from_held_files(self, store: Store) -> None:
        """A stage reads what is held; a missing input is a ``FileNotFoundError``."""
        held = hold(store, "a/part-a-0", b"abc")
        with store.open_input(held.path) as reader:
            assert reader.read() == b"abc"
            assert reader.seek(1) == 1
            assert reader.read(1) == b"b"
        for path in ("a/none", "none/none"):
            with pytest.raises(FileNotFoundError):
                store.open_input(path)

    def test_a_held_file_is_as_it_was_closed_or_lost(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that is gone is lost, and so is one that goes between the look and the opening."""
        held = hold(store, "a/part-a-0", b"abc")
        with store.open_staged(held) as reader:
            assert reader.read() == b"abc"
        open_input = store.open_input

        def too_late(path: str) -> BinaryIO:
            store.discard(path)
            return open_input(path)

        monkeypatch.setattr(store, "open_input", too_late)
        for _ in range(2):  # gone after the look, and before it
            with pytest.raises(StagedDataLost) as raised:
                store.open_staged(held)
            assert raised.value.code == "STAGED_DATA_LOST"

    # --- names ---------------------------------------------------------------------------------

    def test_no_path_leaves_the_base(self, site: Site, store: Store) -> None:
        """Whatever durable state or another process says, paths stay below the base."""
        staged = stage(store, "part-a-0", b"abc")
        for path in ("", "/etc/x", "../x", "a/../../x", "a//x", "./x", "a/", "a\0b"):
            for step in steps_to(path, store, staged):
                with pytest.raises(SecurityError):
                    step()
            assert site.files() == {staged.path: b"abc"}, path

    def test_bucket_ids_are_taken_literally(self, site: Site, store: Store) -> None:
        """Letters of any script, blanks and percent signs are kept as they are, not normalised."""
        for bucket in BUCKETS:
            target = f"{bucket}/part-a-0{SUFFIX}"
            finish(store, stage(store, target, b"abc"), target)
            assert site.files() == {target: b"abc"}
            assert [entry.name for entry in store.list(bucket)] == [f"part-a-0{SUFFIX}"]
            site.remove(target)

    def test_names_of_255_bytes_fit(self, site: Site, store: Store) -> None:
        """The longest name of common file systems serves for hidden and final files."""
        longest, final = "." + "h" * 254, "p" * 255
        output = store.create(f"a/{longest}", target=f"a/{final}")
        output.write(b"abc")
        staged = output.close()
        store.sync()
        finish(store, staged, f"a/{final}")
        assert site.files() == {f"a/{final}": b"abc"}


def steps_to(path: str, store: Store, staged: Staged) -> list[Callable[[], object]]:
    """Every call that takes a path."""
    return [
        lambda: store.create(path, target=None).write(b"x"),
        lambda: store.publish(staged, path),
        lambda: store.put_if_absent(path, b"x"),
        lambda: store.read(path),
        lambda: store.delete(path),
        lambda: store.open_input(path),
    ]
