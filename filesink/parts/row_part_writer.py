"""A part of a row format: it ends at the very record that crosses the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filesink.buckets.projection import RECORD_COLUMN
from filesink.errors import EncoderError
from filesink.parts.part_writer import PartWriter, SizeHint, UnwritableRecord, as_ours
from filesink.storage.api import Output
from formats.api import BaseEncoder
from formats.sizes import MAX_SIZE

if TYPE_CHECKING:
    import pyarrow as pa

    from formats.api import Buffer

_ROW_BUFFER = 256 << 10  # bytes; fewer and larger writes, and no descriptor for tiny parts


class RowPartWriter(PartWriter):
    """Appends what an encoder makes of each slice.

    Args:
        output: the file.
        encoder: of this part, as ``start_part`` or ``resume_part`` has made it.
        header: bytes that begin a new part; ``b""`` for a part that goes on.
        hint: shared by the parts of a task.
    """

    def __init__(self, output: Output, encoder: BaseEncoder, *, header: bytes, hint: SizeHint) -> None:
        super().__init__(output)
        self.encoder = encoder
        self._hint = hint
        self._waiting: list[Buffer] = [header] if header else []
        self._buffered = self.header_size = len(header)
        self._most: int | None = None  # records to encode at once, after one that could not be

    @property
    def size(self) -> int:
        """See ``PartWriter.size``."""
        return self._output.tell() + self._buffered

    @property
    def buffered(self) -> int:
        """See ``PartWriter.buffered``."""
        return self._buffered

    def _write(self, batch: pa.RecordBatch, room: int | None) -> int:
        """Append records up to and with the one that takes the part beyond ``room`` more bytes."""
        if room is None:
            room = MAX_SIZE
        done = 0
        step = self._likely(room, batch.num_rows)
        while done < batch.num_rows:
            try:
                data, taken = self._fitting(batch.slice(done, step), room)
            except UnwritableRecord:
                if done:
                    break
                raise
            self._append(data)
            done += taken
            room -= len(data)
            if room < 0:
                break
            step = self._likely(room, batch.num_rows)
        return done

    def _fitting(self, batch: pa.RecordBatch, room: int) -> tuple[Buffer, int]:
        """Encode as many records, from the first, as fit into ``room``, at least one; and their number."""
        step = batch.num_rows
        while True:
            try:
                data = self._encode(batch.slice(0, step))
            except EncoderError as error:
                if step == 1:
                    raise UnwritableRecord(error) from error
                step = self._most = step // 2
                continue
            self._hint.per_record = len(data) / step
            if len(data) <= room or step == 1:
                return data, step
            step //= 2  # the record that crosses is among these; look for it

    def _likely(self, room: int, most: int) -> int:
        per_record = self._hint.per_record
        if self._most is not None:  # twice as many with each success
            most, self._most = min(most, self._most), self._most * 2
        return most if not per_record else max(1, min(most, int(room / per_record) + 1))

    def _encode(self, batch: pa.RecordBatch) -> Buffer:
        if RECORD_COLUMN in batch.schema.names:
            return as_ours(lambda: self.encoder.encode_rendered(batch.column(0)), self.encoder)
        return as_ours(lambda: self.encoder.encode(batch), self.encoder)

    def _append(self, data: Buffer) -> None:
        self._waiting.append(data)
        self._buffered += len(data)
        if self._buffered >= _ROW_BUFFER:
            self.flush()

    def flush(self) -> None:
        """See ``PartWriter.flush``."""
        waiting, self._waiting, self._buffered = self._waiting, [], 0
        if len(waiting) == 1:
            self._output.write(waiting[0])
        elif waiting:
            self._output.write(b"".join(memoryview(piece) for piece in waiting))

    def _finish(self) -> None:
        self.flush()
