"""A store around a store, for wrappers that do something before, after or instead of its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, TypeVar

from filesink.storage.api import Deletion, Entry, Output, PutResult, Removal, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.staged import Piece, Staged

T = TypeVar("T")


class WrappedStore(Store):
    """Does what ``store`` does; every call that asks or changes anything goes through ``_call``."""

    def __init__(self, store: Store) -> None:
        self.name = store.name
        self._store = store

    def _call(self, operation: str, path: str, effect: Callable[[], T]) -> T:
        """Perform ``effect``. For wrappers to override.

        Args:
            operation: the name of the method of ``Store``.
            path: ``""`` for ``prepare``, ``removal``, ``sync`` and ``sync_directories``; the target for
                ``promote``, ``publish`` and ``is_published``.
            effect: calls the method of the inner store.
        """
        del operation, path
        return effect()

    def prepare(self) -> None:
        """See ``Store.prepare``."""
        self._call("prepare", "", self._store.prepare)

    def removal(self) -> Removal:
        """See ``Store.removal``."""
        return self._call("removal", "", self._store.removal)

    def create(self, path: str, *, target: str | None) -> Output:
        """See ``Store.create``. Without effect by itself."""
        return self._store.create(path, target=target)

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``. Without effect."""
        return self._store.refusal(path)

    def sync(self) -> None:
        """See ``Store.sync``."""
        self._call("sync", "", self._store.sync)

    def promote(self, held: Staged, target: str) -> Staged:
        """See ``Store.promote``."""
        return self._call("promote", target, lambda: self._store.promote(held, target))

    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """See ``Store.concat``."""
        return self._call("concat", path, lambda: self._store.concat(pieces, path, target=target))

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        self._call("verify", staged.path, lambda: self._store.verify(staged))

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``."""
        self._call("publish", target, lambda: self._store.publish(staged, target))

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return self._call("is_published", target, lambda: self._store.is_published(staged, target))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        self._call("sync_directories", "", lambda: self._store.sync_directories(directories))

    def release(self, staged: Staged) -> None:
        """See ``Store.release``."""
        self._call("release", staged.path, lambda: self._store.release(staged))

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        self._call("discard", path, lambda: self._store.discard(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return self._call("put_if_absent", path, lambda: self._store.put_if_absent(path, data))

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        return self._call("read", path, lambda: self._store.read(path))

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        self._call("delete", path, lambda: self._store.delete(path))

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``."""
        return self._call(
            "delete_if_unchanged",
            path,
            lambda: self._store.delete_if_unchanged(path, size=size, version=version),
        )

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        return self._call("list", directory, lambda: self._store.list(directory))

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``. Only its start goes through ``_call``: a part of it may have been handed on."""
        return self._call("scan", directory, lambda: self._store.scan(directory))

    def find(self, path: str) -> Entry | None:
        """See ``Store.find``."""
        return self._call("find", path, lambda: self._store.find(path))

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        return self._call("open_input", path, lambda: self._store.open_input(path))
