"""The calls of the JSON API that are needed, each as one function: what is sent, and what answer is one.

Rules:

* An answer that is not the service's, such as a proxy's page with status 200, is ``UNAVAILABLE``.
* Sizes and CRC32C of what was made and read are compared with ours: the service checks them, and so do we.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import google_crc32c

from filesink.errors import StorageError
from filesink.storage.gcs.errors import failed
from filesink.storage.gcs.session import Answer, Request, Service
from filesink.storage.objects.api import EXISTS, UNAVAILABLE, Condition

if TYPE_CHECKING:
    from formats.api import Buffer

_ABOUT = "name,size,generation,timeCreated,crc32c,metadata"
_BYTES = "application/octet-stream"
_ABSENT = {"ifGenerationMatch": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object as it stands. ``generation`` is that of its bytes; ``mtime_ms`` since 1970 UTC."""

    key: str
    size: int
    generation: str
    mtime_ms: int
    crc32c: str
    metadata: Mapping[str, str]


class Calls:
    """One bucket. May be used by several threads.

    Args:
        service: sends requests.
        bucket: its name.
    """

    def __init__(self, service: Service, bucket: str) -> None:
        self._service = service
        self.where = f"gs://{bucket}"
        self._all = f"/storage/v1/b/{quote(bucket, safe='')}/o"

    def look(self, operation: str, key: str) -> Found | None:
        """What stands under ``key``."""
        request = self._request("GET", operation, key, params={"fields": _ABOUT})
        try:
            answer = self._service.call(request)
        except FileNotFoundError:
            return None
        with self._understood(operation, key):
            return _found(json.loads(answer.body))

    def read(self, key: str, *, start: int, end: int | None, generation: str) -> bytes:
        """Bytes of an object. ``EXISTS`` if it is of another generation, ``FileNotFoundError``."""
        is_range = bool(start) or end is not None
        headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if is_range else {}
        params = {"alt": "media", **if_generation(generation)}
        request = self._request("GET", "read", key, params=params, headers=headers, also=frozenset({404}))
        answer = self._service.call(request)
        # Of bytes the service says that there are none in plain text, as any proxy does.
        if answer.status == 404 and self.look("read", key) is None:
            raise FileNotFoundError(self.full(key))
        self._check_read(key, answer, generation=generation, is_range=is_range)
        return answer.body

    def insert(
        self,
        operation: str,
        key: str,
        data: Buffer,
        *,
        token: str,
        metadata: Mapping[str, str],
        only: Condition,
    ) -> str:
        """Make an object at once; its generation. ``token`` is random: no data has it as a boundary."""
        crc32c = crc32c_of(data)
        about = json.dumps({"name": key, "crc32c": crc32c, "metadata": dict(metadata)}).encode()
        boundary = f"filesink-{token}".encode()
        head = b"--%b\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%b\r\n" % (boundary, about)
        middle = b"--%b\r\nContent-Type: %b\r\n\r\n" % (boundary, _BYTES.encode())
        request = Request(
            method="POST",
            path=f"/upload{self._all}",
            operation=operation,
            where=self.full(key),
            params={"uploadType": "multipart", **_only(only)},
            headers={"Content-Type": f"multipart/related; boundary={boundary.decode()}"},
            body=b"".join((head, middle, data, b"\r\n--%b--" % boundary)),
            is_change=True,
        )
        return self._made(operation, key, self._service.call(request), size=len(data), crc32c=crc32c)

    def compose(
        self,
        operation: str,
        key: str,
        sources: Sequence[tuple[str, str, int]],
        *,
        metadata: Mapping[str, str],
        only: Condition,
    ) -> str:
        """Make an object of up to 32 others, each a key, a generation and a size; its generation."""
        body = {
            "sourceObjects": [
                {"name": name, "objectPreconditions": {"ifGenerationMatch": generation}}
                for name, generation, _ in sources
            ],
            "destination": {"contentType": _BYTES, "metadata": dict(metadata)},
        }
        request = Request(
            method="POST",
            path=f"{self._path(key)}/compose",
            operation=operation,
            where=self.full(key),
            params=_only(only),
            headers={"Content-Type": "application/json"},
            body=json.dumps(body).encode(),
            is_change=True,
        )
        size = sum(size for _, _, size in sources)
        return self._made(operation, key, self._service.call(request), size=size, crc32c="")

    def remove(self, key: str, params: Mapping[str, str]) -> None:
        """Remove an object, or one generation of it; an absent one is no error."""
        with suppress(FileNotFoundError):
            self._service.call(self._request("DELETE", "remove", key, params=params))

    def found(self, prefix: str, *, delimiter: str = "") -> Iterator[Found | str]:
        """All objects whose keys begin so, and the prefixes that end with the next ``delimiter``."""
        params = {"prefix": prefix, "delimiter": delimiter}
        params |= {"fields": f"kind,nextPageToken,prefixes,items({_ABOUT.rpartition(',')[0]})"}
        while True:
            request = self._request("GET", "list", prefix, params=params, path=self._all)
            try:
                answer = self._service.call(request)
            except FileNotFoundError as error:  # a listing is of nothing but its bucket
                raise failed("NO_BUCKET", "list", self.full(prefix), "HTTP 404") from error
            with self._understood("list", prefix):
                page = json.loads(answer.body)
                if page["kind"] != "storage#objects":
                    raise KeyError("kind")  # a page of somebody between is no empty listing
                entries = [*page.get("prefixes", ()), *map(_found, page.get("items", ()))]
            yield from entries
            if not page.get("nextPageToken"):
                return
            params = {**params, "pageToken": page["nextPageToken"]}

    def full(self, key: str) -> str:
        """The whole path, for messages."""
        return f"{self.where}/{key}"

    def _path(self, key: str) -> str:
        return f"{self._all}/{quote(key, safe='')}"

    def _request(  # noqa: PLR0913 - all but the bucket of a request
        self,
        method: str,
        operation: str,
        key: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        path: str = "",
        also: frozenset[int] = frozenset(),
    ) -> Request:
        return Request(
            method=method,
            path=path or self._path(key),
            operation=operation,
            where=self.full(key),
            params=params,
            headers=headers or {},
            also=also,
        )

    def _made(self, operation: str, key: str, answer: Answer, *, size: int, crc32c: str) -> str:
        with self._understood(operation, key):
            found = json.loads(answer.body)
            generation, made = str(int(found["generation"])), (int(found["size"]), str(found["crc32c"]))
        if made != (size, crc32c or made[1]):
            raise failed(UNAVAILABLE, operation, self.full(key), "the bytes changed on their way")
        return generation

    def _check_read(self, key: str, answer: Answer, *, generation: str, is_range: bool) -> None:
        if answer.status != (206 if is_range else 200):
            raise failed(UNAVAILABLE, "read", self.full(key), f"HTTP {answer.status}")
        told = answer.headers.get("x-goog-generation", "")
        if generation and told not in {"", generation}:  # an emulator that ignores the condition
            raise failed(EXISTS, "read", self.full(key), "another generation")
        hashes = answer.headers.get("x-goog-hash", "")
        if not is_range and "crc32c=" in hashes and f"crc32c={crc32c_of(answer.body)}" not in hashes:
            raise failed(UNAVAILABLE, "read", self.full(key), "the bytes changed on their way")

    @contextmanager
    def _understood(self, operation: str, key: str) -> Iterator[None]:
        """What stumbles inside over the text of an answer has met one that is not the service's."""
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, StorageError):
                raise
            raise failed(UNAVAILABLE, operation, self.full(key), "no answer of the service's") from error


def if_generation(generation: str) -> dict[str, str]:
    """The condition that an object is still of ``generation``; none if it is ``""``."""
    plain = generation.strip('"')
    return {"ifGenerationMatch": plain} if plain else {}


def crc32c_of(data: Buffer) -> str:
    """As the API writes it."""
    return base64.b64encode(google_crc32c.value(bytes(data)).to_bytes(4, "big")).decode()


def _only(condition: Condition) -> Mapping[str, str]:
    return _ABSENT if condition is Condition.IF_ABSENT else {}


def _found(item: Mapping[str, Any]) -> Found:
    return Found(
        key=item["name"],
        size=int(item["size"]),
        generation=str(int(item["generation"])),
        mtime_ms=int(datetime.fromisoformat(item["timeCreated"]).timestamp() * 1000),
        crc32c=item.get("crc32c", ""),
        metadata=item.get("metadata", {}),
    )
