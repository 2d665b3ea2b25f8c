"""What the answers of Google Cloud Storage, and the refusals of its library, mean: our codes and advice.

A message holds our words and one word of the service's own; its sentences may name hosts, users and secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from google.auth import exceptions

from filesink.errors import CommitConflictError, StorageError
from filesink.storage.objects.api import BAD_PARTS, EXISTS, RACE, UNAVAILABLE

_ADVICE = {
    EXISTS: "something stands there already, or changed meanwhile",
    RACE: "another request is changing the same object; it may be tried again",
    BAD_PARTS: "a part of the upload is missing or is another one",
    UNAVAILABLE: "the store did not answer as it should; check it and start again, nothing is lost",
    "PERMISSION": "give these credentials permission to list, read, write and delete below the base path: "
    "roles/storage.objectUser",
    "NO_CREDENTIALS": "none were found; pass storage option 'token', or set "
    "GOOGLE_APPLICATION_CREDENTIALS on every host",
    "WRONG_CREDENTIALS": "the service does not know these, or no longer; pass the right ones",
    "EXPIRED_CREDENTIALS": "the access token has expired, and nothing is there to renew it; pass a key file, "
    "or credentials that renew themselves",
    "CLOCK": "set the clock of this host; the service takes no request that is minutes off",
    "NO_BUCKET": "make the bucket first, or check its name",
    "HELD": "a hold or the bucket's retention keeps the object for now, so nothing was done",
    "KMS_KEY": "the bucket's key in KMS cannot be used; enable it, or permit the service to",
    "REFUSED": "the request was refused; see the store's own word",
}
_BY_STATUS = {
    401: "WRONG_CREDENTIALS",
    403: "PERMISSION",
    408: UNAVAILABLE,
    409: RACE,
    412: EXISTS,
    429: UNAVAILABLE,
}
_BY_REASON = {
    "rateLimitExceeded": UNAVAILABLE,
    "userRateLimitExceeded": UNAVAILABLE,
    "retentionPolicyNotMet": "HELD",
    "objectUnderActiveHold": "HELD",
    "required": "NO_CREDENTIALS",  # of a caller without a name, who is not let in
}
_NO_BUCKET = re.compile(r"bucket does not exist", re.IGNORECASE)
_KMS = re.compile(r"\b(?:Cloud KMS|cryptoKey|KMS key)\b", re.IGNORECASE)
_ODD_CLOCK = re.compile(r"reasonable timeframe|\biat\b|short-lived token", re.IGNORECASE)
_EXPIRED = re.compile(r"expired or revoked|necessary fields need to refresh|invalid_rapt", re.IGNORECASE)
#: After one of these other credentials may be found, by the next session.
REFUSALS = {"NO_CREDENTIALS", "WRONG_CREDENTIALS", "EXPIRED_CREDENTIALS", "PERMISSION"}


def answered(status: int, body: bytes, *, operation: str, where: str) -> Exception:
    """The error for an answer that is no success; ``FileNotFoundError`` for no such object.

    A 404 that is not in the service's form may be a proxy's, which knows nothing of objects.
    """
    told = _told(body)
    reason, text = _reason(told), str(told.get("message", ""))
    if status == 404 and told:
        if _NO_BUCKET.search(text):
            return failed("NO_BUCKET", operation, where, reason or "HTTP 404")
        return FileNotFoundError(where)
    code = _BY_REASON.get(reason) or _BY_STATUS.get(status)
    if code == "PERMISSION" and _KMS.search(text):
        code = "KMS_KEY"
    if code is None:  # below 400: what was asked for was not answered; a page is a proxy's
        code = "REFUSED" if told and 400 <= status < 500 else UNAVAILABLE
    return failed(code, operation, where, f"HTTP {status} {reason}".strip())


def is_passing(status: int, body: bytes) -> bool:
    """Whether the same request may be answered otherwise a moment later."""
    return (
        status in {408, 429}
        or status >= 500
        or (status == 403 and _BY_REASON.get(_reason(_told(body))) == UNAVAILABLE)
    )


def did_nothing(status: int) -> bool:
    """Whether an answer that ``is_passing`` says that the request was not carried out."""
    return status in {403, 429}


def unauthenticated(error: exceptions.GoogleAuthError, *, operation: str, where: str) -> StorageError:
    """The error for what kept the library from asking at all."""
    text = str(error)
    if isinstance(error, exceptions.TransportError | exceptions.TimeoutError) or error.retryable:
        code = UNAVAILABLE
    elif isinstance(error, exceptions.DefaultCredentialsError | exceptions.InvalidOperation):
        code = "NO_CREDENTIALS"
    elif _ODD_CLOCK.search(text):
        code = "CLOCK"
    elif _EXPIRED.search(text):
        code = "EXPIRED_CREDENTIALS"
    else:
        code = "WRONG_CREDENTIALS"
    return failed(code, operation, where, type(error).__name__)


def failed(code: str, operation: str, where: str, reason: str) -> StorageError:
    """The error with this code; ``reason`` in a word or two."""
    kind = CommitConflictError if code == EXISTS else StorageError
    return kind(f"cannot {operation} '{where}': {reason[:60]}; {_ADVICE[code]}", code=code)


def _told(body: bytes) -> Mapping[str, Any]:
    """What the service says of an error; empty if it is not the service that speaks."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, dict) else {}


def _reason(told: Mapping[str, Any]) -> str:
    errors = told.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else {}
    reason = first.get("reason") if isinstance(first, dict) else ""
    return reason if isinstance(reason, str) and re.fullmatch(r"[A-Za-z ]{1,40}", reason) else ""
