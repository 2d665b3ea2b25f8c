"""The writer of one file: where row and bulk formats differ, and the only place where they do.

Both take slices of record batches and say how many records they took, so that the rolling policy is
asked neither too often nor too late. A row format ends a part at the very record that crosses the
limit; a bulk format within one small flush, because its size is known only once it is written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from filesink.errors import EncoderError, FilesinkError, SchemaError
from filesink.parts.part_file import Event, State, advance
from filesink.parts.rolling import Allowance
from filesink.storage.api import Output
from filesink.storage.staged import Staged
from formats.errors import FormatError, told

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


@dataclass(slots=True)
class SizeHint:
    """What earlier parts of a task have shown: encoded bytes per record, or per Arrow byte."""

    per_record: float | None = None
    per_arrow_byte: float | None = None


class UnwritableRecord(Exception):  # noqa: N818 - not an error yet: the bucket decides that
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
        """Bytes of the file so far, including what is still buffered; an estimate if need be."""

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
            UnwritableRecord: the first cannot be written; only row formats, which write each by itself.
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
        """Hand everything buffered to the output, to free memory."""

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


def as_ours(call: Callable[[], T], format_: object) -> T:
    """Run a format's code; turn what it raises into an error that says whose code it was."""
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
