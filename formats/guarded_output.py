"""Our outputs in the hands of libraries that end the files of dropped writers, or reword what they catch.

A writer that failed, and thousands of others that are dropped because of it, would each try to write a
footer to the full disk, and print the trace of it. So what a library writes counts only while somebody
asks for it, and what the output raises comes out as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from formats.api import BinaryOutput

# Bytes. Arrow writes a header and a page at a time, dozens a row group; and hundreds of files may be open.
_WRITE_SIZE: Final = 16 << 10


class GuardedOutput:
    """A file for a library, which cannot close it: its owner does, and knows whether it is whole.

    Args:
        output: takes what is written within ``asked``; everything else is swallowed.
    """

    closed = False

    def __init__(self, output: BinaryOutput) -> None:
        self._output = output
        self._is_asked = False
        self._has_failed = False
        self._error: BaseException | None = None

    def write(self, data: Any) -> int:
        """See ``BinaryOutput.write``."""
        if not self._is_asked or self._has_failed:
            return memoryview(data).nbytes
        try:
            return self._output.write(data)
        except BaseException as error:
            self._has_failed, self._error = True, error
            raise

    def tell(self) -> int:
        """See ``BinaryOutput.tell``."""
        return self._output.tell()

    def flush(self) -> None:
        """See ``BinaryOutput.flush``."""

    def close(self) -> None:
        """See the class."""

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Let the library write. What the output raises then is raised as it was; it is not asked again."""
        self._is_asked = True
        try:
            yield
        except Exception:
            if self._error is not None:
                raise self._error  # noqa: B904 - the library's words for it say less
            raise
        finally:
            # Its frames hold the writer, whose library holds this: a circle that no collector sees.
            self._is_asked, self._error = False, None


class ArrowOutput:
    """A guarded output for a writer of Arrow's.

    Args:
        output: see ``GuardedOutput``.
    """

    def __init__(self, output: BinaryOutput) -> None:
        self._file = GuardedOutput(output)
        self._stream: Any = None  # has a buffer, and thousands of writers may wait for their first records

    @contextmanager
    def asked(self) -> Iterator[Any]:
        """A buffered ``pyarrow.NativeFile``, always the same, while it writes into the output.

        ``flush`` hands on what is buffered; ``detach``, when all is written, does so for the last time.
        """
        if self._stream is None:
            file: Any = self._file
            self._stream = pa.BufferedOutputStream(pa.PythonFile(file, mode="w"), _WRITE_SIZE)
        with self._file.asked():
            yield self._stream
