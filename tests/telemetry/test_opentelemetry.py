"""Spans of epochs with the times of their steps, and the metrics of the table."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from filesink.api.events import Listeners
from filesink.file_sink.report import changes_of
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy
from filesink.telemetry.opentelemetry import OpenTelemetryListener
from tests.fakes import World, micro_batch, records

VALUE = "of a record"


class Traced:
    """A world whose clock goes on at each step, and what was exported of it."""

    def __init__(self):
        self.spans = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.metrics = InMemoryMetricReader()
        meters = MeterProvider(metric_readers=[self.metrics])
        listener = OpenTelemetryListener(tracer_provider=tracers, meter_provider=meters)
        announce = PartitionCommit(policies=[ListenerPolicy(lambda _: self.passes(700))])
        self.world = World(partition_commit=announce, audience=Listeners("/base", [listener], changes_of))
        self.world.clock.now = 1_000_000

    def passes(self, ms):
        self.world.clock.now += ms

    def job(self):
        job = self.world.job(records(VALUE, bucket="p=1"))
        write = job.write
        job.write = lambda task: (self.passes(2000), write(task))[1]
        return job

    def values(self):
        found = {}
        for scope in self.metrics.get_metrics_data().resource_metrics[0].scope_metrics:
            for metric in scope.metrics:
                found[metric.name] = list(metric.data.data_points)
        return found


def times(span):
    """Begin and end, in milliseconds after the begin of the test."""
    return span.start_time // 10**6 - 1_000_000, span.end_time // 10**6 - 1_000_000


def test_spans_have_the_times_of_the_steps():
    """Two seconds of writing and 0.7 of announcing are where they were spent, in spans of one trace."""
    traced = Traced()
    traced.world.driver().run(micro_batch(0), traced.job())
    spans = {span.name: span for span in traced.spans.get_finished_spans()}
    assert {name: times(span) for name, span in spans.items()} == {
        "filesink write": (0, 2000),
        "filesink publish": (2000, 2000),
        "filesink complete": (2000, 2700),
        "filesink epoch": (0, 2700),
    }
    parent = spans.pop("filesink epoch")
    assert {span.parent.span_id for span in spans.values()} == {parent.context.span_id}
    assert (parent.attributes["filesink.rows"], parent.attributes["filesink.batch_id"]) == (1, 0)
    assert all(VALUE not in span.to_json() for span in (parent, *spans.values()))


def test_a_failed_epoch_is_a_span_with_an_error():
    """By its type; the text of the error is not there."""
    traced = Traced()
    job = traced.job()
    job.write = lambda _task: (_ for _ in ()).throw(ValueError(VALUE))
    with pytest.raises(ValueError, match=VALUE):
        traced.world.driver().run(micro_batch(0), job)
    (span,) = traced.spans.get_finished_spans()
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "ValueError")
    assert VALUE not in span.to_json()


def test_metrics_are_those_of_the_table():
    """Counters, gauges and histograms with their bounds."""
    traced = Traced()
    traced.world.driver().run(micro_batch(0), traced.job())
    found = traced.values()
    (rows,) = found["filesink_rows"]
    assert (rows.value, dict(rows.attributes)) == (1, {"destination": "/base", "sink": "uid-u"})
    assert {point.attributes["step"]: point.sum for point in found["filesink_epoch_seconds"]} == {
        "write": 2.0, "publish": 0.0, "complete": 0.7, "all": 2.7,
    }  # fmt: skip
    assert 16 * 1024 in found["filesink_file_size_bytes"][0].explicit_bounds
    assert found["filesink_last_epoch_timestamp_seconds"][0].value == 1002.7
