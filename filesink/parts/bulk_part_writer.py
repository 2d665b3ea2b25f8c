"""A part of a bulk format: its size is known only once it is written, so it is estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filesink.parts.part_writer import PartWriter, SizeHint, as_ours
from filesink.storage.api import Output
from formats import columns
from formats.api import BulkWriterFactory

if TYPE_CHECKING:
    import pyarrow as pa

    from formats.api import Buffer

_SURE = 0.9  # of what is left before the limit, while a size is only estimated
_SMALL_FLUSH = 256 << 10  # bytes; below that a flush is not worth splitting
_MOST_BEYOND = 1 << 20  # bytes of Arrow data that may wait however little room is left
_FIRST_FLUSH = 4 << 20  # bytes of Arrow data, to learn how well records compress


class _UntilClosed:
    """An output that swallows the footer of a writer collected after its file was discarded."""

    def __init__(self, output: Output) -> None:
        self._output, self.tell, self.flush = output, output.tell, output.flush

    @property
    def closed(self) -> bool:
        return self._output.closed

    def write(self, data: Buffer, /) -> int:
        return memoryview(data).nbytes if self._output.closed else self._output.write(data)


class BulkPartWriter(PartWriter):
    """Hands slices to a bulk writer and estimates what it still keeps to itself.

    Args:
        output: the file.
        factory: makes the bulk writer.
        schema: of the records.
        hint: shared by the parts of a task.
    """

    def __init__(
        self, output: Output, factory: BulkWriterFactory, *, schema: pa.Schema, hint: SizeHint
    ) -> None:
        super().__init__(output)
        self._factory = factory
        self._hint = hint
        self._accepted = 0  # Arrow bytes since the output last grew
        self._written = 0  # output bytes when it last grew
        self._writer = as_ours(lambda: factory.create(_UntilClosed(output), schema), factory)

    @property
    def size(self) -> int:
        """See ``PartWriter.size``."""
        return self._output.tell() + self._estimate()

    @property
    def buffered(self) -> int:
        """See ``PartWriter.buffered``."""
        return self._writer.buffered_bytes

    def _estimate(self) -> int:
        ratio = self._hint.per_arrow_byte
        return int(self._writer.buffered_bytes * (1.0 if ratio is None else ratio))

    def _write(self, batch: pa.RecordBatch, room: int | None) -> int:
        if room is None:
            self._accept(batch)
            return batch.num_rows
        return self._write_until(batch, room + self._estimate())

    def _write_until(self, batch: pa.RecordBatch, room: int) -> int:
        """Accept records, and flush once what waits may come near ``room``, the bytes that are left.

        Each flush leaves a tenth of the room to the next one. So an estimate that is off by a tenth cannot
        take the part beyond its limit by more than one small flush. If records stop compressing well, the
        part exceeds its limit by a mebibyte or an eighth of its size at most.
        """
        ratio = self._hint.per_arrow_byte
        target = max(int(room * _SURE), _SMALL_FLUSH)
        if ratio is None:
            ratio, target = 1.0, min(target, _FIRST_FLUSH)
        worst = max(room, (self._output.tell() + room) // 8, _MOST_BEYOND)
        target = min(target, int(worst * ratio))
        arrow_bytes = columns.size(batch)
        per_record = max(arrow_bytes * ratio / batch.num_rows, 1e-3)
        missing = target - self._writer.buffered_bytes * ratio
        rows = max(1, min(batch.num_rows, int(missing / per_record) + 1))
        self._accepted += arrow_bytes * rows // batch.num_rows
        self._accept(batch.slice(0, rows))
        if rows * per_record >= missing:
            self.flush()
        return rows

    def _accept(self, batch: pa.RecordBatch) -> None:
        as_ours(lambda: self._writer.write(batch), self._factory)
        self._learn()

    def flush(self) -> None:
        """See ``PartWriter.flush``."""
        as_ours(self._writer.flush, self._factory)
        self._learn()

    def _learn(self) -> None:
        """Measure the ratio of output bytes to Arrow bytes anew whenever the output has grown.

        Only parts with a limit count what they accept; without a limit nobody asks for the ratio.
        """
        grown = self._output.tell() - self._written
        flushed = self._accepted - self._writer.buffered_bytes
        if grown > 0 and flushed > 0:
            self._hint.per_arrow_byte = grown / flushed
            self._written += grown
            self._accepted -= flushed

    def _finish(self) -> None:
        as_ours(self._writer.finish, self._factory)
