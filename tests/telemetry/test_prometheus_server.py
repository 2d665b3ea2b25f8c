"""A real Prometheus scrapes a sink that runs, and what a real gateway was sent."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from filesink.api.events import Listeners
from filesink.file_sink.report import changes_of
from filesink.telemetry.measures import METRICS, Kind
from filesink.telemetry.prometheus import PrometheusListener
from tests.fakes import World, micro_batch, records
from tests.servers import running

pytestmark = pytest.mark.slow
_PATIENCE = 60.0  # seconds, on a machine that is busy with other tests


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian's package has its name)")
    return found


def _json(url: str) -> object:
    with closing(urlopen(url, timeout=10)) as answer:  # noqa: S310 - of our own server
        return json.loads(answer.read())


class Prometheus:
    """A server, and what it knows."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def values(self, query: str) -> list[float]:
        """Of all series that ``query`` finds now."""
        found = _json(f"{self._url}/query?query={quote(query)}")
        return [float(one["value"][1]) for one in found["data"]["result"]]

    def kinds(self) -> dict[str, str]:
        """Of all metrics that were scraped."""
        found = _json(f"{self._url}/metadata")
        return {name: told[0]["type"] for name, told in found["data"].items()}


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[int], object]]:
    """Starts one that scrapes a port ten times a second."""
    program = _program("prometheus")

    def start(port: int) -> object:
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "scrape_configs: [{job_name: sink, honor_labels: true, scrape_interval: 100ms, "
            f"scrape_timeout: 100ms, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]"
        )
        return running(
            lambda own: [
                program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{own}",
            ],
            tmp_path / "prometheus.log",
        )  # fmt: skip

    return start


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it was never seen"
        time.sleep(0.1)


def _world(listener: PrometheusListener) -> World:
    world = World(audience=Listeners("/base", [listener], changes_of))
    world.clock.now = int(time.time() * 1000)
    return world


def test_a_running_sink_is_scraped(prometheus) -> None:
    """Between its epochs: rows as they become visible, metrics of each kind, the alert of the docs."""
    registry = CollectorRegistry()
    world = _world(PrometheusListener(registry))
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        with prometheus(server.server_port) as port:
            found = Prometheus(port)
            for number in range(3):
                world.driver().run(micro_batch(number), world.job(records("1", "2")))
                expected = [2.0 * (number + 1)]
                _until(lambda expected=expected: found.values("filesink_rows_total") == expected)
            assert found.values("time() - filesink_last_epoch_timestamp_seconds > 600") == []
            assert found.values("histogram_quantile(0.5, filesink_file_size_bytes_bucket)") != []
            kinds = {metric.name.removesuffix("_total"): metric.kind.value for metric in METRICS}
            told = {name: kind for name, kind in found.kinds().items() if name in kinds}
            assert told.items() <= kinds.items()
            assert set(told.values()) == {kind.value for kind in Kind}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_a_gateway_was_sent_is_scraped(prometheus, tmp_path: Path) -> None:
    """By a program that ended long before anybody looked."""
    program = _program("prometheus-pushgateway")
    gateway = running(
        lambda own: [program, f"--web.listen-address=127.0.0.1:{own}"], tmp_path / "gateway.log"
    )
    with gateway as port, prometheus(port) as other:
        world = _world(PrometheusListener(CollectorRegistry(), push_gateway=f"127.0.0.1:{port}"))
        world.driver().run(micro_batch(0), world.job(records("1", "2", "3")))
        _until(lambda: Prometheus(other).values("filesink_rows_total") == [3.0])
