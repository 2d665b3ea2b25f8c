"""The bytes of one file: where row and bulk formats differ, and the only place where they do.

Both take slices of record batches and say how many records they took, so that the rolling policy is
asked neither too often nor too late. A row format ends a part at the very record that crosses the
limit; a bulk format within one small flush, because its size is known only once it is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from filesink.buckets.projection import RECORD_COLUMN
from filesink.errors import EncoderError, FilesinkError, SchemaError
from filesink.parts.part_file import Event, State, advance
from filesink.parts.rolling import Allowance
from filesink.storage.api import Output
from filesink.storage.staged import Staged
from formats import columns
from formats.api import BaseEncoder, BulkWriterFactory
from formats.errors import FormatError, told
from formats.sizes import MAX_SIZE

if TYPE_CHECKING:
    import pyarrow as pa

    from formats.api import Buffer

T = TypeVar("T")

_ROW_BUFFER = 256 << 10  # bytes; fewer and larger writes, and no descriptor for tiny parts
_SURE = 0.9  # of what is left before the limit, while a size is only estimated
_SMALL_FLUSH = 256 << 10  # bytes; below that a flush is not worth splitting
_MOST_BEYOND = 1 << 20  # bytes of Arrow data that may wait however little room is left
_FIRST_FLUSH = 4 << 20  # bytes of Arrow data, to learn how well records compress


@dataclass(slots=True)
class SizeHint:
    """What earlier parts of a task have shown: encoded bytes per record, or per Arrow byte."""

    per_record: float | None = None
    per_arrow_byte: float | None = None


class UnwritableRecord(Exception):  # noqa: N818 - not an error yet; whoever knows more decides
    """The first record that ``PartWriter.write`` was given cannot be written; nothing was taken."""

    def __init__(self, error: EncoderError) -> None:
        super().__init__(error.message)
        self.error = error


class PartWriter(ABC):
    """Writes one file. Used by one thread; ends with ``close``, ``hold`` or ``discard``, or is dropped."""

    #: Bytes of the format's header at the beginning of the file.
    header_size = 0

    def __init__(self, output: Output) -> None:
        self._output = output
        self.rows = 0
        self.state = State.IN_PROGRESS

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of the file so far, what is still buffered included, by estimate if need be."""

    @property
    @abstractmethod
    def buffered(self) -> int:
        """Bytes of memory held for records that are not yet in the output."""

    @property
    def is_open(self) -> bool:
        """Whether the output holds a file descriptor."""
        return self._output.tell() > 0

    def write(self, batch: pa.RecordBatch, allowance: Allowance) -> int:
        """Take as many records of ``batch``, from its first, as ``allowance`` permits; at least one.

        Raises:
            UnwritableRecord: the first cannot be written; row formats only, where each stands for itself.
        """
        self.state = advance(self.state, Event.WRITE)
        limit = batch.num_rows if allowance.rows is None else min(batch.num_rows, allowance.rows)
        taken = self._write(batch.slice(0, limit), allowance.bytes)
        self.rows += taken
        return taken

    @abstractmethod
    def _write(self, batch: pa.RecordBatch, room: int | None) -> int: ...

    @abstractmethod
    def flush(self) -> None:
        """Hand everything buffered to the output, to free its memory."""

    @abstractmethod
    def _finish(self) -> None: ...

    def close(self) -> Staged:
        """End the file as a whole part."""
        return self._end(Event.CLOSE)

    def hold(self) -> Staged:
        """End the file as a segment of a part that goes on."""
        return self._end(Event.HOLD)

    def _end(self, event: Event) -> Staged:
        self.state = advance(self.state, event)
        self._finish()
        return self._output.close()

    def discard(self) -> None:
        """Give the file up; no record was written."""
        self.state = advance(self.state, Event.DISCARD)
        self._output.discard()


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
            step = min(step, batch.num_rows - done)
            try:
                data = self._encode(batch.slice(done, step))
            except EncoderError as error:
                if step > 1:
                    step = self._most = step // 2
                    continue
                if done:
                    break
                raise UnwritableRecord(error) from error
            length = len(data)
            self._hint.per_record = length / step
            if length > room and step > 1:
                step //= 2  # the record that crosses is among these; look for it
                continue
            self._append(data)
            done += step
            room -= length
            if room < 0:
                break
            step = self._likely(room, batch.num_rows)
        return done

    def _likely(self, room: int, most: int) -> int:
        per_record = self._hint.per_record
        if self._most is not None:  # twice as many with each success
            most, self._most = min(most, self._most), self._most * 2
        return most if not per_record else max(1, min(most, int(room / per_record) + 1))

    def _encode(self, batch: pa.RecordBatch) -> Buffer:
        if RECORD_COLUMN in batch.schema.names:
            return _as_ours(lambda: self.encoder.encode_rendered(batch.column(0)), self.encoder)
        return _as_ours(lambda: self.encoder.encode(batch), self.encoder)

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
        self._writer = _as_ours(lambda: factory.create(_UntilClosed(output), schema), factory)

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

        Each flush leaves a tenth of the room to the next, so that an estimate that is off by a tenth
        cannot take the part beyond its limit by more than one small flush. And should records stop
        to compress, what waits takes it beyond by a mebibyte or an eighth of the part at most.
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
        _as_ours(lambda: self._writer.write(batch), self._factory)
        self._learn()

    def flush(self) -> None:
        """See ``PartWriter.flush``."""
        _as_ours(self._writer.flush, self._factory)
        self._learn()

    def _learn(self) -> None:
        """Whenever the output has grown, the ratio of its bytes to Arrow's is known anew.

        Only parts with a limit count what they accept; without one nobody asks for the ratio.
        """
        grown = self._output.tell() - self._written
        flushed = self._accepted - self._writer.buffered_bytes
        if grown > 0 and flushed > 0:
            self._hint.per_arrow_byte = grown / flushed
            self._written += grown
            self._accepted -= flushed

    def _finish(self) -> None:
        _as_ours(self._writer.finish, self._factory)


def _as_ours(call: Callable[[], T], format_: object) -> T:
    """Run a format's code; what it raises becomes an error that says whose code it was."""
    try:
        return call()
    except (FilesinkError, OSError):
        raise
    except FormatError as error:
        kind = SchemaError if error.kind == "schema" else EncoderError
        raise kind(error.message, code="FORMAT") from error
    except Exception as error:  # a user's code; the task fails before anything is decided
        raise EncoderError(
            f"{type(format_).__name__} failed with {told(error, by=format_)}; nothing of this batch was "
            "committed",
            code="ENCODER",
        ) from error
