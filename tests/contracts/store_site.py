"""Where the files of a store under test are looked at from outside."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence

from filesink.naming import HiddenName, join, parent
from filesink.storage.api import Output, Store
from filesink.storage.staged import Staged


class Site(ABC):
    """A place where files live, seen from outside the store."""

    @abstractmethod
    def store(self) -> Store:
        """A new store for this place, as another process would make it."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Path and content of every file that a reader could list, hidden ones too."""

    @abstractmethod
    def plant(self, path: str, data: bytes) -> None:
        """Put a foreign file, replacing whatever is there."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Take a file away."""

    @abstractmethod
    def half_publish(self, staged: Staged, target: str) -> None:
        """Do the first of the two steps of publishing, as a driver that was killed between them."""

    def visible(self) -> dict[str, bytes]:
        """What readers take for data: names that begin with neither '.' nor '_'."""
        return {path: data for path, data in self.files().items() if path.rpartition("/")[2][0] not in "._"}


def hidden(target: str) -> str:
    """A fresh hidden path for ``target``."""
    bucket, _, name = target.rpartition("/")
    return join(bucket, str(HiddenName(target=name, tag="0123abcd", slot=7, attempt=str(uuid.uuid4()))))


def stage(store: Store, target: str, *pieces: bytes) -> Staged:
    """Durable bytes that are published as ``target`` by the epoch that writes them."""
    return _close(store, store.create(hidden(target), target=target), pieces)


def hold(store: Store, target: str, *pieces: bytes) -> Staged:
    """A durable hidden file that later epochs may go on with, named like ``target``."""
    return _close(store, store.create(hidden(target), target=None), pieces)


def _close(store: Store, output: Output, pieces: Sequence[bytes]) -> Staged:
    for piece in pieces:
        output.write(piece)
    staged = output.close()
    store.sync()
    return staged


def finish(store: Store, staged: Staged, target: str) -> None:
    """Publish a file in the three steps of a commit: show, make durable, remove the hidden name."""
    store.publish(staged, target)
    store.sync_directories([parent(target)])
    store.release(staged)
