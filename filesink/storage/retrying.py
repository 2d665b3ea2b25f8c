"""A store around a store that retries calls where that may help. For drivers; Spark repeats tasks.

Rules:

* A call is retried only if its contract allows to call it again and nobody else retries it: not ``publish``
  and ``release``, which a committer repeats for many files at once, and not ``sync``, whose second answer
  proves nothing.
* ``put_if_absent`` may find what an earlier try has made after all, and then says ``EXISTS``. A caller that
  must know whose file it is has to look, as after a lost reply.
* After retries that did not help there are none until a call succeeds. So an outage is waited for once, and
  not again by each call that finds out what it has left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, TypeVar

from filesink.errors import StorageError
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.storage.api import Deletion, Entry, Output, PutResult, Removal, Store
from filesink.storage.bucket_ids import Refusal
from filesink.storage.staged import Piece, Staged

T = TypeVar("T")
log = logging.getLogger("filesink")


class RetryingStore(Store):
    """Does what ``store`` does, and retries for a while what may succeed later.

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
        """See ``Store.prepare``. Not retried: whoever starts a sink hears at once what is wrong."""
        self._store.prepare()

    def removal(self) -> Removal:
        """See ``Store.removal``."""
        return self._retried("removing", self._store.removal)

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
        self._retried(f"looking at '{staged.path}'", lambda: self._store.verify(staged))

    def publish(self, staged: Staged, target: str) -> None:
        """See ``Store.publish``."""
        self._store.publish(staged, target)

    def is_published(self, staged: Staged, target: str) -> bool:
        """See ``Store.is_published``."""
        return self._retried(f"looking at '{target}'", lambda: self._store.is_published(staged, target))

    def sync_directories(self, directories: Iterable[str]) -> None:
        """See ``Store.sync_directories``."""
        self._store.sync_directories(directories)

    def release(self, staged: Staged) -> None:
        """See ``Store.release``."""
        self._store.release(staged)

    def discard(self, path: str) -> None:
        """See ``Store.discard``."""
        self._retried(f"removing '{path}'", lambda: self._store.discard(path))

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``, and the rules above."""
        return self._retried(f"creating '{path}'", lambda: self._store.put_if_absent(path, data))

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        return self._retried(f"reading '{path}'", lambda: self._store.read(path))

    def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        self._retried(f"removing '{path}'", lambda: self._store.delete(path))

    def delete_if_unchanged(self, path: str, *, size: int, version: str) -> Deletion:
        """See ``Store.delete_if_unchanged``."""
        return self._retried(
            f"removing '{path}'",
            lambda: self._store.delete_if_unchanged(path, size=size, version=version),
        )

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        return self._retried(f"listing '{directory}'", lambda: self._store.list(directory))

    def scan(self, directory: str) -> Iterator[Entry]:
        """See ``Store.scan``. Not retried: a part of it may have been handed on."""
        return self._store.scan(directory)

    def find(self, path: str) -> Entry | None:
        """See ``Store.find``."""
        return self._retried(f"looking at '{path}'", lambda: self._store.find(path))

    def open_input(self, path: str) -> BinaryIO:
        """See ``Store.open_input``."""
        return self._store.open_input(path)

    def _retried(self, doing: str, call: Callable[[], T]) -> T:
        backoff: Backoff | None = None
        while True:
            try:
                result = call()
            except StorageError as error:
                backoff = backoff or Backoff(self._clock)
                if error.is_permanent or self._in_vain or not backoff.wait():
                    self._in_vain = not error.is_permanent
                    raise
                log.warning("%s failed and is tried again: %s", doing, error)
            else:
                self._in_vain = False
                return result
