"""The port ``Objects`` by boto3, which only this module, ``session`` and ``errors`` know.

boto3 and not aiobotocore through s3fs: see ``benchmarks/README.md``. s3fs also binds applications to
the one botocore release that its aiobotocore was made for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import fsspec.config
from botocore import exceptions

from filesink.errors import StorageError
from filesink.naming import name_of
from filesink.storage.objects.api import (
    EXISTS,
    RACE,
    UNAVAILABLE,
    Condition,
    CopyRange,
    FoundObject,
    FoundUpload,
    NewUpload,
    ObjectInfo,
)
from filesink.storage.s3 import errors as s3_errors
from filesink.storage.s3.errors import refuse_unsure, status_of, was_repeated
from filesink.storage.s3.options import S3Options, s3_options
from filesink.storage.s3.session import client_of, forget_clients
from filesink.storage.staged import UploadedPart

if TYPE_CHECKING:
    from formats.api import Buffer

_TOKEN = "filesink-token"  # noqa: S105 - the name of a field of metadata
_OF_A_LISTING = {  # any of these, in an answer that is one
    *("Name", "Bucket", "KeyCount", "MaxKeys", "MaxUploads", "MaxParts", "UploadId", "IsTruncated"),
    *("Contents", "CommonPrefixes", "Uploads", "Parts"),
}
_SSE_C = ("SSECustomerAlgorithm", "SSECustomerKey", "SSECustomerKeyMD5")
_MADE_WITH = {  # options of s3_additional_kwargs that belong to requests that make an object
    "ACL", "BucketKeyEnabled", "CacheControl", "ContentType", "SSEKMSEncryptionContext", "SSEKMSKeyId",
    "ServerSideEncryption", "StorageClass", "Tagging",
}  # fmt: skip


def options_of(given: Mapping[str, Any]) -> S3Options:
    """Options of the user's, on top of fsspec's configuration for S3 (its files and environment)."""
    return s3_options({**fsspec.config.conf.get("s3", {}), **given})


def connect(bucket: str, options: S3Options) -> S3Objects:
    """The bucket, through this process's own client: a client must not be carried through a fork."""
    return S3Objects(client_of(options, os.getpid()), bucket, options)


