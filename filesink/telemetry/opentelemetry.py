"""Events as spans and metrics of OpenTelemetry. Needs ``pip install 'filesink[opentelemetry]'``.

Spans are made when an epoch has ended, with the times that its events tell: nothing is kept between two
events, and an epoch whose driver dies leaves no span that never ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from filesink.api.events import EpochComplete, EpochFailed, SinkEvent
from filesink.errors import DependencyError
from filesink.telemetry.measures import METRICS, Kind, Metric, measures_of

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_SCOPE = "filesink"


class OpenTelemetryListener:
    """Traces epochs and counts what a sink does; one listener serves many sinks.

    An epoch is a span ``filesink epoch``, with a child for each step: ``filesink write``, from its begin to
    the decision, ``filesink publish``, until its files are visible, and ``filesink complete``. One that
    failed has an error, and no children. Metrics are those of docs/reference/metrics.md; the names of
    counters have no ``_total``, which exporters add.

    Args:
        tracer_provider: where spans go; the global one by default.
        meter_provider: where metrics go; the global one by default.

    Raises:
        DependencyError: ``opentelemetry-api`` is not installed.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._trace, metrics = _client()
        self._tracer = self._trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._made = {metric.name: _make(meter, metric) for metric in METRICS}

    def __call__(self, event: SinkEvent, /) -> None:
        """See ``Listener``."""
        for measure in measures_of(event):
            made = self._made[measure.metric.name]
            match measure.metric.kind:
                case Kind.COUNTER:
                    made.add(measure.value, measure.all_labels)
                case Kind.GAUGE:
                    made.set(measure.value, measure.all_labels)
                case Kind.HISTOGRAM:
                    made.record(measure.value, measure.all_labels)
        match event:
            case EpochComplete():
                self._complete(event)
            case EpochFailed():
                self._failed(event)
            case _:
                pass

    def _complete(self, event: EpochComplete) -> None:
        begin = event.decided_ms if event.began_ms is None else event.began_ms
        parent = self._span("filesink epoch", begin, event)
        parent.set_attribute("filesink.rows", event.rows)
        parent.set_attribute("filesink.files", len(event.changes.files))
        parent.set_attribute("filesink.bytes", sum(file.bytes for file in event.changes.files))
        inside = self._trace.set_span_in_context(parent)
        for name, first_ms, last_ms in _steps(event):
            child = self._tracer.start_span(name, context=inside, start_time=_ns(first_ms))
            child.end(end_time=_ns(last_ms))
        parent.end(end_time=_ns(event.at_ms))

    def _failed(self, event: EpochFailed) -> None:
        span = self._span("filesink epoch", event.at_ms if event.began_ms is None else event.began_ms, event)
        span.set_attribute("error.type", event.code or event.error)
        span.set_attribute("filesink.decided", event.decided)
        span.set_status(self._trace.StatusCode.ERROR)
        span.end(end_time=_ns(event.at_ms))

    def _span(self, name: str, begin_ms: int, event: SinkEvent) -> Any:
        known = {
            "filesink.run": event.run,
            "filesink.destination": event.destination,
            "filesink.sink": event.sink,
            "filesink.kind": event.kind,
            "filesink.recovered": event.recovered,
            "filesink.epoch": event.epoch,
            "filesink.query_id": event.query_id,
            "filesink.batch_id": event.batch_id,
        }
        attributes = {key: value for key, value in known.items() if value is not None}
        return self._tracer.start_span(name, start_time=_ns(begin_ms), attributes=attributes)


def _steps(event: EpochComplete) -> Iterator[tuple[str, int, int]]:
    if event.began_ms is not None:
        yield "filesink write", event.began_ms, event.decided_ms
    yield "filesink publish", event.decided_ms, event.visible_ms
    yield "filesink complete", event.visible_ms, event.at_ms


def _make(meter: Any, metric: Metric) -> Any:
    match metric.kind:
        case Kind.COUNTER:
            return meter.create_counter(metric.name.removesuffix("_total"), description=metric.meaning)
        case Kind.GAUGE:
            return meter.create_gauge(metric.name, description=metric.meaning)
        case Kind.HISTOGRAM:
            return meter.create_histogram(
                metric.name,
                description=metric.meaning,
                explicit_bucket_boundaries_advisory=list(metric.buckets),
            )


def _ns(ms: int) -> int:
    return ms * 1_000_000


def _client() -> tuple[Any, Any]:
    try:
        from opentelemetry import metrics, trace
    except ImportError as error:
        raise DependencyError(
            "OpenTelemetryListener needs opentelemetry-api: pip install 'filesink[opentelemetry]'",
            code="DEPENDENCY",
        ) from error
    return trace, metrics
