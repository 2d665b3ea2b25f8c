"""A store around a store that waits where trying again may help. For drivers; tasks are repeated by Spark.

Rules:

* Tried again is only what may be called again by its contract and has no retries of its own around it:
  not ``publish`` and ``release``, which a committer repeats for many files at once, and no ``sync``, whose
  second answer proves nothing.
* ``put_if_absent`` may find what an earlier try has made after all, and then says ``EXISTS``: whoever
  must know whose it is looks, as after a lost reply.
* Who has waited in vain does not wait again before something has succeeded. An outage is waited for
  once, and not by each of the calls that find out what it has left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO, TypeVar

from filesink.errors import StorageError
from filesink.patience import Patience
from filesink.ports import Clock
from filesink.storage.api import Deletion, Entry, Output, PutResult, Removal, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.staged import Piece, Staged

T = TypeVar("T")
log = logging.getLogger("filesink")


class PatientStore(Store):
    """Does what ``store`` does, and repeats for a while what fails for the moment.

    Args:
        store: does the work.
        clock: waits.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self.name = store.name
        self.runner = store.runner
        self._store = store
        self._clock = clock
        self._in_vain = False

    def prepare(self) -> None:
        """See ``Store.prepare``. Who starts a sink hears at once what is wrong."""
        self._store.prepare()

    def removal(self) -> Removal:
        """See ``Store.removal``."""
        return self._patiently("removing", self._store.removal)

    def refusal(self, path: str) -> Refusal | None:
        """See ``Store.refusal``."""
        return self._store.refusal(path)

    def create(self, path: str, *, target: str | None) -> Output:
        """See ``Store.create``."""
        return self._store.create(path, target=target)

    def sync(self) -> None:
        """See ``Store.sync``."""
        self._store.sync()

    def promote(self, held: Staged, target: str) -> Staged:
        """See ``Store.promote``."""
        return self._store.promote(held, target)

    def concat(self, pieces: Sequence[Piece], path: str, *, target: str | None) -> Staged:
        """See ``Store.concat``."""
        return self._store.concat(pieces, path, target=target)

    def verify(self, staged: Staged) -> None:
        """See ``Store.verify``."""
        self._patiently(f"looking at '{staged.path}'", lambda: self._store.verify(staged))

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``."""
        self._store.publish(staged, target)

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return self._patiently(f"looking at '{target}'", lambda: self._store.is_published(staged, target))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        self._store.sync_directories(directories)

    def release(self, staged: Staged) -> None:
        """See ``Store.release``."""
        self._store.release(staged)

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        self._patiently(f"removing '{path}'", lambda: self._store.discard(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``, and the rules above."""
        return self._patiently(f"creating '{path}'", lambda: self._store.put_if_absent(path, data))

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        return self._patiently(f"reading '{path}'", lambda: self._store.read(path))

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        self._patiently(f"removing '{path}'", lambda: self._store.delete(path))

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``."""
        return self._patiently(
            f"removing '{path}'",
            lambda: self._store.delete_if_unchanged(path, size=size, version=version),
        )

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        return self._patiently(f"listing '{directory}'", lambda: self._store.list(directory))

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        return self._store.open_input(path)

    def _patiently(self, doing: str, call: Callable[[], T]) -> T:
        patience: Patience | None = None
        while True:
            try:
                result = call()
            except StorageError as error:
                patience = patience or Patience(self._clock)
                if error.is_permanent or self._in_vain or not patience.wait():
                    self._in_vain = not error.is_permanent
                    raise
                log.warning("%s failed and is tried again: %s", doing, error)
            else:
                self._in_vain = False
                return result
