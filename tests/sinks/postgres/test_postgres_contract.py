"""``PostgresSink`` keeps the contract of sinks, however its rows wait for the decision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink import PostgresSink, PostgresTable
from tests.contracts.sink_contract import ExactlyOnceSinkContract
from tests.contracts.sink_site import SinkSite
from tests.sinks.postgres.server import TestServer
from tests.sinks.postgres.site import Site, rows

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "staged": ("id bigint, name text", {}),
    "prepared": ("id bigint, name text", {"commit": "prepared"}),
    "by keys": ("id bigint PRIMARY KEY, name text", {"keys": ["id"]}),
}


@dataclass
class PostgresSite(SinkSite):
    """A table, read by a connection of its own."""

    table: Site

    def sink(self) -> Any:
        name = f"{self.table.schema}.{self.table.table}"
        options = PostgresTable(name, **self.table.options)
        return PostgresSink(
            self.table.conninfo, options, ledger=self.table.directory / "ledger", uid="u"
        )._sink

    def batch(self, ids: Any) -> pa.RecordBatch:
        return rows(*ids)

    def arrived(self) -> list[int]:
        return self.table.ids_there()


class TestPostgresSink(ExactlyOnceSinkContract):
    @pytest.fixture(params=KINDS)
    def site(self, request: pytest.FixtureRequest, postgres: TestServer, tmp_path: Path) -> SinkSite:
        ddl, options = KINDS[request.param]
        return PostgresSite(Site(postgres, tmp_path, ddl=ddl, options=options))
