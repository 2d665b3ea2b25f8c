"""``webhdfs://``: a namenode's REST interface, where its own protocol is out of reach.

fsspec's client knows how to sign in and where to go. Its calls are not used: its rename does not look
at the answer, its create replaces, and its read returns an error page as content.
"""

from __future__ import annotations

import errno
import inspect
import io
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote, urlsplit, urlunsplit

from filesink.errors import ConfigError, DependencyError
from filesink.naming import name_of
from filesink.storage.hdfs.namenode import HdfsStatus, hadoop_error
from filesink.storage.ranged import RangedFile

if TYPE_CHECKING:
    import requests

    from formats.api import Buffer

_CHUNK = 8 << 20  # bytes of one request to a datanode
_TIMEOUT = (30, 300)  # seconds to connect, and without a byte of answer


class WebNamenode:
    """See ``filesink.storage.hdfs.namenode.Namenode``.

    Args:
        host: of the namenode's web interface, or of HttpFS; an IPv6 address in brackets.
        port: of it.
        options: those of ``fsspec.implementations.webhdfs.WebHDFS``: ``user``, ``token``, ``kerberos`` …

    Raises:
        ConfigError: ``UNKNOWN_OPTION``; ``BAD_VALUE``, options exclude each other.
    """

    def __init__(self, host: str, port: int, options: Mapping[str, Any]) -> None:
        client = _library()
        known = inspect.signature(client.__init__).parameters
        unknown = sorted(name for name in options if name not in known or name in {"self", "kwargs"})
        if unknown:  # the client would ignore them
            raise ConfigError(
                f"unknown storage options {unknown} for webhdfs://; it takes those of fsspec's WebHDFS, "
                "such as 'user', 'token', 'kerberos' or 'use_https'",
                code="UNKNOWN_OPTION",
            )
        try:
            self._client: Any = client(host=host, port=port, skip_instance_cache=True, **options)
        except ValueError as error:
            raise ConfigError(
                "storage options for webhdfs:// exclude each other: 'token' goes without 'user' and "
                "'proxy_to', 'kerberos' without 'user', and 'password' only with 'user'",
                code="BAD_VALUE",
            ) from error

    def mkdirs(self, path: str, /) -> None:
        """See ``Namenode.mkdirs``."""
        if not self._ask("PUT", "MKDIRS", path).json()["boolean"]:
            raise OSError(errno.EIO, "the namenode did not make the directory", path)

    def create(self, path: str, /) -> WebWriter:
        """See ``Namenode.create``."""
        self._send("PUT", "CREATE", path, b"", overwrite="false")
        return WebWriter(self, path)

    def append(self, path: str, data: Buffer) -> None:
        """Add bytes to a file that only this process knows."""
        self._send("POST", "APPEND", path, data)

    def status(self, path: str, /) -> HdfsStatus | None:
        """See ``Namenode.status``."""
        try:
            found = self._ask("GET", "GETFILESTATUS", path).json()["FileStatus"]
        except FileNotFoundError:
            return None
        return _status(name_of(path), found)

    def rename(self, source: str, target: str, /) -> None:
        """See ``Namenode.rename``. Gateways that ignore the option answer with a boolean."""
        answer = self._ask("PUT", "RENAME", source, destination=target, renameoptions="NONE")
        if not answer.content:
            return
        if not answer.json().get("boolean", True):
            raise FileExistsError(errno.EEXIST, "the namenode refused the rename", target)
        found = self.status(target)
        if found is not None and found.is_directory:  # without the option a file is moved into it
            raise FileExistsError(errno.EEXIST, "a directory stands there", target)

    def delete(self, path: str, /) -> None:
        """See ``Namenode.delete``."""
        self._ask("DELETE", "DELETE", path, recursive="false")

    def list(self, path: str, /) -> list[HdfsStatus]:
        """See ``Namenode.list``."""
        found = self._ask("GET", "LISTSTATUS", path).json()["FileStatuses"]["FileStatus"]
        return [_status(entry["pathSuffix"], entry) for entry in found]

    def open(self, path: str, /) -> BinaryIO:
        """See ``Namenode.open``."""
        found = self.status(path)
        if found is None or found.is_directory:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return cast("BinaryIO", io.BufferedReader(_RawReader(self, path, found.size), buffer_size=1 << 20))

    def read(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start``; fewer are an error."""
        answer = self._ask_first("GET", "OPEN", path, offset=str(start), length=str(length))
        if "Location" in answer.headers:  # else it is HttpFS, which hands over the bytes itself
            answer = self._request("GET", self._datanode(answer, path), path)
        data: bytes = answer.content
        if len(data) != length:
            raise OSError(errno.EIO, f"{len(data)} of {length} bytes came", path)
        return data

    def _send(self, method: str, operation: str, path: str, data: Buffer, **arguments: str) -> None:
        location = self._datanode(self._ask_first(method, operation, path, **arguments), path)
        headers = {"content-type": "application/octet-stream"}
        self._request(method, location, path, data=bytes(data), headers=headers)

    def _ask(self, method: str, operation: str, path: str, **arguments: str) -> requests.Response:
        return self._request(method, self._at(path), path, params=self._arguments(operation, arguments))

    def _ask_first(self, method: str, operation: str, path: str, **arguments: str) -> requests.Response:
        params = self._arguments(operation, arguments)
        return self._request(method, self._at(path), path, params=params, allow_redirects=False)

    def _datanode(self, answer: requests.Response, path: str) -> str:
        """Where a namenode wants the bytes to be asked for or sent to; HttpFS names itself."""
        location = answer.headers.get("Location")
        if location is None:
            raise OSError(errno.EIO, "the namenode named no datanode", path)
        found = urlsplit(self._client._apply_proxy(location))  # noqa: SLF001 - what fsspec's calls do
        # Namenodes compose the letters of a path in the address that they give (é from e and accent),
        # which is the path of another file.
        return str(urlunsplit(found._replace(path=urlsplit(self._at(path)).path)))

    def _at(self, path: str) -> str:
        return f"{self._client.url}{quote(path)}"

    def _arguments(self, operation: str, arguments: Mapping[str, str]) -> dict[str, str]:
        return {**arguments, **self._client.pars, "op": operation}

    def _request(self, method: str, url: str, path: str, **arguments: Any) -> requests.Response:
        try:
            answer: requests.Response = self._client.session.request(
                method, url, timeout=_TIMEOUT, **arguments
            )
        except OSError as error:  # of requests, whose message holds the URL and in it the token
            raise OSError(errno.EIO, type(error).__name__, path) from None
        if answer.status_code >= 400:
            raise _refusal(answer, path)
        return answer


class WebWriter:
    """See ``filesink.storage.hdfs.namenode.HdfsWriter``. REST has no call for a sync."""

    def __init__(self, namenode: WebNamenode, path: str) -> None:
        self._namenode = namenode
        self._path = path
        self._buffer = bytearray()

    def write(self, data: Buffer, /) -> int:
        """See ``HdfsWriter.write``."""
        view = memoryview(data).cast("B")
        self._buffer += view
        while len(self._buffer) >= _CHUNK:
            self._namenode.append(self._path, self._buffer[:_CHUNK])
            del self._buffer[:_CHUNK]
        return view.nbytes

    def close(self) -> None:
        """See ``HdfsWriter.close``."""
        if self._buffer:
            self._namenode.append(self._path, self._buffer)
            self._buffer.clear()

    def abandon(self) -> None:
        """See ``HdfsWriter.abandon``; between two requests nothing is open."""
        self._buffer.clear()


class _RawReader(RangedFile):
    def __init__(self, namenode: WebNamenode, path: str, size: int) -> None:
        super().__init__(size)
        self._namenode = namenode
        self._path = path

    def _range(self, start: int, most: int) -> bytes:
        return self._namenode.read(self._path, start, most)


def _refusal(answer: requests.Response, path: str) -> OSError:
    with suppress(ValueError, KeyError, TypeError):  # not every proxy answers in JSON
        return hadoop_error(answer.json()["RemoteException"]["exception"], path)
    return OSError(errno.EIO, f"HTTP status {answer.status_code}", path)


def _status(name: str, found: Mapping[str, Any]) -> HdfsStatus:
    return HdfsStatus(
        name=name,
        size=int(found["length"]),
        mtime_ms=int(found["modificationTime"]),
        is_directory=found["type"] == "DIRECTORY",
    )


def _library() -> Any:
    try:
        from fsspec.implementations.webhdfs import WebHDFS
    except ImportError as error:
        raise DependencyError(
            "paths on webhdfs:// need requests; install it with: pip install 'filesink[hdfs]'",
            code="DEPENDENCY",
        ) from error
    return WebHDFS
