"""A bucket of a server that speaks Google's JSON API, looked at by plain requests of the tests' own."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import requests

from filesink.naming import join, parent, parse_upload, upload_path
from filesink.storage.api import Store
from filesink.storage.open import open_store
from filesink.storage.staged import PendingUpload, Staged
from tests.contracts.store_site import Site

PREFIX = "base/é a+b"


@dataclass
class GcsSite(Site):
    """A new bucket. Parts are shown as the uploads that they stand for, put together in their order."""

    url: str
    options: dict[str, Any] = field(default_factory=dict)
    prefix: str = PREFIX
    bucket: str = field(default_factory=lambda: f"b-{uuid.uuid4().hex}")

    def __post_init__(self) -> None:
        self.http = requests.Session()
        made = self.http.post(f"{self.url}/storage/v1/b?project=p", json={"name": self.bucket}, timeout=60)
        made.raise_for_status()

    @property
    def path(self) -> str:
        return f"gs://{join(self.bucket, self.prefix)}" if self.prefix else f"gs://{self.bucket}"

    def store(self) -> Store:
        return open_store(self.path, {"endpoint_url": self.url, **self.options})

    def files(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in sorted(self.names()):
            directory, _, last = name.rpartition("/")
            target, mark, part = last.removeprefix(".").rpartition(".part.")
            data = self.read(name)
            if not mark:
                found[name] = data
            elif part.split(".")[1] == "0":
                path = upload_path(join(directory, target), part.split(".")[0])
                found[path] = found.get(path, b"") + data
        return found

    def names(self) -> list[str]:
        """Paths of all objects, as they are."""
        found: list[str] = []
        params = {"prefix": self._key("")}
        while True:
            page = self.http.get(self._objects, params=params, timeout=60).json()
            found += [item["name"].removeprefix(self._key("")) for item in page.get("items", ())]
            if not page.get("nextPageToken"):
                return found
            params = {**params, "pageToken": page["nextPageToken"]}

    def read(self, path: str) -> bytes:
        """What an object holds; nothing if it was removed just now."""
        return self.http.get(self._url(path), params={"alt": "media"}, timeout=60).content

    def plant(self, path: str, data: bytes) -> None:
        names = self._parts(path)
        for name in names[1:]:
            self._delete(name)
        self.write(names[0] if names else path, data)

    def write(self, path: str, data: bytes, **metadata: str) -> None:
        """Make or replace an object."""
        about = json.dumps({"name": self._key(path), "metadata": metadata})
        head = f"--x\r\nContent-Type: application/json\r\n\r\n{about}\r\n--x\r\nContent-Type: "
        body = head.encode() + b"application/octet-stream\r\n\r\n" + data + b"\r\n--x--"
        self.http.post(
            f"{self.url}/upload/storage/v1/b/{self.bucket}/o?uploadType=multipart",
            data=body,
            headers={"Content-Type": "multipart/related; boundary=x"},
            timeout=60,
        ).raise_for_status()

    def remove(self, path: str) -> None:
        for name in self._parts(path) or [path]:
            self._delete(name)

    def half_publish(self, staged: Staged, target: str) -> None:
        """The parts are composed, and the driver dies before it removes them."""
        assert isinstance(staged, PendingUpload)
        body = {
            "sourceObjects": [{"name": self._key(name)} for name in self._parts(staged.path)],
            "destination": {"metadata": {"filesink-token": staged.token}},
        }
        self.http.post(f"{self._url(target)}/compose", json=body, timeout=60).raise_for_status()

    def _parts(self, path: str) -> list[str]:
        upload = parse_upload(path.rpartition("/")[2])
        if upload is None:
            return []
        start = join(parent(path), f".{upload[0]}.part.{upload[1]}.")
        return sorted(name for name in self.names() if name.startswith(start))

    def _delete(self, path: str) -> None:
        self.http.delete(self._url(path), timeout=60).raise_for_status()

    @property
    def _objects(self) -> str:
        return f"{self.url}/storage/v1/b/{self.bucket}/o"

    def _url(self, path: str) -> str:
        return f"{self._objects}/{quote(self._key(path), safe='')}"

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}" if self.prefix else path
