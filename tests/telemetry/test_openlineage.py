"""Run events of OpenLineage: one START and one end of each run, valid, and nothing secret in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("openlineage.client", reason="openlineage-python is not installed")

from openlineage.client import OpenLineageClient
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport

from filesink.api.events import Listeners
from filesink.errors import FilesinkError, StorageError
from filesink.file_sink.report import changes_of
from filesink.storage.faulty import Fault, Moment
from filesink.telemetry.openlineage import OpenLineageListener, dataset_of
from tests.fakes import World, micro_batch, records

VALUE = "of-a-record"
PRIVATE = "of an error"


class Kept(Transport):
    """Keeps what would be sent."""

    kind = "kept"

    def __init__(self):
        self.events = []

    def emit(self, event):
        self.events.append(json.loads(Serde.to_json(event)))


class Lineage:
    """A world with a listener, and what it has sent."""

    def __init__(self, destination="/base"):
        self.kept = Kept()
        listener = OpenLineageListener(OpenLineageClient(transport=self.kept), job="nightly")
        self.world = World(audience=Listeners(destination, [listener], changes_of))
        self.world.clock.now = 1_700_000_000_000

    def write(self, number=0):
        job = self.world.job(records(VALUE, VALUE, bucket="p=1"), offsets='{"logOffset":2}')
        self.world.driver().run(micro_batch(number), job)

    @property
    def events(self):
        return self.kept.events

    def states(self):
        return [(event["run"]["runId"], event["eventType"]) for event in self.events]


def every_kind():
    """Events of an epoch that succeeds, of one that fails, and of one that a later driver completes."""
    lineage = Lineage()
    lineage.write()
    refusal = StorageError(PRIVATE, code="IO")
    for failing in ("write", "publish"):
        lineage.world.fault = lambda operation, _path, failing=failing: (
            Fault(moment=Moment.BEFORE, error=refusal) if operation.startswith(failing) else None
        )
        with pytest.raises(FilesinkError):
            lineage.write(1)
    lineage.world.fault = lambda _operation, _path: None
    lineage.write(2)
    return lineage


def test_each_run_starts_and_ends():
    """Once each, also that of an epoch which an earlier driver has decided."""
    states = every_kind().states()
    runs = {run for run, _ in states}
    ends = {run: [state for one, state in states if one == run] for run in runs}
    assert {tuple(found) for found in ends.values()} == {("START", "COMPLETE"), ("START", "FAIL")}
    assert [state for _, state in states].count("FAIL") == 2
    assert [state for _, state in states].count("COMPLETE") == 3


def test_what_an_event_says():
    """Columns, rows, files, offsets, whose it is."""
    lineage = Lineage("s3://bucket/trips/all/")
    lineage.write()
    start, done = lineage.events
    assert done["job"] == {**done["job"], "namespace": "filesink", "name": "nightly"}
    assert done["eventTime"].startswith("2023-11-14T22:13:20")
    epoch = done["run"]["facets"]["filesink_epoch"]
    assert (epoch["kind"], epoch["epoch"], epoch["batchId"], epoch["rowsIn"]) == ("micro-batch", 0, 0, 2)
    assert epoch["offsets"] == '{"logOffset":2}'
    [output] = done["outputs"]
    assert (output["namespace"], output["name"]) == ("s3://bucket", "trips/all")
    fields = [(field["name"], field["type"]) for field in output["facets"]["schema"]["fields"]]
    assert fields == [("bucket", "string"), ("value", "string")]
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (2, 1)
    assert statistics["size"] == 2 * len(f"{VALUE}\n")
    [added] = output["outputFacets"]["filesink_files"]["added"]
    assert added in lineage.world.visible()
    assert start["outputs"][0]["facets"]["schema"] == output["facets"]["schema"]
    assert "outputFacets" not in start["outputs"][0] or not start["outputs"][0]["outputFacets"]


def test_no_value_and_no_text_of_an_error():
    """They may be secret; type and code are there."""
    text = json.dumps(every_kind().events)
    assert VALUE not in text
    assert PRIVATE not in text
    assert "StorageError (IO); the epoch is not decided" in text
    assert "CommitFailedError (RETRIES); the epoch is decided" in text


@pytest.mark.parametrize(
    ("path", "dataset"),
    [
        ("/data/trips", ("file", "/data/trips")),
        ("file:///data/trips", ("file", "/data/trips")),
        ("s3://bucket/a/b/", ("s3://bucket", "a/b")),
        ("s3://bucket", ("s3://bucket", "/")),
        ("hdfs://host:8020/a", ("hdfs://host:8020", "/a")),
        ("abfss://files@account.dfs.core.windows.net/a", ("abfss://files@account.dfs.core.windows.net", "a")),
    ],
)
def test_a_path_is_named_as_others_name_it(path, dataset):
    """Else a backend shows two datasets where Spark's own lineage and ours speak of one."""
    assert dataset_of(path) == dataset


def _specification() -> Path:
    found = os.environ.get("FILESINK_OPENLINEAGE_SPEC")
    if not found:
        pytest.skip("FILESINK_OPENLINEAGE_SPEC does not name the directory 'spec' of OpenLineage's sources")
    return Path(found)


def test_events_are_valid():
    """Against the JSON schema of run events, and each of its standard facets against its own."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    referencing = pytest.importorskip("referencing")
    spec = _specification()
    found = [
        json.loads(path.read_text()) for path in (spec / "OpenLineage.json", *spec.glob("facets/*.json"))
    ]
    registry = referencing.Registry().with_contents((one["$id"], one) for one in found)
    base = next(one["$id"] for one in found if "facets" not in one["$id"])
    checked = 0
    for event in every_kind().events:
        _check(jsonschema, registry, event, f"{base}#/$defs/RunEvent")
        for facet in _facets(event):
            url = facet["_schemaURL"]
            if "/facets/" in url:
                _check(jsonschema, registry, facet, url)
                checked += 1
    assert checked > 10


def _check(jsonschema, registry, value, url):
    form = jsonschema.FormatChecker()
    jsonschema.Draft202012Validator({"$ref": url}, registry=registry, format_checker=form).validate(value)


def _facets(event):
    for holder in (event["run"], event["job"], *event["outputs"]):
        yield from holder.get("facets", {}).values()
        yield from holder.get("outputFacets", {}).values()
