"""What the answers of Azure, and the refusals of its client, mean: our codes, and what to do about them.

A message holds our words and the store's code; the client's text may name hosts, users and secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from filesink.errors import CommitConflictError, ConfigError, StorageError
from filesink.storage.objects.api import BAD_PARTS, EXISTS, UNAVAILABLE

_CODES = {
    "BlobAlreadyExists": EXISTS,
    "ConditionNotMet": EXISTS,
    "InvalidBlobOrBlock": BAD_PARTS,
    "InvalidBlockId": BAD_PARTS,
    "InvalidBlockList": BAD_PARTS,
    "ContainerNotFound": "NO_BUCKET",
    "ContainerBeingDeleted": "NO_BUCKET",
}
_BY_STATUS = {
    401: "PERMISSION",
    403: "PERMISSION",
    404: UNAVAILABLE,
    408: UNAVAILABLE,
    412: EXISTS,
    429: UNAVAILABLE,
}
_ADVICE = {
    EXISTS: "something stands there already, or changed meanwhile",
    BAD_PARTS: "a block of the upload is missing",
    UNAVAILABLE: "the store did not answer as it should; check it and start again, nothing is lost",
    "LEASED": "somebody holds a lease on the blob, so nothing was done; break the lease and start again",
    "PERMISSION": "give these credentials permission to list, read, write and delete below the base path",
    "NO_BUCKET": "make the container first, or check its name and account",
    "REFUSED": "the request was refused; see the store's own code",
}


@contextmanager
def checking(advice: str) -> Iterator[None]:
    """Turn what the client raises while it is made into ``ConfigError[BAD_VALUE]`` with our own words."""
    try:
        yield
    except (TypeError, ValueError):  # its text may repeat the value, a secret
        raise ConfigError(advice, code="BAD_VALUE") from None


def answered(name: str, status: int, *, operation: str, where: str) -> Exception:
    """The error for an answer with this code (``""`` for none) and status; 0 if it has none."""
    if name.startswith("Lease"):  # also a 412, but the blob is still the one that was meant
        return failed("LEASED", operation, where, name)
    if status == 404 and name and name not in _CODES:  # Azure names its 404s in a header, a proxy does not
        return FileNotFoundError(where)
    # Below 400: what was asked for was not answered.
    other = "REFUSED" if 400 <= status < 500 else UNAVAILABLE
    code = _CODES.get(name) or _BY_STATUS.get(status) or other
    return failed(code, operation, where, name or f"HTTP {status}")


def failed(code: str, operation: str, where: str, reason: str) -> StorageError:
    """The error with this code; ``reason`` in a word or two."""
    kind = CommitConflictError if code == EXISTS else StorageError
    return kind(f"cannot {operation} '{where}': {reason[:60]}; {_ADVICE[code]}", code=code)
