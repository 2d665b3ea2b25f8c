"""A container of Azure Blob Storage as ``Objects``; with ``connection`` all that knows Azure's client.

Azure has no uploads. This is what stands for them:

* Blocks are staged for a blob and invisible until a list of them is committed; that is one step, and
  conditional. They are named by upload, number and digest, so that another attempt, or the same one
  again, never replaces a block. A block has at least one byte, so the part of an empty file has no block.
* The upload's id is the token of the blob it becomes, and goes into its metadata when it is committed.
* Blocks that nobody commits cannot be removed by name, and are listed nowhere: Azure drops them seven
  days after the last one of their blob. So there is nothing to abort and nothing to sweep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DeserializationError,
    HttpResponseError,
)
from azure.storage.blob import BlobBlock, BlobPrefix
from urllib3.exceptions import HTTPError

from filesink.errors import FilesinkError, StorageError
from filesink.storage.azure.errors import answered, failed
from filesink.storage.objects.api import (
    EXISTS,
    UNAVAILABLE,
    Condition,
    CopyRange,
    FoundObject,
    FoundUpload,
    NewUpload,
    ObjectInfo,
)
from filesink.storage.staged import UploadedPart

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient, BlobProperties, ContainerClient

    from formats.api import Buffer

_TOKEN = "filesink_token"  # noqa: S105 - the name of it; Azure takes letters, digits and '_'
_FOLDER = "hdi_isfolder"  # how Hadoop, blobfuse and accounts with directories mark what stands for one
_DIGEST = 16  # hexadecimal digits of a block's digest in its name

_NO_BYTES = UploadedPart(number=1, etag=hashlib.sha256().hexdigest()[:_DIGEST], size=0)


class AzureObjects:
    """See ``filesink.storage.objects.api.Objects``."""

    def __init__(self, container: ContainerClient, name: str) -> None:
        self._container = container
        self._name = name

    @property
    def where(self) -> str:
        """See ``Objects.where``."""
        return f"az://{self._name}"

    def head(self, key: str, /) -> ObjectInfo | None:
        """See ``Objects.head``."""
        try:
            with self._explained("look at", key):
                found = self._blob(key).get_blob_properties()
                if _is_folder(found):
                    return None
                token = (found.metadata or {}).get(_TOKEN, "")
                return ObjectInfo(size=found.size, etag=found.etag, mtime_ms=_mtime_ms(found), token=token)
        except FileNotFoundError:
            return None

    def get(self, key: str, /, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """See ``Objects.get``."""
        part: dict[str, Any] = {}
        if start or end is not None:  # a blob without bytes has no range, not even from 0
            part = {"offset": start, "length": None if end is None else end - start}
        with self._explained("read", key):
            return bytes(self._blob(key).download_blob(**part, **_if_match(etag)).readall())

    def put(self, key: str, data: Buffer, /, *, token: str, condition: Condition) -> None:
        """See ``Objects.put``."""
        again: list[None] = []  # the client asks once more where an answer does not tell
        try:
            with self._explained("write", key):
                self._blob(key).upload_blob(
                    bytes(data),
                    overwrite=condition is Condition.ALWAYS,
                    metadata={_TOKEN: token},
                    retry_hook=lambda **_: again.append(None),
                )
        except StorageError as error:
            if error.code == EXISTS or not again:
                raise
            # A refusal is that of the last request; the one before it may be done yet.
            raise StorageError(error.message, code=UNAVAILABLE) from error

    def delete(self, key: str, /, *, etag: str = "") -> None:
        """See ``Objects.delete``."""
        try:
            with self._explained("remove", key):
                # No reader sees a snapshot, and a blob that has some is not removed without them.
                self._blob(key).delete_blob(delete_snapshots="include", **_if_match(etag))
        except FileNotFoundError:
            pass

    def list_objects(self, prefix: str, /) -> tuple[list[FoundObject], list[str]]:
        """See ``Objects.list_objects``."""
        found: list[FoundObject] = []
        below: list[str] = []
        with self._explained("list", prefix):
            for each in self._container.walk_blobs(prefix or None, include=["metadata"], delimiter="/"):
                if isinstance(each, BlobPrefix):
                    below.append(each.name)
                elif not _is_folder(each):
                    mtime_ms = _mtime_ms(each)
                    one = FoundObject(key=each.name, size=each.size, etag=each.etag, mtime_ms=mtime_ms)
                    found.append(one)
        return found, below

    def list_uploads(self, prefix: str, /) -> tuple[list[FoundUpload], list[str]]:
        """See ``Objects.list_uploads``: none, see the rules above."""
        del prefix
        return [], []

    def create_upload(self, key: str, /, *, token: str) -> NewUpload:
        """See ``Objects.create_upload``; the service hears of it with the first block."""
        del key
        return NewUpload(upload_id=token, abort_ms=None, is_listed=False)

    def upload_part(self, key: str, upload_id: str, /, *, number: int, data: Buffer) -> str:
        """See ``Objects.upload_part``."""
        digest = hashlib.sha256(data).hexdigest()[:_DIGEST]
        if len(data):
            with self._explained("upload to", key):
                self._blob(key).stage_block(_block_id(upload_id, number, digest), bytes(data))
        return digest

    def copy_part(self, key: str, upload_id: str, /, *, number: int, source: CopyRange) -> str | None:
        """See ``Objects.copy_part``; Azure copies blocks only from addresses that need no header."""
        del key, upload_id, number, source
        return None

    def list_parts(self, key: str, upload_id: str, /) -> list[UploadedPart] | None:
        """See ``Objects.list_parts``; of what has no block there is the empty part, which is always there."""
        try:
            with self._explained("look at the upload of", key):
                _, uncommitted = self._blob(key).get_block_list("uncommitted")
        except FileNotFoundError:
            return [_NO_BYTES]
        parts = [_part(block.id, block.size) for block in uncommitted if block.id.startswith(f"{upload_id}.")]
        return sorted(parts, key=lambda part: part.number) or [_NO_BYTES]

    def complete(
        self, key: str, upload_id: str, /, *, parts: Sequence[UploadedPart], condition: Condition
    ) -> None:
        """See ``Objects.complete``."""
        blocks = [BlobBlock(_block_id(upload_id, part.number, part.etag)) for part in parts if part.size]
        only: dict[str, Any] = (
            {"match_condition": MatchConditions.IfMissing} if condition is Condition.IF_ABSENT else {}
        )
        with self._explained("complete the upload of", key):
            self._blob(key).commit_block_list(blocks, metadata={_TOKEN: upload_id}, **only)

    def abort(self, key: str, upload_id: str, /) -> None:
        """See ``Objects.abort``: nothing to be done, see the rules above."""

    def _blob(self, key: str) -> BlobClient:
        return self._container.get_blob_client(key)

    @contextmanager
    def _explained(self, operation: str, key: str) -> Iterator[None]:
        """Turn the client's errors inside into ``StorageError``, and its 404 into ``FileNotFoundError``."""
        where = f"{self.where}/{key}"
        try:
            yield
        except (FilesinkError, FileNotFoundError):
            raise
        except ClientAuthenticationError as error:
            raise failed("PERMISSION", operation, where, type(error).__name__) from error
        except HttpResponseError as error:
            status = error.status_code or 0
            raise answered(_code_of(error), status, operation=operation, where=where) from error
        # The last are how the client stumbles over a 200 that is not Azure's, such as a proxy's page: text
        # that is no XML (``DeserializationError``), or no UTF-8; a header or element that is not there. What
        # breaks below it once the headers are there, such as TLS, it hands on as it is.
        except (AzureError, HTTPError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise failed(UNAVAILABLE, operation, where, type(error).__name__) from error


def _block_id(upload_id: str, number: int, digest: str) -> str:
    """All of one length, and of 64 bytes at most, as Azure wants it."""
    return f"{upload_id}.{number:05d}.{digest}"


def _part(name: str, size: int) -> UploadedPart:
    _, number, digest = name.split(".")
    return UploadedPart(number=int(number), etag=digest, size=size)


def _if_match(etag: str) -> dict[str, Any]:
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified} if etag else {}


def _code_of(error: HttpResponseError) -> str:
    known = getattr(error, "error_code", None)
    return str(getattr(known, "value", known) or "")


def _is_folder(found: BlobProperties) -> bool:
    # Clients written in Go begin the names of metadata with a capital letter.
    return any(name.lower() == _FOLDER and value == "true" for name, value in (found.metadata or {}).items())


def _mtime_ms(found: BlobProperties) -> int:
    if found.last_modified is None:
        raise DeserializationError("an answer without Last-Modified is not Azure's")
    return int(found.last_modified.timestamp() * 1000)
