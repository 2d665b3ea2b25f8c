"""Connections of urllib3 that another thread may end, at any moment from their first packet on.

Rules: a socket becomes known when its connection has begun, never before, so that whoever ends it then has an
effect. What is known is a second handle of it, since TLS takes the first one away. Names are looked up
before that: nobody can end a name server that does not answer.
"""

from __future__ import annotations

import errno
import selectors
import socket
from contextlib import suppress
from typing import Any

_BEGUN = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK})
_DONE = frozenset({0})


class Connections:
    """Those of one client, to be ended all at once."""

    def __init__(self) -> None:
        self._open: set[socket.socket] = set()
        self._is_cut = False

    def of_kind(self, kind: Any) -> Any:
        """A class of urllib3's connections whose instances are known here."""
        return type(kind.__name__, (_Known, kind), {"connections": self})

    def add(self, handle: socket.socket) -> None:
        """Know a connection that has begun.

        Raises:
            ConnectionAbortedError: all are to be ended.
        """
        self._open.add(handle)
        if self._is_cut:
            raise ConnectionAbortedError

    def forget(self, handle: socket.socket) -> None:
        """Close the handle of a connection that has come to its end."""
        self._open.discard(handle)
        handle.close()

    def cut(self) -> None:
        """End all of them; there will be no others."""
        self._is_cut = True
        for handle in list(self._open):
            with suppress(OSError):  # closed meanwhile, by its thread or the service
                handle.shutdown(socket.SHUT_RDWR)


class _Known:
    """Goes before a class of urllib3's."""

    connections: Connections
    host: str
    port: int
    timeout: float
    socket_options: Any
    _handle: socket.socket | None = None

    def _new_conn(self) -> socket.socket:
        """The hook of urllib3; it tries the addresses of a host one after the other."""
        failure = OSError("the host has no address")
        for family, *_, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            found = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._connect(found, address)
            except OSError as error:
                found.close()
                failure = error
            else:
                return found
        raise failure

    def _connect(self, found: socket.socket, address: Any) -> None:
        for option in self.socket_options or ():
            found.setsockopt(*option)
        found.settimeout(0)
        _check(found.connect_ex(address), _BEGUN)
        self._forget()
        self._handle = found.dup()
        self.connections.add(self._handle)
        _await(found, self.timeout)

    def _forget(self) -> None:
        if self._handle is not None:
            self.connections.forget(self._handle)
            self._handle = None

    def close(self) -> None:
        """See ``urllib3``."""
        self._forget()
        super().close()  # type: ignore[misc]


def _await(found: socket.socket, timeout: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(found, selectors.EVENT_WRITE)
        if not selector.select(timeout):
            raise TimeoutError("no connection in time")
    _check(found.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), _DONE)
    found.settimeout(timeout)


def _check(code: int, fine: frozenset[int]) -> None:
    if code not in fine:
        raise ConnectionError(errno.errorcode.get(code))  # no code of its own: urllib3 passes over some
