"""Copying from one open file to another, by the cheapest means that the two file systems have."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from filesink.storage.local import write_back

_COPY_BYTES = 64 << 20  # at a time, so that the disk begins before the end
_BUFFER_BYTES = 1 << 20
#: How file systems say that they cannot copy this way; the next way is tried.
_CANNOT_COPY = {
    errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSOCK, errno.EPERM, errno.ETXTBSY,
}  # fmt: skip


def copy(reader: int, writer: int, *, size: int) -> int:
    """Append what is left of ``reader``, some ``size`` bytes, to ``writer``; returns bytes copied.

    Raises plain ``OSError``.
    """
    copied = 0
    for step in _COPY_STEPS:
        copied += _drain(step, reader, writer)
        if copied >= size:
            break
    return copied


def _drain(step: Callable[[int, int], int], reader: int, writer: int) -> int:
    """Repeat one way of copying to the end of the file, or until it turns out not to work here."""
    copied = 0
    try:
        while moved := step(reader, writer):
            copied += moved
            write_back.begin(writer, moved)
    except OSError as error:
        if error.errno not in _CANNOT_COPY:
            raise
    return copied


def _copy_file_range(reader: int, writer: int) -> int:
    return os.copy_file_range(reader, writer, _COPY_BYTES)


def _sendfile(reader: int, writer: int) -> int:
    return os.sendfile(writer, reader, None, _COPY_BYTES)


def _read_write(reader: int, writer: int) -> int:
    data = memoryview(os.read(reader, _BUFFER_BYTES))
    written = 0
    while written < len(data):
        written += os.write(writer, data[written:])
    return written


# Each goes on where the one before stopped: all three move the positions of both descriptors.
_COPY_STEPS: tuple[Callable[[int, int], int], ...] = (
    (_copy_file_range, _sendfile, _read_write) if hasattr(os, "copy_file_range") else (_read_write,)
)
