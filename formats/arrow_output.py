"""Our outputs as the streams that Arrow's writers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from formats.api import BinaryOutput

# Bytes. Arrow writes a header and a page at a time, dozens a row group; and hundreds of files may be open.
_WRITE_SIZE: Final = 16 << 10


class _Unclosed:
    """An output that Arrow cannot close: its owner does, and knows whether the file is whole."""

    closed = False

    def __init__(self, output: BinaryOutput) -> None:
        self._output = output

    def write(self, data: Any) -> int:
        # A stream that is dropped writes what it has left, into a file that was discarded.
        return len(data) if self._output.closed else self._output.write(data)

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """See the class."""


def arrow_stream(output: BinaryOutput) -> Any:
    """A buffered ``pyarrow.NativeFile`` that writes into ``output`` and never closes it.

    ``flush`` hands on what is buffered; ``detach``, when all is written, does so for the last time.
    """
    file: Any = _Unclosed(output)
    return pa.BufferedOutputStream(pa.PythonFile(file, mode="w"), _WRITE_SIZE)
