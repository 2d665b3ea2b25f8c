"""Sends requests with urllib3: each blocks its thread until there is an answer, or no hope of one.

Rules: urllib3 repeats nothing by itself and follows no redirection; what becomes of a request is said once,
as an ``Answer``. Whatever fails on the way may have arrived, and is to be sent again. Threads may share a
client.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from filesink.errors import ConfigError
from filesink.sinks.asynchronous import Again, Answer, Unusable
from filesink.sinks.http.connections import Connections
from filesink.sinks.http.service import Body, HttpAnswer, HttpService
from filesink.sinks.http.statuses import judged

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

_MOST_OF_A_BODY = 64 << 10
_CONTENT_TYPES = {
    Body.JSON: "application/json",
    Body.NDJSON: "application/x-ndjson",
    Body.ARRAY: "application/json",
}


class HttpClient:
    """Connections to one service.

    Args:
        service: the address.
        most: how many threads send at once.

    Raises:
        ConfigError: ``NO_TOKEN``; ``CA_FILE``.
    """

    def __init__(self, service: HttpService, *, most: int) -> None:
        self._service = service
        self._headers = _headers(service)
        self._connections = Connections()
        parts = urlsplit(service.url)
        self._target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
        tls = {"ssl_context": _trust(service.ca_file)} if service.url.startswith("https:") else {}
        self._pool = urllib3.connection_from_url(service.url, maxsize=most, block=True, **tls)
        self._pool.ConnectionCls = self._connections.of_kind(self._pool.ConnectionCls)

    def send(self, body: bytes, key: str) -> Answer:
        """Send one request and wait for what becomes of it. Raises nothing but what ``judge`` does."""
        headers = self._headers.copy()
        if self._service.key_header is not None:
            headers[self._service.key_header] = key
        try:
            answer = self._exchange(body, headers)
        except SSLError as error:
            if _is_distrusted(error):
                return Unusable(why="its certificate is not trusted; see ca_file")
            return Again(why=self._failed(error))
        except (HTTPError, OSError) as error:
            return Again(why=self._failed(error))
        own = None if self._service.judge is None else self._service.judge(answer)
        return judged(answer) if own is None else own

    def _failed(self, error: BaseException) -> str:
        parts = urlsplit(self._service.url)
        if any(isinstance(one, socket.gaierror) for one in _causes(error)):
            return f"the host '{parts.hostname}' has no address: its name is wrong, or DNS does not answer"
        return f"the connection to '{parts.netloc}' failed: {type(error).__name__}"

    def cut(self) -> None:
        """End what is in flight, at once: threads that wait for an answer have none. No more can be sent."""
        self._connections.cut()

    def close(self) -> None:
        """Close all connections; nothing may be in flight."""
        self._pool.close()

    def _exchange(self, body: bytes, headers: urllib3.HTTPHeaderDict) -> HttpAnswer:
        response = self._pool.request(
            self._service.method,
            self._target,
            body=body,
            headers=headers,
            redirect=False,
            retries=False,
            timeout=self._service.timeout_s(),
            preload_content=False,
        )
        return HttpAnswer(
            response.status,
            {name.lower(): value for name, value in response.headers.items()},
            _beginning(response),
        )


def _beginning(response: BaseHTTPResponse) -> bytes:
    """The first bytes of the body; the connection is used again if these were all."""
    try:
        data = response.read(_MOST_OF_A_BODY + 1)
        if len(data) > _MOST_OF_A_BODY:
            response.close()
    finally:
        response.release_conn()  # else nobody else would ever get it
    return data[:_MOST_OF_A_BODY]


def _headers(service: HttpService) -> urllib3.HTTPHeaderDict:
    """Of all requests; the user's type of content comes instead of ours."""
    found = urllib3.HTTPHeaderDict({"Content-Type": _CONTENT_TYPES[Body(service.body)]})
    for name, value in service.headers.items():
        found[name] = value
    if service.token_env is not None:
        found["Authorization"] = f"Bearer {_token(service.token_env)}"
    return found


def _token(name: str) -> str:
    token = os.environ.get(name, "").strip()
    if not token or not (token.isascii() and token.isprintable()):
        raise ConfigError(
            f"environment variable {name} holds no token. It must be set for the driver before the session "
            f"starts, and for the tasks; on a cluster by spark.executorEnv.{name}",
            code="NO_TOKEN",
        )
    return token


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # no such file, or no certificates in it
        raise ConfigError(
            f"ca_file '{ca_file}' cannot be used: {type(error).__name__}; it must hold certificates as PEM, "
            "at this path on every host",
            code="CA_FILE",
        ) from error


def _is_distrusted(error: BaseException) -> bool:
    """Whether a certificate is the reason, somewhere in what urllib3 has wrapped."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in _causes(error))


def _causes(error: BaseException) -> tuple[object, ...]:
    """The error, and what urllib3 has wrapped in it."""
    return error, error.__cause__, error.__context__, *error.args
