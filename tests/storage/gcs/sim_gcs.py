"""Google Cloud Storage as its documentation has it, in this process: what its emulator does not do, too.

Conditions hold for every call, sources of a composition are pinned, checksums are compared, a page is as long
as is asked for. ``faults`` are taken in order by the first request that each is for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

BEFORE, AFTER = "before", "after"
GONE = 0  # a status: the connection is closed without an answer


@dataclass
class SimObject:
    data: bytes
    generation: int
    made: datetime
    metadata: dict[str, str]


@dataclass
class Fault:
    """An answer in place of the service's, before or after what was asked for is done; see ``GONE``."""

    operation: str
    moment: str
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """One request, as it came."""

    operation: str
    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: bytes


class RefusedError(Exception):
    """An answer with an error."""

    def __init__(self, status: int, reason: str, message: str = "") -> None:
        self.status = status
        self.body = told(status, reason, message)


def told(status: int, reason: str, message: str = "") -> bytes:
    """An error in the service's form."""
    errors = [{"domain": "global", "reason": reason, "message": message}]
    return json.dumps({"error": {"code": status, "message": message, "errors": errors}}).encode()


@dataclass
class SimGcs:
    """The buckets of a service. ``page`` is the length of a page of a listing; ``token`` lets callers in."""

    buckets: dict[str, dict[str, SimObject]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    page: int = 7
    token: str = ""
    may_delete: bool = True
    url: str = ""
    generations: int = 1_000_000
    lock: Lock = field(default_factory=Lock)

    def answer(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        """What the service says."""
        with self.lock:
            self.asked.append(asked)
            fault = next((each for each in self.faults if each.operation in {asked.operation, "any"}), None)
            if fault is not None:
                self.faults.remove(fault)
            if fault is not None and fault.moment == BEFORE:
                return fault.status, fault.headers, fault.body
            try:
                found = self._answer(asked)
            except RefusedError as error:
                found = error.status, {}, error.body
            return found if fault is None else (fault.status, fault.headers, fault.body)

    def _answer(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            raise RefusedError(
                401, "authError" if "authorization" in asked.headers else "required", "Invalid"
            )
        bucket = asked.path.partition("/b/")[2].partition("/o")[0]
        if asked.operation == "make":
            self.buckets[json.loads(asked.body)["name"]] = {}
            return 200, {}, b"{}"
        if bucket not in self.buckets:
            raise RefusedError(404, "notFound", "The specified bucket does not exist.")
        objects = self.buckets[bucket]
        name = unquote(asked.path.partition("/o/")[2].removesuffix("/compose"))
        effect: Callable[..., tuple[int, dict[str, str], bytes]] = getattr(self, f"_{asked.operation}")
        return effect(objects, name, asked)

    def _list(self, objects: dict[str, SimObject], _: str, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        prefix, delimiter = asked.params.get("prefix", ""), asked.params.get("delimiter", "")
        entries: dict[str, SimObject | None] = {}
        for name in sorted(each for each in objects if each.startswith(prefix)):
            rest = name.removeprefix(prefix)
            if delimiter and delimiter in rest:
                entries[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                entries[name] = objects[name]
        names = sorted(name for name in entries if name > asked.params.get("pageToken", ""))
        page, more = names[: self.page], names[self.page :]
        found: dict[str, Any] = {"kind": "storage#objects"}
        items = [_shown(name, item) for name in page if (item := entries[name]) is not None]
        prefixes = [name for name in page if entries[name] is None]
        found |= {"items": items} if items else {}
        found |= {"prefixes": prefixes} if prefixes else {}
        found |= {"nextPageToken": page[-1]} if more else {}
        return 200, {}, json.dumps(found).encode()

    def _look(
        self, objects: dict[str, SimObject], name: str, asked: Asked
    ) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, json.dumps(_shown(name, _there(objects, name, asked.params))).encode()

    def _read(
        self, objects: dict[str, SimObject], name: str, asked: Asked
    ) -> tuple[int, dict[str, str], bytes]:
        if name not in objects:
            return 404, {"Content-Type": "text/html"}, f"No such object: {name}".encode()
        found = _there(objects, name, asked.params)
        headers = {"X-Goog-Hash": f"crc32c={crc32c(found.data)}", "X-Goog-Generation": str(found.generation)}
        wanted = asked.headers.get("range")
        if wanted is None:
            return 200, headers, found.data
        start, _, end = wanted.removeprefix("bytes=").partition("-")
        if int(start) >= len(found.data):
            raise RefusedError(416, "requestedRangeNotSatisfiable")
        return 206, headers, found.data[int(start) : int(end) + 1 if end else None]

    def _delete(
        self, objects: dict[str, SimObject], name: str, asked: Asked
    ) -> tuple[int, dict[str, str], bytes]:
        if not self.may_delete:
            raise RefusedError(403, "forbidden", "nobody@x does not have storage.objects.delete access")
        _there(objects, name, asked.params)
        if asked.params.get("generation", str(objects[name].generation)) != str(objects[name].generation):
            raise RefusedError(404, "notFound", "No such object")
        del objects[name]
        return 204, {}, b""

    def _insert(
        self, objects: dict[str, SimObject], _: str, asked: Asked
    ) -> tuple[int, dict[str, str], bytes]:
        kind = asked.headers["content-type"].encode()
        message: Any = BytesParser(policy=HTTP).parsebytes(
            b"Content-Type: " + kind + b"\r\n\r\n" + asked.body
        )
        about = json.loads(message.get_payload()[0].get_payload(decode=True))
        boundary = b"--" + kind.partition(b"boundary=")[2]
        data = asked.body.partition(b"octet-stream\r\n\r\n")[2].rpartition(b"\r\n" + boundary + b"--")[0]
        if about.get("crc32c") not in {None, crc32c(data)}:
            raise RefusedError(400, "invalid", "Provided CRC32C does not match")
        return self._made(objects, about["name"], data, about.get("metadata", {}), asked.params)

    def _compose(
        self, objects: dict[str, SimObject], name: str, asked: Asked
    ) -> tuple[int, dict[str, str], bytes]:
        body = json.loads(asked.body)
        sources = body["sourceObjects"]
        if not 1 <= len(sources) <= 32:
            raise RefusedError(400, "invalid", "between 1 and 32")
        data = b""
        for source in sources:
            if source["name"] not in objects:
                raise RefusedError(404, "notFound", "No such object")
            wanted = source.get("objectPreconditions", {}).get("ifGenerationMatch")
            if wanted not in {None, str(objects[source["name"]].generation)}:
                raise RefusedError(412, "conditionNotMet")
            data += objects[source["name"]].data
        return self._made(objects, name, data, body["destination"].get("metadata", {}), asked.params)

    def _made(
        self,
        objects: dict[str, SimObject],
        name: str,
        data: bytes,
        metadata: dict[str, str],
        params: dict[str, str],
    ) -> tuple[int, dict[str, str], bytes]:
        there = objects.get(name)
        wanted = params.get("ifGenerationMatch")
        if wanted not in {None, str(0 if there is None else there.generation)}:
            raise RefusedError(412, "conditionNotMet")
        if len(name.encode()) > 1024:
            raise RefusedError(400, "invalid", "the name is too long")
        self.generations += 1
        made = SimObject(data, self.generations, datetime.now(UTC), metadata)
        objects[name] = made
        return 200, {}, json.dumps(_shown(name, made)).encode()


def _there(objects: dict[str, SimObject], name: str, params: dict[str, str]) -> SimObject:
    if name not in objects:
        raise RefusedError(404, "notFound", f"No such object: {name}")
    if params.get("ifGenerationMatch") not in {None, str(objects[name].generation)}:
        raise RefusedError(412, "conditionNotMet")
    return objects[name]


def _shown(name: str, found: SimObject) -> dict[str, Any]:
    shown = {"kind": "storage#object", "name": name, "size": str(len(found.data))}
    shown |= {"generation": str(found.generation), "crc32c": crc32c(found.data)}
    made = found.made.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {**shown, "timeCreated": made, **({"metadata": found.metadata} if found.metadata else {})}


def crc32c(data: bytes) -> str:
    """As the API writes it."""
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def _operation(method: str, path: str, params: dict[str, str]) -> str:
    if path.startswith("/upload/"):
        return "insert"
    if path.endswith("/compose"):
        return "compose"
    if method == "DELETE":
        return "delete"
    if path.endswith("/o"):
        return "list"
    if method == "POST":
        return "make"
    return "read" if params.get("alt") == "media" else "look"


@contextmanager
def sim_gcs(service: SimGcs | None = None) -> Iterator[SimGcs]:
    """A server on the loopback interface, in threads of this process."""
    sim = service or SimGcs()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            params = {name: values[0] for name, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            operation = _operation(self.command, parts.path, params)
            status, told, data = sim.answer(Asked(operation, self.command, parts.path, params, headers, body))
            if status == GONE:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **told}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that has died is no error of the server's."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    sim.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield sim
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
