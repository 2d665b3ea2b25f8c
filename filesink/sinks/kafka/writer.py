"""What a task does: stage the rows of a partition in files, and note what they ask of their topics.

Rules: a file is closed when it is large enough, since a transaction sends whole files and has to end in time.
Files are in the sink's directory below ``STAGED``, under hidden names of ours, until they are sent or swept.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from filesink.api import SinkWriter, WriterContext
from filesink.errors import StorageError
from filesink.naming import HiddenName, join, sink_tag
from filesink.sinks.kafka import loads
from filesink.sinks.kafka.columns import Columns
from filesink.sinks.kafka.committables import STAGED, Committable, StagedFile, StagedRows
from filesink.sinks.kafka.loads import TopicLoad
from filesink.storage.api import Output, Store
from formats import ArrowWriterFactory
from formats.api import BulkWriter

_FILE_BYTES = 64 << 20  # as rows are in memory
FORMAT = ArrowWriterFactory(compression="lz4", batch_size="4MiB")


class StagingWriter(SinkWriter[None, Committable]):
    """Stages the records of one attempt.

    Args:
        store: of the sink's directory.
        topic: of the sink; ``""`` if each row names its own.
        context: of the task.
    """

    def __init__(self, store: Store, topic: str, context: WriterContext) -> None:
        self._store = store
        self._topic = topic
        self._context = context
        self._attempt = context.ids.uuid()
        self._columns: tuple[pa.Schema, Columns] | None = None
        self._open: OpenFile | None = None
        self._outputs: list[Output] = []
        self._files: list[StagedFile] = []
        self._loads: list[TopicLoad] = []

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """See ``SinkWriter.write``.

        Raises:
            DataError: ``KAFKA_VALUE``, ``KAFKA_TOPIC``; a row that no topic can take.
        """
        del context
        staged = self._columns_of(batch.schema).of_kafka(batch)
        self._loads = loads.merged([*self._loads, *loads.measure(staged)])
        if self._open is None:
            self._open = self._begin(staged.schema)
        self._open.write(staged)
        if self._open.bytes >= _FILE_BYTES:
            self._close()

    def prepare_commit(self, epoch: int) -> list[Committable]:
        """See ``SinkWriter.prepare_commit``; nothing without records."""
        del epoch
        self._close()
        if not self._files:
            return []
        self._store.sync()
        return [
            StagedRows(
                sink_id=self._context.sink_id,
                slot=self._context.epoch,
                files=tuple(self._files),
                loads=tuple(self._loads),
            )
        ]

    def abort_prepare(self) -> None:
        """See ``SinkWriter.abort_prepare``."""
        for output in self._outputs:
            with suppress(StorageError):  # swept by its name
                output.discard()

    def _columns_of(self, schema: pa.Schema) -> Columns:
        if self._columns is None or not self._columns[0].equals(schema):
            self._columns = schema, Columns.of(schema, self._topic)
        return self._columns[1]

    def _begin(self, schema: pa.Schema) -> OpenFile:
        name = HiddenName(
            target=f"rows-{len(self._outputs)}",
            tag=sink_tag(self._context.sink_id),
            slot=self._context.epoch,
            attempt=self._attempt,
        )
        output = self._store.create(join(STAGED, str(name)), target=None)
        self._outputs.append(output)
        return OpenFile(output, FORMAT.create(output, schema))

    def _close(self) -> None:
        if self._open is not None:
            self._files.append(self._open.close())
            self._open = None


class OpenFile:
    """A file that is being written.

    Args:
        output: takes its bytes.
        writer: makes them.
    """

    def __init__(self, output: Output, writer: BulkWriter) -> None:
        self._output = output
        self._writer = writer
        self._rows = 0
        self.bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append ``batch``."""
        self._writer.write(batch)
        self._rows += batch.num_rows
        self.bytes += batch.nbytes

    def close(self) -> StagedFile:
        """End it; durable after the store's ``sync``."""
        self._writer.flush()
        self._writer.finish()
        return StagedFile(staged=self._output.close(), rows=self._rows, bytes=self.bytes)
