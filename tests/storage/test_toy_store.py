"""The store of ``tests/examples`` keeps the contract: all that enrols a new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink.ports import SerialRunner
from filesink.storage.api import Store
from filesink.storage.hdfs.output import HdfsFiles
from filesink.storage.hdfs.store import HdfsStore
from filesink.system import SystemIds
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site
from tests.examples.toy_store import ToyTree
from tests.storage.local.test_local import LocalSite


class ToySite(LocalSite):
    """Looked at by other means than the store's own."""

    def store(self) -> Store:
        files = HdfsFiles(ToyTree(), str(self.base), url=f"toy://{self.base}")
        return HdfsStore(files, runner=SerialRunner(), ids=SystemIds())


class TestToyStore(StoreContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        return ToySite(tmp_path / "out")
