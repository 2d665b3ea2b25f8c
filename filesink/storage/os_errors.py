"""What the system's errors mean to a user: a stable code, and what to do about it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from filesink.errors import StorageError

_ADVICE = {
    "PERMISSION": "give the user that runs Spark permission to it",
    "READ_ONLY": "the file system is mounted read-only; remount it and start again, nothing is lost",
    "NO_SPACE": "the file system is full; free some space and start again, nothing is lost",
    "QUOTA": "the quota is used up; free some space and start again, nothing is lost",
    "TOO_MANY_FILES": "raise the limit of open files ('ulimit -n'); a task of ours keeps 400 at most",
    "NAME_TOO_LONG": "a name of this file system has at most 255 bytes; use shorter bucket ids or prefixes",
    "STALE": "the network file system has lost this file; check its server and start again",
    "TIMEOUT": "the network file system did not answer; check its server and start again",
    "NOT_FOUND": "the directory vanished while it was used; check that nothing else cleans up below the base",
    "WRONG_KIND": "something of another kind stands under this name; move it away",
    "CROSS_DEVICE": "hidden and final name must be on one file system; check for mounts below the base path",
    "IO": "the disk or its driver reported an error; check the system's log before starting again",
}
_CODES = {
    errno.EACCES: "PERMISSION",
    errno.EPERM: "PERMISSION",
    errno.EROFS: "READ_ONLY",
    errno.ENOSPC: "NO_SPACE",
    errno.EDQUOT: "QUOTA",
    errno.EMFILE: "TOO_MANY_FILES",
    errno.ENFILE: "TOO_MANY_FILES",
    errno.ENAMETOOLONG: "NAME_TOO_LONG",
    errno.ESTALE: "STALE",
    errno.ETIMEDOUT: "TIMEOUT",
    errno.ENOENT: "NOT_FOUND",
    errno.ENOTDIR: "WRONG_KIND",
    errno.EISDIR: "WRONG_KIND",
    errno.EXDEV: "CROSS_DEVICE",
}


def storage_error(error: OSError, operation: str, where: str) -> StorageError:
    """The error to raise for ``error``, met while doing ``operation`` to the file ``where``."""
    code = _CODES.get(error.errno or 0, "IO")
    reason = error.strerror or type(error).__name__
    return StorageError(f"cannot {operation} '{where}': {reason}; {_ADVICE[code]}", code=code)


@contextmanager
def explaining(
    operation: str, where: str, *, error_of: Callable[[OSError, str, str], StorageError] = storage_error
) -> Iterator[None]:
    """Turn the system's errors inside the block into ``StorageError``; ours pass as they are.

    ``error_of``: as ``storage_error``, for a system with words of its own.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise error_of(error, operation, where) from error
