"""``KafkaSink`` keeps the contract of sinks, with one transaction for an epoch and with one for each file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filesink import KafkaSink
from tests.contracts.sink_contract import ExactlyOnceSinkContract
from tests.contracts.sink_site import SinkSite
from tests.sinks.kafka.broker import Broker
from tests.sinks.kafka.site import Site

pytestmark = pytest.mark.slow
KINDS: dict[str, dict[str, Any]] = {"file by file": {"transaction_bytes": 1}, "an epoch at once": {}}
OFTEN, RARELY = KINDS


@dataclass
class KafkaSite(SinkSite):
    """A topic, read by a consumer of its own."""

    topic: Site

    def sink(self) -> Any:
        ledger = self.topic.directory / "ledger"
        return KafkaSink(self.topic.cluster(), self.topic.name, ledger=ledger, uid="u")._sink

    def batch(self, ids: Any) -> pa.RecordBatch:
        # The contract knows records by a column of numbers, and Kafka takes none.
        return pa.record_batch({"value": pa.array([str(one) for one in ids], pa.string())})

    def arrived(self) -> list[int]:
        return [int(message.value()) for message in self.topic.read()]


class TestKafkaSink(ExactlyOnceSinkContract):
    @pytest.fixture(params=[OFTEN, pytest.param(RARELY, marks=pytest.mark.nightly)])
    def site(self, request: pytest.FixtureRequest, kafka: Broker, tmp_path: Path) -> SinkSite:
        return KafkaSite(Site(kafka, tmp_path, options=KINDS[request.param]))
