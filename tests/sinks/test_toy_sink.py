"""The sink of ``tests/examples`` keeps the contract: all that enrols a new one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from filesink import StoreLedger
from tests.contracts.sink_contract import ExactlyOnceSinkContract
from tests.contracts.sink_site import SinkSite
from tests.examples.toy_sink import IdSink


@dataclass
class ToySite(SinkSite):
    """Read by a statement of its own."""

    directory: Path

    def sink(self) -> IdSink:
        return IdSink(ledger=StoreLedger(self.directory), uid="ids")

    def arrived(self) -> list[int]:
        with closing(sqlite3.connect(self.directory / "ids.db")) as database:
            known = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            return [row[0] for row in database.execute("SELECT id FROM ids")] if known else []


class TestToySink(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        return ToySite(tmp_path)
