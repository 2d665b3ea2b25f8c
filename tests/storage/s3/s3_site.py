"""A bucket of a real server, looked at by a client of the tests' own."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from filesink.naming import join, parent, parse_upload, upload_path
from filesink.storage.api import Store
from filesink.storage.open import open_store
from filesink.storage.staged import PendingUpload, Staged
from tests.contracts.store_site import Site
from tests.servers import S3Server

# A server shows no bytes of an upload, but the MD5 of each part, which is its etag.
_KNOWN = {hashlib.md5(data).hexdigest(): data for data in (b"", b"abc")}  # noqa: S324 - S3's etags


@dataclass
class S3Site(Site):
    """Everything below one prefix of a new bucket."""

    server: S3Server
    prefix: str = "base/é a+b"
    options: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def bucket(self) -> str:
        return self.server.new_bucket()

    @cached_property
    def client(self) -> Any:
        return self.server.client()

    @property
    def path(self) -> str:
        return f"s3://{join(self.bucket, self.prefix)}" if self.prefix else f"s3://{self.bucket}"

    def store(self) -> Store:
        return open_store(self.path, {**self.server.options, **self.options})

    def files(self) -> dict[str, bytes]:
        files = self.read(self.names())
        for upload in self.uploads():
            path = upload_path(upload["Key"].removeprefix(self._key("")), upload["UploadId"])
            files[path] = b"".join(_KNOWN.get(etag, b"?") for etag in self._etags(upload))
        return files

    def names(self) -> list[str]:
        """Paths of all objects; may be asked while somebody writes."""
        prefix = self._key("")
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [each["Key"].removeprefix(prefix) for page in pages for each in page.get("Contents", ())]

    def storage_class(self, path: str) -> str:
        """Of an object; the default one is not told by servers."""
        found = self.client.head_object(Bucket=self.bucket, Key=self._key(path))
        return str(found.get("StorageClass", "STANDARD"))

    def read(self, names: list[str]) -> dict[str, bytes]:
        """What these objects hold."""
        with ThreadPoolExecutor(8) as pool:
            return dict(zip(names, pool.map(self._get, names), strict=True))

    def uploads(self) -> list[dict[str, Any]]:
        pages = self.client.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket)
        try:
            return [each for page in pages for each in page.get("Uploads", ())]
        except self.client.exceptions.NoSuchUpload:  # rclone, of a bucket that has never had one
            return []

    def plant(self, path: str, data: bytes) -> None:
        upload = self._upload(path)
        if upload is None:
            self.client.put_object(Bucket=self.bucket, Key=self._key(path), Body=data)
        else:  # as an attempt does that goes on after its successor
            self.client.upload_part(Bucket=self.bucket, PartNumber=1, Body=data, **upload)

    def remove(self, path: str) -> None:
        upload = self._upload(path)
        if upload is None:
            self.client.delete_object(Bucket=self.bucket, Key=self._key(path))
        else:
            self.client.abort_multipart_upload(Bucket=self.bucket, **upload)

    def half_publish(self, staged: Staged, target: str) -> None:
        """There is one step only: the upload is completed, and the driver dies before it knows."""
        assert isinstance(staged, PendingUpload)
        self.client.complete_multipart_upload(
            Bucket=self.bucket,
            Key=self._key(target),
            UploadId=staged.upload_id,
            MultipartUpload={"Parts": [{"PartNumber": p.number, "ETag": p.etag} for p in staged.parts]},
        )

    def _get(self, path: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=self.bucket, Key=self._key(path))["Body"].read()
        return data

    def _etags(self, upload: dict[str, Any]) -> list[str]:
        found = self.client.list_parts(Bucket=self.bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        return [part["ETag"].strip('"') for part in found.get("Parts", ())]

    def _upload(self, path: str) -> dict[str, str] | None:
        found = parse_upload(path.rpartition("/")[2])
        if found is None:
            return None
        return {"Key": self._key(join(parent(path), found[0])), "UploadId": found[1]}

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}" if self.prefix else path
