"""How a task of Python's learns that its job was cancelled: by the stream in which it sends its results.

Measured on Spark 4.3. A cancelled task is only marked. Its JVM thread, which waits for bytes of the worker,
looks at the mark after each batch of results; a worker that sends none is killed 2 to 4 s later, in the
middle of whatever it does. An empty batch is a question: the thread looks, ends, and closes its end of the
socket, which can be seen from here. A writer that waits asks several times a second.

PySpark has no name for any of this. The stream is that of its own ``dump_stream``, which has called us; where
it is not found there is no pulse, and a cancelled writer is killed as before.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Mapping
from io import BufferedWriter
from types import FrameType

import pyarrow as pa

from filesink.errors import TaskCancelledError

#: What a socket shows whose other end is closed; Linux shows it though bytes are left to be read.
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


def pulse_of_this_task() -> Callable[[], None]:
    """The pulse of the task whose results this thread sends; one that does nothing in any other thread.

    Call it in the generator of the results, when it has given the first of them.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the call stack has no other name
    while frame is not None:
        if frame.f_code.co_name == "dump_stream" and (pulse := _of(dict(frame.f_locals))):
            return pulse
        frame = frame.f_back
    return lambda: None


def _of(names: Mapping[str, object]) -> Pulse | None:
    """The pulse of a ``dump_stream`` with these local variables."""
    writer, batch, stream = (names.get(name) for name in ("writer", "batch", "stream"))
    if not (isinstance(writer, pa.RecordBatchStreamWriter) and isinstance(batch, pa.RecordBatch)):
        return None
    return (
        Pulse(writer, empty=batch.slice(0, 0), stream=stream) if isinstance(stream, BufferedWriter) else None
    )


class Pulse:
    """Asks the JVM whether it still waits for this task.

    Args:
        writer: of the results, into ``stream``.
        empty: a batch without any.
        stream: of the socket.
    """

    def __init__(
        self, writer: pa.RecordBatchStreamWriter, empty: pa.RecordBatch, stream: BufferedWriter
    ) -> None:
        self._writer = writer
        self._empty = empty
        self._stream = stream
        self._socket = select.poll()
        self._socket.register(stream.fileno(), _GONE)

    def __call__(self) -> None:
        """Send an empty batch.

        Raises:
            TaskCancelledError: ``CANCELLED``; there is nobody who would take it.
        """
        try:
            if not self._socket.poll(0):
                self._writer.write_batch(self._empty)
                self._stream.flush()
                return
        except OSError as error:
            raise _cancelled() from error
        raise _cancelled()


def _cancelled() -> TaskCancelledError:
    return TaskCancelledError(
        "Spark waits for this task no more: its job was cancelled, or another attempt was faster. What it "
        "has written is discarded",
        code="CANCELLED",
    )
