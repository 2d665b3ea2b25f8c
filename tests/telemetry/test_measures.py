"""Metrics are named once, and say the same as the reports."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from compaction import FileCompactor, FileCompactStrategy
from filesink.api.events import EpochComplete, Listeners
from filesink.file_sink.report import changes_of
from filesink.parts.stages.closed_parts import Compaction
from filesink.telemetry.logs import LogListener, fields_of
from filesink.telemetry.measures import METRICS, measures_of
from filesink.telemetry.prometheus import PrometheusListener
from tests.fakes import World, keep_open, micro_batch, plan_of, records

DOCS = Path(__file__).resolve().parents[2] / "docs"
VALUE = "of a record"


def world_with(*listeners, **options):
    """A world whose drivers are listened to."""
    return World(audience=Listeners("/base", listeners, changes_of), **options)


def samples(registry):
    """Values by name and labels other than the common ones, as a scraper reads them."""
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            own = {
                name: value for name, value in sample.labels.items() if name not in {"destination", "sink"}
            }
            found[sample.name, *own.values()] = sample.value
    return found


def test_prometheus_counts_epochs_rows_files_and_bytes():
    """After two epochs of three rows and three files, and one that failed."""
    registry = CollectorRegistry()
    events = []
    world = world_with(PrometheusListener(registry), events.append)
    driver = world.driver()
    driver.run(micro_batch(0), world.job([records("1", "2")], records("3", bucket="b")))
    driver.run(micro_batch(1), world.job(records("4")))
    job = world.job(records("5"))
    job.write = lambda _task: (_ for _ in ()).throw(ValueError(VALUE))
    with pytest.raises(ValueError, match=VALUE):
        driver.run(micro_batch(2), job)
    found = samples(registry)
    files = [file for event in events if isinstance(event, EpochComplete) for file in event.changes.files]
    assert found["filesink_epochs_total", "micro-batch", "complete"] == 2
    assert found["filesink_epochs_total", "micro-batch", "failed"] == 1
    assert found["filesink_errors_total", "ValueError"] == 1
    assert found["filesink_rows_total",] == 4
    assert (found["filesink_files_total",], found["filesink_bytes_total",]) == (
        3,
        sum(f.bytes for f in files),
    )
    assert (found["filesink_file_size_bytes_count",], found["filesink_file_size_bytes_bucket", "+Inf"]) == (
        3,
        3,
    )
    assert found["filesink_epoch_seconds_count", "all"] == 2
    assert VALUE not in generate_latest(registry).decode()


def test_prometheus_shows_what_is_hidden_now():
    """A gauge goes down again when the parts are closed."""
    registry = CollectorRegistry()
    world = world_with(PrometheusListener(registry), plan=plan_of(policy=keep_open()))
    driver = world.driver()
    driver.run(micro_batch(0), world.job(records("1", "2")))
    assert samples(registry)["filesink_open_rows",] == 2
    driver.finish()
    assert samples(registry)["filesink_open_rows",] == 0


def test_prometheus_counts_merges():
    """What went in and what came out."""
    registry = CollectorRegistry()
    strategy = FileCompactStrategy(checkpoints=1)
    compaction = Compaction(strategy=strategy, compactor=FileCompactor.concat_file_compactor())
    world = world_with(PrometheusListener(registry), compaction=compaction)
    world.driver().run(micro_batch(0), world.job([records("1")], [records("2")]))
    found = samples(registry)
    assert found["filesink_merged_files_total", "in"] == 2
    assert found["filesink_merged_files_total", "out"] == 1


def test_a_gateway_that_is_away_fails_no_epoch():
    """Nobody listens at that port; the rows are there."""
    world = world_with(PrometheusListener(CollectorRegistry(), push_gateway="127.0.0.1:9"))
    world.driver().run(micro_batch(0), world.job(records("1")))
    assert world.rows() == ["1"]


def test_every_measure_is_of_a_metric_in_the_table():
    """Labels have the names that the metric says, and no epoch brings one that is not there."""
    events = []
    world = world_with(events.append)
    world.driver().run(micro_batch(0), world.job(records("1")))
    found = [measure for event in events for measure in measures_of(event)]
    assert {measure.metric for measure in found} <= set(METRICS)
    assert all(len(measure.all_labels) == 2 + len(measure.metric.labels) for measure in found)


def test_the_page_of_metrics_is_as_they_are():
    """Name, kind and labels, and none that is not there; ``python docs/site/metrics.py`` writes it."""
    page = (DOCS / "reference" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \|$", page, re.MULTILINE)
    found = {name: (kind, re.findall(r"`(\w+)`", labels), meaning) for name, kind, labels, meaning in rows}
    assert found == {one.name: (one.kind.value, [*one.labels], one.meaning) for one in METRICS}


def test_a_line_of_the_log_has_fields(caplog):
    """A line for each event, its figures as fields; an error is an error."""
    world = world_with(LogListener(logging.getLogger("app.sink")))
    with caplog.at_level(logging.INFO, "app.sink"):
        world.driver().run(micro_batch(0), world.job(records(VALUE)))
    lines = [record for record in caplog.records if record.name == "app.sink"]
    assert [line.filesink["event"] for line in lines] == [
        "EpochBegan", "PartsRolled", "EpochDecided", "EpochVisible", "EpochComplete",
    ]  # fmt: skip
    last = lines[-1].filesink
    assert (last["sink"], last["epoch"], last["rows"], last["files"]) == ("uid-u", 0, 1, 1)
    assert "rows=1" in lines[-1].getMessage()
    assert all(VALUE not in f"{line.getMessage()}{line.filesink}" for line in lines)


def test_fields_are_plain_values():
    """Whatever writes JSON can write them."""
    events = []
    world = world_with(events.append)
    world.driver().run(micro_batch(0), world.job(records("1")))
    assert {type(value) for event in events for value in fields_of(event).values()} <= {
        str, int, bool, type(None),
    }  # fmt: skip
