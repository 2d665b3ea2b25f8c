"""The two writers that Spark calls: one for a batch write, one for each micro-batch of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from filesink.commit.external_epochs import tag_of
from filesink.data_source.door_words import in_words_of_options
from filesink.data_source.save_modes import ModeOf, reported_mode, session_mode
from filesink.data_source.task_message import Report
from filesink.data_source.task_properties import continuous_processing, micro_batch_of
from filesink.data_source.write import DataSourceWrite
from filesink.errors import InternalError
from filesink.ledger.identity import stream_sink_id
from filesink.ledger.record import BatchWrite, MicroBatch
from filesink.spark.input.job import task_context

if TYPE_CHECKING:
    import pyarrow as pa


class BatchWriter(DataSourceArrowWriter):
    """One batch write. Made on the driver; the same pickle serves tasks, commit and abort.

    Args:
        write: does the work.
        cause: what is written, and in which mode.
        sink_id: of the ledger; given, because a fresh one must be the same everywhere.
        chosen: who says what an overwrite replaces. Only tasks can see the session's setting.
    """

    def __init__(
        self, write: DataSourceWrite, *, cause: BatchWrite, sink_id: str, chosen: ModeOf = ModeOf.OPTIONS
    ) -> None:
        self._write = write
        self._cause = cause
        self._sink_id = sink_id
        self._chosen = chosen

    def write(  # type: ignore[override] # PySpark's own Arrow classes do the same
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Write one partition; called once per task attempt."""
        cause = self._cause
        with in_words_of_options():
            if self._chosen is ModeOf.SESSION:
                cause = replace(cause, mode=session_mode(task_context()))
            return self._write.write(cause, self._sink_id, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks visible; called once."""
        reports = _all_reports(messages)
        cause = self._cause
        if self._chosen is ModeOf.SESSION:
            cause = replace(cause, mode=reported_mode(reports))
        with in_words_of_options():
            self._write.commit(cause, self._sink_id, reports)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called after a task or ``commit`` has failed; ``None`` stands for a task without result."""
        files_of = tag_of(self._cause, self._sink_id)
        self._write.abort(self._sink_id, _reports(messages), files_of=files_of)


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a stream. Made anew for the tasks and for each commit and abort."""

    def __init__(self, write: DataSourceWrite) -> None:
        self._write = write

    def write(  # type: ignore[override] # PySpark's own Arrow classes do the same
        self, iterator: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        """Write one partition; called once per task attempt."""
        cause = micro_batch_of(task_context())
        with in_words_of_options():
            return self._write.write(cause, self._sink_id(cause.query_id), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the files of all tasks visible; called again, with new files, if Spark replays."""
        reports = _all_reports(messages)
        causes = {(report.query_id, report.batch_id) for report in reports}
        if len(causes) != 1 or {batch_id for _, batch_id in causes} != {batchId}:
            raise InternalError(
                f"tasks of {len(causes)} batches were handed in for batch {batchId}; please report this",
                code="BATCH_ID",
            )
        query_id = reports[0].query_id
        cause = MicroBatch(query_id=query_id, batch_id=batchId, fingerprint="")
        with in_words_of_options():
            self._write.commit(cause, self._sink_id(query_id), reports)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Called after a task or ``commit`` has failed; ``None`` stands for a task without result."""
        reports = _reports(messages)
        known = next((report for report in reports if report is not None), None)
        if known is not None:
            sink_id = self._sink_id(known.query_id)
            self._write.abort(sink_id, reports, files_of=sink_id)

    def _sink_id(self, query_id: str) -> str:
        return stream_sink_id(self._write.sink.uid, query_id)


def _reports(messages: Sequence[WriterCommitMessage | None]) -> list[Report | None]:
    return [None if message is None else Report.from_message(message) for message in messages]


def _all_reports(messages: Sequence[WriterCommitMessage | None]) -> list[Report]:
    """Reports of every task. Continuous processing commits without any."""
    reports = [report for report in _reports(messages) if report is not None]
    if not reports or len(reports) < len(messages):
        raise continuous_processing()
    return reports
