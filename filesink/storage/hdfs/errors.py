"""What the errors of HDFS mean to a user, where the words for a local disk would mislead."""

from __future__ import annotations

import errno
from contextlib import AbstractContextManager

from filesink.errors import StorageError
from filesink.storage import os_errors


def storage_error(error: OSError, operation: str, where: str) -> StorageError:
    """The error to raise for ``error`` of a ``Namenode``, met while doing ``operation`` to ``where``."""
    what = f"cannot {operation} '{where}': {error.strerror or type(error).__name__}"
    match error.errno:
        case errno.EROFS:
            return StorageError(
                f"{what}; the namenode is in safe mode: wait until it has left it ('hdfs dfsadmin -safemode "
                "get' tells) and start again, nothing is lost",
                code="SAFE_MODE",
            )
        case errno.EAGAIN:
            return StorageError(
                f"{what}; this namenode is in standby or not ready yet: wait and start again, or name the "
                "active one in the path, or with hdfs:// the nameservice; nothing is lost",
                code="STANDBY",
            )
        case errno.EIO:
            return StorageError(
                f"{what}; a namenode or datanode failed or was not reached: check the address and the "
                "cluster's logs, and start again",
                code="IO",
            )
        case _:
            return os_errors.storage_error(error, operation, where)


def explaining(operation: str, where: str) -> AbstractContextManager[None]:
    """Turn errors of a ``Namenode`` inside the block into ``StorageError``; ours pass as they are."""
    return os_errors.explaining(operation, where, error_of=storage_error)
