"""Epochs as run events of OpenLineage. Needs ``pip install 'filesink[openlineage]'``.

A run is one attempt at an epoch: ``START``, then ``COMPLETE`` or ``FAIL``. An attempt that found the epoch
decided, as after a crash, starts with that. What the sources of a query are called no driver knows: a run has
no inputs, and what they have read is in its facet ``filesink_epoch``, as Spark's offset log has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from filesink.api.events import EpochBegan, EpochComplete, EpochFailed, SinkEvent
from filesink.errors import DependencyError

if TYPE_CHECKING:
    import pyarrow as pa
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import OutputDataset, RunEvent

_PRODUCER: Final = "urn:filesink"
_NAMED: Final = 100  # files of an event: a backend is no list of files


class OpenLineageListener:
    """Tells a backend of lineage, such as Marquez, of each epoch; one listener serves many sinks.

    The output is the base path, with the columns of the input, and what the epoch has added: rows, bytes,
    number of files, and paths of the first 100. No event has a value of a record or the text of an error.

    Args:
        client: sends events; by default one that the environment configures (``OPENLINEAGE_URL``,
            ``openlineage.yml``). An epoch waits for what it does: prefer a transport that does not block.
        namespace: of the jobs.
        job: the name of the program's job; by default the base path and the sink's id.

    Raises:
        DependencyError: ``openlineage-python`` is not installed.
    """

    def __init__(
        self,
        client: OpenLineageClient | None = None,
        *,
        namespace: str = "filesink",
        job: str | None = None,
    ) -> None:
        self._ol = _client()
        self._client = self._ol.OpenLineageClient() if client is None else client
        self._namespace = namespace
        self._job = job

    def __call__(self, event: SinkEvent, /) -> None:
        """See ``Listener``."""
        state = self._ol.RunState
        match event:
            case EpochBegan():
                self._emit(event, state.START, event.at_ms)
            case EpochComplete():
                if event.began_ms is None:  # nobody has heard of this attempt
                    self._emit(event, state.START, event.decided_ms)
                self._emit(event, state.COMPLETE, event.at_ms)
            case EpochFailed():
                if event.began_ms is None:
                    self._emit(event, state.START, event.at_ms)
                self._emit(event, state.FAIL, event.at_ms)
            case _:
                return

    def _emit(self, event: SinkEvent, state: Any, at_ms: int) -> None:
        self._client.emit(self._run_event(event, state, at_ms))

    def _run_event(self, event: SinkEvent, state: Any, at_ms: int) -> RunEvent:
        ol, ended = self._ol, state is not self._ol.RunState.START
        facets = {"filesink_epoch": _with(ol.RunFacet, _epoch(event))}
        if isinstance(event, EpochFailed) and ended:
            facets["errorMessage"] = ol.ErrorMessage(_error(event), "PYTHON", producer=_PRODUCER)
        name = self._job or f"{event.destination}/{event.sink}"
        processing = "STREAMING" if event.kind == "micro-batch" else "BATCH"
        kind = ol.JobType(processing, "FILESINK", jobType="JOB", producer=_PRODUCER)
        found: RunEvent = ol.RunEvent(
            eventType=state,
            eventTime=datetime.fromtimestamp(at_ms / 1000, tz=UTC).isoformat(),
            run=ol.Run(event.run, facets),
            job=ol.Job(self._namespace, name, {"jobType": kind}),
            outputs=[self._output(event, ended=ended)],
            producer=_PRODUCER,
        )
        return found

    def _output(self, event: SinkEvent, *, ended: bool) -> OutputDataset:
        ol, facets, added = self._ol, {}, {}
        schema: pa.Schema | None = getattr(event, "schema", None)
        if schema is not None:
            fields = [ol.Field(name=one.name, type=str(one.type)) for one in schema]
            facets["schema"] = ol.Schema(fields, producer=_PRODUCER)
        if isinstance(event, EpochComplete) and ended:
            files = event.changes.files
            added["outputStatistics"] = ol.OutputStatistics(
                rowCount=sum(file.rows for file in files),
                size=sum(file.bytes for file in files),
                fileCount=len(files),
                producer=_PRODUCER,
            )
            added["filesink_files"] = _with(
                ol.OutputFacet,
                {
                    "added": [file.path for file in files[:_NAMED]],
                    "removed": list(event.changes.removed[:_NAMED]),
                    "filesRemoved": len(event.changes.removed),
                },
            )
        namespace, name = dataset_of(event.destination)
        found: OutputDataset = ol.OutputDataset(namespace, name, facets=facets, outputFacets=added)
        return found


def dataset_of(destination: str) -> tuple[str, str]:
    """Namespace and name of a path, by the naming of OpenLineage: ``s3://bucket`` and ``trips``."""
    found = urlsplit(destination)
    if not found.scheme or found.scheme == "file":
        return "file", found.path or destination
    if found.scheme in {"hdfs", "webhdfs"}:
        return f"{found.scheme}://{found.netloc}", found.path
    return f"{found.scheme}://{found.netloc}", found.path.strip("/") or "/"


def _epoch(event: SinkEvent) -> dict[str, Any]:
    """What identifies an epoch, and the offsets of its input; what is not known is left out."""
    values = {
        "sink": event.sink,
        "epoch": event.epoch,
        "kind": event.kind,
        "queryId": event.query_id,
        "batchId": event.batch_id,
        "recovered": event.recovered,
        "rowsIn": getattr(event, "rows", None),
        "offsets": getattr(event, "offsets", "") or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _error(event: EpochFailed) -> str:
    reason = f" ({event.code})" if event.code else ""
    return f"{event.error}{reason}; the epoch is {'decided' if event.decided else 'not decided'}"


def _with(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(producer=_PRODUCER).with_additional_properties(**values)


def _client() -> Any:
    try:
        from filesink.telemetry import lineage_classes
    except ImportError as error:
        raise DependencyError(
            "OpenLineageListener needs openlineage-python: pip install 'filesink[openlineage]'",
            code="DEPENDENCY",
        ) from error
    return lineage_classes
