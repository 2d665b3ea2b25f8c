"""Events as metrics of Prometheus. Needs ``pip install 'filesink[prometheus]'``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filesink.api.events import EpochComplete, EpochFailed, SinkEvent
from filesink.errors import DependencyError
from filesink.telemetry.measures import METRICS, Kind, Metric, measures_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_LABELS = ("destination", "sink")


class PrometheusListener:
    """Counts what a sink does in a registry that Prometheus scrapes; one listener serves many sinks.

    The program serves it, as in ``prometheus_client.start_http_server(9464, addr="127.0.0.1")``.
    docs/reference/metrics.md has the metrics. A counter begins at 0 with the program.

    Args:
        registry: that of ``prometheus_client`` by default. A registry takes one listener: two would have
            the same names.
        push_gateway: ``host:port`` of a push gateway, if the program ends before anybody scrapes it: all
            is sent there at the end of each epoch, which waits for it, 2 seconds at most.
        job: the name of the program at the push gateway.

    Raises:
        DependencyError: ``prometheus_client`` is not installed.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        push_gateway: str | None = None,
        job: str = "filesink",
    ) -> None:
        self._client = _client()
        self._registry = self._client.REGISTRY if registry is None else registry
        self._push_gateway = push_gateway
        self._job = job
        self._made = {metric.name: self._make(metric) for metric in METRICS}

    def __call__(self, event: SinkEvent, /) -> None:
        """See ``Listener``."""
        for measure in measures_of(event):
            child = self._made[measure.metric.name].labels(**measure.all_labels)
            match measure.metric.kind:
                case Kind.COUNTER:
                    child.inc(measure.value)
                case Kind.GAUGE:
                    child.set(measure.value)
                case Kind.HISTOGRAM:
                    child.observe(measure.value)
        if self._push_gateway is not None and isinstance(event, EpochComplete | EpochFailed):
            self._client.push_to_gateway(
                self._push_gateway, job=self._job, registry=self._registry, timeout=2
            )

    def _make(self, metric: Metric) -> Any:
        labels = (*_LABELS, *metric.labels)
        match metric.kind:
            case Kind.COUNTER:
                return self._client.Counter(metric.name, metric.meaning, labels, registry=self._registry)
            case Kind.GAUGE:
                return self._client.Gauge(metric.name, metric.meaning, labels, registry=self._registry)
            case Kind.HISTOGRAM:
                return self._client.Histogram(
                    metric.name, metric.meaning, labels, registry=self._registry, buckets=metric.buckets
                )


def _client() -> Any:
    try:
        import prometheus_client
    except ImportError as error:
        raise DependencyError(
            "PrometheusListener needs prometheus_client: pip install 'filesink[prometheus]'",
            code="DEPENDENCY",
        ) from error
    return prometheus_client
