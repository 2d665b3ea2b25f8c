"""``HttpSink`` keeps the contract of sinks: at least once, whether an epoch waits for its requests or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from filesink import HttpSink, Sending
from tests.contracts.sink_contract import SinkContract
from tests.contracts.sink_site import SinkSite
from tests.sinks.http.server import HttpServer


@dataclass
class HttpSite(SinkSite):
    """What the service has taken."""

    server: HttpServer
    directory: Path
    sending: Sending

    def sink(self):
        return HttpSink(self.server.url, ledger=self.directory, sending=self.sending, uid="u")._sink

    def arrived(self) -> list[int]:
        return [record["id"] for record in self.server.records()]


class TestHttpSink(SinkContract):
    @pytest.fixture
    def site(self, server: HttpServer, tmp_path: Path) -> SinkSite:
        return HttpSite(server, tmp_path, Sending())


class TestHttpSinkThatKeepsWhatIsNotSent(SinkContract):
    """Its requests are never full: all is kept to the next epoch, and at the end the driver sends it."""

    @pytest.fixture
    def site(self, server: HttpServer, tmp_path: Path) -> SinkSite:
        return HttpSite(server, tmp_path, Sending(at_commit="keep"))
