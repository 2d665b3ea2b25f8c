"""What the answers of S3 mean: our codes, and what to do about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore import exceptions
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from filesink.errors import CommitConflictError, FilesinkError, StorageError
from filesink.storage.objects.api import BAD_PARTS, EXISTS, NO_UPLOAD, RACE, UNAVAILABLE

if TYPE_CHECKING:
    from formats.api import Buffer

_UNDER_WAY = "filesink-under-way"  # in an answer: an earlier request of this call may be carried out yet
_ADVICE = {
    EXISTS: "something stands there already, or changed meanwhile",
    RACE: "another request is writing the same key; it may be tried again",
    NO_UPLOAD: "the multipart upload was completed or aborted",
    BAD_PARTS: "a part of the upload is missing or is another one",
    UNAVAILABLE: "the store did not answer as it should; check it and start again, nothing is lost",
    "ARCHIVED": "the object is in a storage class that cannot be read at once; restore it in the store first",
    "PERMISSION": "give these credentials permission to list, read, write and delete below the base path",
    "NO_CREDENTIALS": "none were found; pass them as storage options, by fs.s3a settings (of an active"
    " session, or as they were at register()), in the environment or by a profile",
    "WRONG_CREDENTIALS": "the store does not know this key, or its secret is another; pass the right ones",
    "EXPIRED_CREDENTIALS": "they were valid; pass newer ones, or a role or profile that renews them",
    "REGION": "name the bucket's region: client_kwargs={'region_name': …}, or AWS_DEFAULT_REGION",
    "KMS_THROTTLED": "the key service takes no more requests for now; use bucket keys, or raise its quota",
    "KMS_KEY": "the bucket's key in KMS cannot be used; enable it, or permit these credentials to",
    "CLOCK": "set the clock of this host; the store takes no request that is minutes off",
    "NO_BUCKET": "make the bucket first, or check its name and region",
    "REFUSED": "the request was refused; see the store's own code",
}
_CODES = {
    "PreconditionFailed": EXISTS,
    "ConditionalRequestConflict": RACE,
    "OperationAborted": RACE,
    "NoSuchUpload": NO_UPLOAD,
    "InvalidPart": BAD_PARTS,
    "InvalidPartOrder": BAD_PARTS,
    "EntityTooSmall": BAD_PARTS,
    "NoSuchBucket": "NO_BUCKET",
    "InvalidObjectState": "ARCHIVED",
    "RequestTimeTooSkewed": "CLOCK",
    "ExpiredToken": "EXPIRED_CREDENTIALS",
    "ExpiredTokenException": "EXPIRED_CREDENTIALS",
    "TokenRefreshRequired": "EXPIRED_CREDENTIALS",
    "InvalidAccessKeyId": "WRONG_CREDENTIALS",
    "InvalidClientTokenId": "WRONG_CREDENTIALS",
    "InvalidSecurity": "WRONG_CREDENTIALS",
    "InvalidToken": "WRONG_CREDENTIALS",
    "SignatureDoesNotMatch": "WRONG_CREDENTIALS",
    "AuthorizationHeaderMalformed": "REGION",
    "IllegalLocationConstraintException": "REGION",
    "PermanentRedirect": "REGION",
    "ThrottlingException": "KMS_THROTTLED",  # of S3 itself it is SlowDown
    "KMS.ThrottlingException": "KMS_THROTTLED",
}
#: After one of these other credentials may be found: by the next client, never by the one that has some.
REFUSALS = {"NO_CREDENTIALS", "WRONG_CREDENTIALS", "EXPIRED_CREDENTIALS", "PERMISSION", "REGION"}
_BY_STATUS = {
    301: "REGION",
    401: "PERMISSION",
    403: "PERMISSION",
    404: UNAVAILABLE,
    408: UNAVAILABLE,
    409: RACE,
    412: EXISTS,
    429: UNAVAILABLE,
}
_NO_CREDENTIALS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.ProfileNotFound,
    exceptions.NoAuthTokenError,
)
_EXPIRED = (exceptions.TokenRetrievalError, exceptions.UnauthorizedSSOTokenError)
_NO_REGION = (exceptions.NoRegionError, exceptions.InvalidRegionError)
#: No answer, or none of S3's: how the client stumbles over a proxy's page, or a body that breaks. What
#: goes wrong below it once the headers are there, such as in TLS, it hands on as it is.
_NO_ANSWER = (
    exceptions.BotoCoreError,
    exceptions.HTTPClientError,
    ResponseParserError,
    HTTPError,
    OSError,
    *(KeyError, ValueError, TypeError, AttributeError),
)


@contextmanager
def explaining(operation: str, where: str, *, endpoint_from: str = "") -> Iterator[None]:
    """Turn the client's errors inside the block into ``StorageError``; ``FileNotFoundError`` for no such key.

    A 404 that does not say so in the words of S3 is not the store's: a proxy knows nothing of keys. A
    message holds our words, the store's code and its address; the client's text may name users.

    Args:
        operation: for the message.
        where: for the message.
        endpoint_from: which setting has the address of the store; ``""`` if it is none of ours.
    """
    try:
        yield
    except (FilesinkError, FileNotFoundError):
        raise
    except exceptions.ClientError as error:
        raise _answered(error, operation, where) from error
    except _NO_CREDENTIALS as error:
        raise _error("NO_CREDENTIALS", operation, where, type(error).__name__) from error
    except _EXPIRED as error:
        raise _error("EXPIRED_CREDENTIALS", operation, where, type(error).__name__) from error
    except _NO_REGION as error:
        raise _error("REGION", operation, where, type(error).__name__) from error
    except RuntimeError as error:
        found = _of_runtime(error, operation, where)
        if found is None:
            raise
        raise found from error
    except exceptions.ParamValidationError as error:
        raise _error("REFUSED", operation, where, "an option of the client is not valid") from error
    except _NO_ANSWER as error:
        raise _unanswered(error, operation, where, endpoint_from) from error


def _of_runtime(error: RuntimeError, operation: str, where: str) -> Exception | None:
    if isinstance(error, RecursionError):  # the client follows a redirection that names no other region
        return _error("REGION", operation, where, "redirected without end")
    if "expired" not in str(error):
        return None
    # So says the client whose new credentials are no better.
    return _error("EXPIRED_CREDENTIALS", operation, where, type(error).__name__)


def was_repeated(error: BaseException | None) -> bool:
    """Whether the client had asked before, and got no answer that counts: that request may be done yet."""
    if not isinstance(error, exceptions.ClientError):
        return False
    return bool(error.response.get("ResponseMetadata", {}).get("RetryAttempts"))


def note_what_is_under_way(client: Any) -> None:
    """Have ``client`` say, in its answers about parts, what ``refuse_unsure`` looks for."""
    for operation in ("UploadPart", "UploadPartCopy"):
        client.meta.events.register(f"response-received.s3.{operation}", _note)


def _note(*, parsed_response: dict[str, Any] | None, context: dict[str, Any], **_: Any) -> None:
    """Called after each request; those of one call share ``context``.

    A store that asks to slow down has done nothing. It asks often, and that must not fail a task.
    """
    answer = parsed_response or {"ResponseMetadata": {"HTTPStatusCode": 500}}
    throttled = str(answer.get("Error", {}).get("Code")).startswith("SlowDown")
    if answer["ResponseMetadata"]["HTTPStatusCode"] >= 500 and not throttled:
        context[_UNDER_WAY] = True
    answer["ResponseMetadata"][_UNDER_WAY] = _UNDER_WAY in context


def refuse_unsure(
    made: Mapping[str, Any], etag: str, operation: str, where: str, *, data: Buffer | None
) -> None:
    """Raise if the part that ``made`` tells of may yet be replaced by one with another etag.

    A request without an answer that is carried out after its repetition puts the same bytes there. Their
    etag is the same if it is their digest; if the store encrypts them with a key of its own for each
    request it is not, and the part under the etag that is recorded would be gone after *decide*.

    Args:
        made: the answer.
        etag: of the part, by the same answer.
        operation: for the message.
        where: for the message.
        data: what was sent; ``None`` for what the store copied, when only its word is known.
    """
    if not made.get("ResponseMetadata", {}).get(_UNDER_WAY):
        return
    if data is None:
        sse = str(made.get("ServerSideEncryption"))
        is_digest = not sse.startswith("aws:kms") and "SSECustomerAlgorithm" not in made
    else:
        is_digest = etag.strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest()
    if not is_digest:
        raise StorageError(
            f"cannot {operation} '{where}': a request for a part got no answer and was repeated. If the "
            "first one takes effect late, the part gets another etag, as with encryption by KMS or a "
            "customer's key. Nothing is lost: Spark repeats a task by itself; start anything else again",
            code=UNAVAILABLE,
        )


def status_of(error: exceptions.ClientError) -> int:
    """The HTTP status of an answer; 0 if it has none."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _answered(error: exceptions.ClientError, operation: str, where: str) -> Exception:
    name = str(error.response.get("Error", {}).get("Code", ""))
    status = status_of(error)
    if name == "NoSuchKey":
        return FileNotFoundError(where)
    code = _CODES.get(name) or ("KMS_KEY" if name.startswith("KMS.") else None) or _BY_STATUS.get(status)
    code = code or (UNAVAILABLE if status >= 500 else "REFUSED")
    return _error(code, operation, where, name if name and not name.isdigit() else f"HTTP {status}")


def _unanswered(error: Exception, operation: str, where: str, endpoint_from: str) -> StorageError:
    reason, address = type(error).__name__, _address(error)
    if not address:
        return _error(UNAVAILABLE, operation, where, reason)
    known = endpoint_from or ("" if ".amazonaws." in address else "the environment or a profile")
    came = f", which came from {known}" if known else ""
    tls = isinstance(error, exceptions.SSLError)
    hint = "if the store there speaks no TLS, write it with http://" if tls else "check it, and that it runs"
    return StorageError(
        f"cannot {operation} '{where}': {reason}; the store was asked at {address}{came}: {hint}. Start "
        "again, nothing is lost",
        code=UNAVAILABLE,
    )


def _address(error: Exception) -> str:
    """Scheme, host and port that the client has tried; nothing else of a URL."""
    url = str(getattr(error, "kwargs", {}).get("endpoint_url", ""))
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else ""


def _error(code: str, operation: str, where: str, reason: str) -> StorageError:
    kind = CommitConflictError if code == EXISTS else StorageError
    return kind(f"cannot {operation} '{where}': {reason[:60]}; {_ADVICE[code]}", code=code)
