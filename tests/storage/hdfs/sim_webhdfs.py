"""The REST interface of the simulated namenode, for processes that can be killed.

Namenode and datanode are one server: a request for bytes is sent on to the same address.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from filesink.storage.hdfs.namenode import HdfsStatus
from tests.storage.hdfs.sim_namenode import Cluster, SimNamenode

_ROOT = "/webhdfs/v1"
_EXCEPTIONS = {
    errno.EEXIST: "FileAlreadyExistsException",
    errno.ENOENT: "FileNotFoundException",
    errno.ENOTDIR: "ParentNotDirectoryException",
    errno.ENOTEMPTY: "PathIsNotEmptyDirectoryException",
}


_UPLOADS = frozenset({"CREATE", "APPEND"})

#: What is done for an operation, and answered; it is given the cluster, path, query and body.
Operation = Callable[[Cluster, str, dict[str, str], bytes], Any]


@contextmanager
def web_namenode(
    cluster: Cluster, *, redirected: frozenset[str] = _UPLOADS | {"OPEN"}, **others: Operation
) -> Iterator[int]:
    """Serve a cluster; the port. ``others`` stand for the operations of their names.

    ``redirected`` operations are answered with the address to ask again.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.cluster = cluster  # type: ignore[attr-defined]
    server.redirected = redirected  # type: ignore[attr-defined]
    server.operations = {**OPERATIONS, **others}  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def httpfs(cluster: Cluster) -> AbstractContextManager[int]:
    """Serve a cluster as Hadoop's HttpFS does; the port.

    It sends an upload on to itself, hands over at once what is read, and knows only the old rename.
    """
    return web_namenode(cluster, redirected=_UPLOADS, RENAME=rename_with_boolean)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._do()

    def do_PUT(self) -> None:
        self._do()

    def do_POST(self) -> None:
        self._do()

    def do_DELETE(self) -> None:
        self._do()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def _do(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        operation = query["op"]
        if operation in self.server.redirected and "datanode" not in query:
            here = f"http://127.0.0.1:{self.server.server_address[1]}{self.path}&datanode=1"
            self._answer(307, b"", location=here)
            return
        path = unquote(url.path).removeprefix(_ROOT)
        try:
            reply = self.server.operations[operation](self.server.cluster, path, query, body)
        except OSError as error:
            told = {"exception": _EXCEPTIONS.get(error.errno, "IOException"), "message": str(error)}
            self._answer(403, json.dumps({"RemoteException": told}).encode())
        else:
            self._answer(200, reply if isinstance(reply, bytes) else json.dumps(reply).encode())

    def _answer(self, status: int, content: bytes, *, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _mkdirs(cluster: Cluster, path: str, _query: dict[str, str], _body: bytes) -> Any:
    SimNamenode(cluster).mkdirs(path)
    return {"boolean": True}


def _create(cluster: Cluster, path: str, query: dict[str, str], body: bytes) -> Any:
    assert query["overwrite"] == "false"
    writer = SimNamenode(cluster).create(path)
    writer.write(body)
    writer.close()
    return b""


def _append(cluster: Cluster, path: str, _query: dict[str, str], body: bytes) -> Any:
    SimNamenode(cluster).append(path, body)
    return b""


def _open(cluster: Cluster, path: str, query: dict[str, str], _body: bytes) -> Any:
    start = int(query["offset"])
    return SimNamenode(cluster).open(path).read()[start : start + int(query["length"])]


def _status(cluster: Cluster, path: str, _query: dict[str, str], _body: bytes) -> Any:
    found = SimNamenode(cluster).status(path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", path)
    return {"FileStatus": _told(found)}


def _list(cluster: Cluster, path: str, _query: dict[str, str], _body: bytes) -> Any:
    return {"FileStatuses": {"FileStatus": [_told(each) for each in SimNamenode(cluster).list(path)]}}


def _rename(cluster: Cluster, path: str, query: dict[str, str], _body: bytes) -> Any:
    assert query["renameoptions"] == "NONE"
    SimNamenode(cluster).rename(path, query["destination"])
    return b""


def _delete(cluster: Cluster, path: str, query: dict[str, str], _body: bytes) -> Any:
    assert query["recursive"] == "false"
    SimNamenode(cluster).delete(path)
    return {"boolean": True}


def rename_with_boolean(cluster: Cluster, path: str, query: dict[str, str], _body: bytes) -> Any:
    """A gateway that ignores ``renameoptions``: it does not say why, and refuses with status 200.

    The old rename moves a file into a directory that stands under the new name.
    """
    namenode, target = SimNamenode(cluster), query["destination"]
    found = namenode.status(target)
    if found is not None and found.is_directory:
        target = f"{target}/{path.rpartition('/')[2]}"
    try:
        namenode.rename(path, target)
    except OSError:
        return {"boolean": False}
    return {"boolean": True}


def append_twice(cluster: Cluster, path: str, query: dict[str, str], body: bytes) -> Any:
    """A proxy that has lost the first answer and repeats the request."""
    _append(cluster, path, query, body)
    return _append(cluster, path, query, body)


def _told(found: HdfsStatus) -> dict[str, Any]:
    kind = "DIRECTORY" if found.is_directory else "FILE"
    return {
        "pathSuffix": found.name,
        "length": found.size,
        "modificationTime": found.mtime_ms,
        "type": kind,
    }


OPERATIONS: dict[str, Operation] = {
    "MKDIRS": _mkdirs,
    "CREATE": _create,
    "APPEND": _append,
    "OPEN": _open,
    "GETFILESTATUS": _status,
    "LISTSTATUS": _list,
    "RENAME": _rename,
    "DELETE": _delete,
}
