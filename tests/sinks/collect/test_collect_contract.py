"""``CollectSink`` keeps the contract of sinks, read without its client and without the inventory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink import CollectSink
from tests.contracts.sink_contract import ExactlyOnceSinkContract
from tests.contracts.sink_site import SinkSite


@dataclass
class CollectSite(SinkSite):
    """The Arrow files of the directory."""

    directory: Path

    def sink(self) -> Any:
        return CollectSink(self.directory)._sink

    def arrived(self) -> list[int]:
        tables = [pa.ipc.open_file(path).read_all() for path in self.directory.glob("*.arrow")]
        return [number for table in tables for number in table["id"].to_pylist()]


class TestCollectSink(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return CollectSite(tmp_path / "collected")
