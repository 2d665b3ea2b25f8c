"""Asks the kernel to begin with the disk while the rest of a file is still being made.

Left alone, it keeps what was written for up to 30 seconds: the disk idles while records are
rendered, and ``fsync`` waits for all of them at the end.

Rules:

* Nothing is durable by it; ``fsync`` follows all the same.
* It must not take away what ``fsync`` has to tell. The kernel calls a page clean that it could not
  write and reports that once per open file (fsync(2), since Linux 4.13): to whoever waits first, be
  it ``fdatasync`` in a thread or ``sync_file_range`` with a flag that waits. ``SYNC_FILE_RANGE_WRITE``
  alone only submits pages (sync_file_range(2)), as the kernel may do by itself at any time.
* What it says about the bytes while it submits them (no room, no disk) is perhaps told nobody
  else, so it is an error of the write. ``posix_fadvise(POSIX_FADV_DONTNEED)`` submits too, but keeps
  that to itself, and drops pages that readers of the file will want.
* Any other error is a system that cannot, or must not, be asked: then nothing happens.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from typing import Final

#: Bytes of a file that are submitted together.
STEP: Final = 16 << 20

_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE of <fcntl.h>; the standard library does not have it
_ABOUT_THE_BYTES: Final = {errno.EIO, errno.ENOSPC, errno.EDQUOT}


def begin(handle: int, written: int) -> None:
    """Submit what lies before the position of ``handle``, in whole steps, each of them once.

    Called after every write, with its length in bytes. Raises the ``OSError`` of a system that
    cannot take the bytes.
    """
    end = os.lseek(handle, 0, os.SEEK_CUR)
    start, stop = ((position // STEP) * STEP for position in (end - written, end))
    if start == stop or _submit is None:
        return
    try:
        _submit(handle, start, stop - start, _WRITE)
    except OSError as error:
        if error.errno in _ABOUT_THE_BYTES:
            raise


def _find() -> Callable[[int, int, int, int], None] | None:
    """``sync_file_range`` of the C library; ``None`` where there is none, as on macOS."""
    try:
        function = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

    def submit(handle: int, start: int, size: int, flags: int) -> None:
        if function(handle, start, size, flags):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return submit


_submit = _find()
