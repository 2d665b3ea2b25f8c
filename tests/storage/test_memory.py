"""The store in memory keeps the contract that others are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from filesink.storage.api import Store
from filesink.storage.memory import MemoryFile, MemoryFiles, MemoryStore
from filesink.storage.staged import Staged
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site


@dataclass
class MemorySite(Site):
    """The dictionary itself is the oracle."""

    shared: MemoryFiles = field(default_factory=MemoryFiles)

    def store(self) -> Store:
        return MemoryStore(self.shared)

    def files(self) -> dict[str, bytes]:
        return {path: file.content for path, file in self.shared.files.items()}

    def plant(self, path: str, data: bytes) -> None:
        self.shared.files[path] = MemoryFile(inode=-1, mtime_ms=-1, content=data)

    def remove(self, path: str) -> None:
        del self.shared.files[path]

    def half_publish(self, staged: Staged, target: str) -> None:
        self.shared.files[target] = self.shared.files[staged.path]


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def site(self) -> Site:
        return MemorySite()


def test_files_are_dated_by_the_given_clock() -> None:
    """A simulated clock gives listings their times."""
    store = MemoryStore(MemoryFiles(now_ms=lambda: 1234))
    store.put_if_absent("a/x", b"1")
    assert [entry.mtime_ms for entry in store.list("a")] == [1234]