class S3Objects:
    """See ``filesink.storage.objects.api.Objects``."""

    def __init__(self, client: Any, bucket: str, options: S3Options) -> None:
        self._client = client
        self._bucket = bucket
        self._endpoint_from = options.endpoint_from or ("storage options" if options.has_endpoint else "")
        extra = dict(options.s3_additional_kwargs)
        payer = {"RequestPayer": "requester"} if options.requester_pays else {}
        customer = {name: extra[name] for name in _SSE_C if name in extra}
        self._all: dict[str, Any] = {"Bucket": bucket, **payer}
        self._bytes = {**self._all, **customer}
        self._kept = {**self._bytes, **{name: extra[name] for name in extra if name in _MADE_WITH}}
        # Records and hidden objects are read again, which archives do not allow, and soon removed.
        self._made = {name: value for name, value in self._kept.items() if name != "StorageClass"}
        self._copied = {f"CopySource{name}": value for name, value in customer.items()}

    @property
    def where(self) -> str:
        """See ``Objects.where``."""
        return f"s3://{self._bucket}"

    def head(self, key: str, /) -> ObjectInfo | None:
        """See ``Objects.head``."""
        with self._explaining("look at", self._full(key)):
            try:
                found = self._client.head_object(Key=key, **self._bytes)
            except exceptions.ClientError as error:
                if status_of(error) == 404:
                    return None
                raise
            # Some servers change the case of names in metadata.
            metadata = {name.lower(): value for name, value in found.get("Metadata", {}).items()}
            return ObjectInfo(
                size=found["ContentLength"],
                etag=found["ETag"],
                mtime_ms=_ms(found["LastModified"]),
                token=metadata.get(_TOKEN, ""),
            )

    def get(self, key: str, /, *, start: int = 0, end: int | None = None, etag: str = "") -> bytes:
        """See ``Objects.get``."""
        request = dict(self._bytes)
        if start or end is not None:
            request["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        if etag:
            request["IfMatch"] = etag
        with self._explaining("read", self._full(key)):
            # The client checks the length of what arrives, and its checksum where there is one.
            content: bytes = self._client.get_object(Key=key, **request)["Body"].read()
            return content

    def put(self, key: str, data: Buffer, /, *, token: str, condition: Condition) -> None:
        """See ``Objects.put``."""
        try:
            with self._explaining("create", self._full(key)):
                made = self._client.put_object(
                    Key=key, Body=_body(data), Metadata={_TOKEN: token}, **self._made, **_if(condition)
                )
                _check_made(made)
        except StorageError as error:
            if error.code in {EXISTS, RACE} or not was_repeated(error.__cause__):
                raise
            raise StorageError(error.message, code=UNAVAILABLE) from error

    def delete(self, key: str, /, *, etag: str = "") -> None:
        """See ``Objects.delete``."""
        condition = {"IfMatch": etag} if etag else {}
        with suppress(FileNotFoundError), self._explaining("remove", self._full(key)):
            try:
                self._client.delete_object(Key=key, **self._all, **condition)
            except exceptions.ClientError as error:
                if not etag or status_of(error) != 501:
                    raise
                # A store without conditions; whoever gives one has looked just before.
                self._client.delete_object(Key=key, **self._all)

    def list_objects(self, prefix: str, /) -> tuple[list[FoundObject], list[str]]:
        """See ``Objects.list_objects``."""
        objects: list[FoundObject] = []
        prefixes: list[str] = []
        with self._explaining("list", self._full(prefix)):
            for page in self._pages("list_objects_v2", prefix, Prefix=prefix, Delimiter="/"):
                prefixes += [each["Prefix"] for each in page.get("CommonPrefixes", ())]
                objects += [
                    FoundObject(
                        key=each["Key"],
                        size=each["Size"],
                        etag=each["ETag"],
                        mtime_ms=_ms(each["LastModified"]),
                    )
                    for each in page.get("Contents", ())
                ]
        return objects, prefixes

    def list_uploads(self, prefix: str, /) -> tuple[list[FoundUpload], list[str]]:
        """See ``Objects.list_uploads``."""
        uploads: list[FoundUpload] = []
        prefixes: list[str] = []
        with self._explaining("list", self._full(prefix)):
            for page in self._pages("list_multipart_uploads", prefix, Prefix=prefix, Delimiter="/"):
                prefixes += [each["Prefix"] for each in page.get("CommonPrefixes", ())]
                uploads += [
                    FoundUpload(key=each["Key"], upload_id=each["UploadId"], begun_ms=_ms(each["Initiated"]))
                    for each in page.get("Uploads", ())
                ]
        return uploads, prefixes

    def create_upload(self, key: str, /, *, token: str) -> NewUpload:
        """See ``Objects.create_upload``."""
        settings = self._made if _is_hidden(key) else self._kept
        with self._explaining("begin an upload to", self._full(key)):
            made = self._client.create_multipart_upload(Key=key, Metadata={_TOKEN: token}, **settings)
            aborted = made.get("AbortDate")
            return NewUpload(upload_id=made["UploadId"], abort_ms=None if aborted is None else _ms(aborted))

    def upload_part(self, key: str, upload_id: str, /, *, number: int, data: Buffer) -> str:
        """See ``Objects.upload_part``."""
        with self._explaining("upload to", self._full(key)):
            made = self._client.upload_part(
                Key=key, UploadId=upload_id, PartNumber=number, Body=_body(data), **self._bytes
            )
            etag = str(made["ETag"])
        refuse_unsure(made, etag, "upload to", self._full(key), data=data)
        return etag

    def copy_part(self, key: str, upload_id: str, /, *, number: int, source: CopyRange) -> str | None:
        """See ``Objects.copy_part``."""
        with self._explaining("copy to", self._full(key)):
            try:
                made = self._client.upload_part_copy(
                    Key=key,
                    UploadId=upload_id,
                    PartNumber=number,
                    CopySource={"Bucket": self._bucket, "Key": source.key},
                    CopySourceRange=f"bytes={source.start}-{source.end - 1}",
                    CopySourceIfMatch=source.etag,
                    **self._bytes,
                    **self._copied,
                )
            except exceptions.ClientError as error:
                if status_of(error) == 501:
                    return None
                raise
        etag = made.get("CopyPartResult", {}).get("ETag")  # a server that cannot copy may say so by silence
        if etag is None:
            return None
        refuse_unsure(made, etag, "copy to", self._full(key), data=None)
        return str(etag)

    def list_parts(self, key: str, upload_id: str, /) -> list[UploadedPart] | None:
        """See ``Objects.list_parts``."""
        try:
            with self._explaining("list", self._full(key)):
                return [
                    UploadedPart(number=each["PartNumber"], etag=each["ETag"], size=each["Size"])
                    for page in self._pages("list_parts", key, Key=key, UploadId=upload_id)
                    for each in page.get("Parts", ())
                ]
        except FileNotFoundError:
            return None

    def complete(
        self, key: str, upload_id: str, /, *, parts: Sequence[UploadedPart], condition: Condition
    ) -> None:
        """See ``Objects.complete``."""
        with self._explaining("complete the upload to", self._full(key)):
            made = self._client.complete_multipart_upload(
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": [{"PartNumber": part.number, "ETag": part.etag} for part in parts]},
                MpuObjectSize=sum(part.size for part in parts),
                **self._bytes,
                **_if(condition),
            )
            _check_made(made)

    def abort(self, key: str, upload_id: str, /) -> None:
        """See ``Objects.abort``."""
        with self._explaining("abort the upload to", self._full(key)):
            try:
                self._client.abort_multipart_upload(Key=key, UploadId=upload_id, **self._all)
            except exceptions.ClientError as error:
                if status_of(error) != 404:
                    raise

    def _pages(self, operation: str, where: str, **request: Any) -> Iterator[dict[str, Any]]:
        """Pages of a listing. Its errors are the client's."""
        try:
            for page in self._client.get_paginator(operation).paginate(**self._all, **request):
                if _OF_A_LISTING.isdisjoint(page):
                    raise KeyError(operation)  # a page of somebody between is no empty listing
                yield page
        except exceptions.ClientError as error:
            if error.response.get("Error", {}).get("Code") == "NoSuchUpload":
                raise FileNotFoundError(where) from error
            raise

    def _full(self, key: str) -> str:
        return f"{self.where}/{key}"

    @contextmanager
    def _explaining(self, operation: str, where: str) -> Iterator[None]:
        """As ``s3_errors.explaining``. After a refusal the next to connect looks for credentials anew."""
        try:
            with s3_errors.explaining(operation, where, endpoint_from=self._endpoint_from):
                yield
        except StorageError as error:
            if error.code in s3_errors.REFUSALS:
                forget_clients()
            raise


def _check_made(answer: Mapping[str, Any]) -> None:
    """Raise ``KeyError`` for a success that is not S3's; the caller then looks what is there."""
    answer["ETag"]


def _is_hidden(key: str) -> bool:
    return name_of(key).startswith(".")


def _body(data: Buffer) -> bytes | bytearray:
    return data if isinstance(data, bytes | bytearray) else bytes(data)


def _if(condition: Condition) -> dict[str, str]:
    return {"IfNoneMatch": "*"} if condition is Condition.IF_ABSENT else {}


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
