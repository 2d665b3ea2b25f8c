"""One connection to one of several Hive metastore servers.

Rules:
1. Opening a connection may be tried anywhere, any number of times: servers in their order, the last
   good one first, in rounds with growing pauses.
2. A question (``ask``) may be asked again; what changes something (``tell``) may not, by us: a reply
   that is lost says nothing, and the caller looks before it repeats.
3. After any failure of the transport the connection is dropped: a late reply must not be taken for
   that of the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.errors import ConfigError, DependencyError, MetastoreError
from filesink.ports import Clock

if TYPE_CHECKING:
    from types import ModuleType

R = TypeVar("R")

_ROUNDS = 3  # over all servers
_FIRST_PAUSE = 0.5  # seconds; doubled each time
_DEFAULT_PORT = 9083


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """Authentication by Kerberos (SASL, GSSAPI); the ticket is that of the driver's user.

    ``service`` is the first part of the server's principal, as in ``hive/_HOST@REALM``; ``host`` its
    second part where that is not the host of the URI.
    """

    service: str = "hive"
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """Where a metastore listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_uris(uris: str) -> tuple[Server, ...]:
    """The servers of ``"thrift://host:9083,thrift://other"``.

    Raises:
        ConfigError: ``METASTORE_URI``.
    """
    servers = []
    for text in (part.strip() for part in uris.split(",")):
        scheme, separator, address = text.partition("://")
        host, _, port = (
            address.rstrip("/").rpartition(":") if ":" in address else (address.rstrip("/"), "", "")
        )
        if scheme != "thrift" or not separator or not host.strip("[]") or "@" in host or "/" in host:
            raise _bad_uri()
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise _bad_uri()
        servers.append(Server(host.strip("[]"), int(port or _DEFAULT_PORT)))
    return tuple(servers)


def _bad_uri() -> ConfigError:
    return ConfigError(
        "a metastore is given as 'thrift://host:9083', several of them with commas between, without user or "
        "password",
        code="METASTORE_URI",
    )


class HiveConnection:
    """Calls of the Thrift service, with failover.

    Args:
        servers: in the order of preference.
        security: ``None`` for a metastore without authentication.
        timeout_ms: of connecting and of each answer.
        clock: waits between rounds.
    """

    def __init__(
        self, servers: Sequence[Server], *, security: Kerberos | None, timeout_ms: int, clock: Clock
    ) -> None:
        self._servers = list(servers)
        self._security = security
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._open: tuple[Any, Any] | None = None  # transport and client
        self._lock = RLock()  # several sinks may share a metastore

    def ask(self, question: Callable[[Any], R]) -> R:
        """Call something that changes nothing; repeated elsewhere if the connection breaks.

        Raises:
            MetastoreError: ``METASTORE_DOWN``; no server answered. Errors of the service pass through.
        """
        pause = _FIRST_PAUSE
        attempts = _ROUNDS * len(self._servers)
        for attempt in range(1, attempts + 1):
            try:
                with self._lock:
                    return self._call(question)
            except MetastoreError:
                if attempt == attempts:
                    raise
                self._next_server()
            if attempt % len(self._servers) == 0:
                self._clock.sleep(pause)
                pause *= 2
        raise AssertionError("the last failure was raised")

    def tell(self, order: Callable[[Any], R]) -> R:
        """Call something that changes something; never repeated.

        Raises:
            MetastoreError: ``METASTORE_DOWN``, not done; ``METASTORE_UNKNOWN``, perhaps done.
        """
        with self._lock:
            self.ask(lambda _: None)  # a connection
            return self._call(order)

    def close(self) -> None:
        """Drop the connection."""
        with self._lock:
            if self._open is not None:
                self._open[0].close()
                self._open = None

    def _next_server(self) -> None:
        with self._lock:
            self.close()
            self._servers.append(self._servers.pop(0))

    def _call(self, call: Callable[[Any], R]) -> R:
        from thrift.protocol.TProtocol import TProtocolException
        from thrift.transport.TTransport import TTransportException

        client = self._client()
        try:
            return call(client)
        except (TTransportException, TProtocolException, OSError, EOFError) as error:
            server = self._servers[0]
            self.close()
            raise MetastoreError(
                f"the metastore at {server} broke off ({type(error).__name__}); what it was asked may have "
                "been done or not",
                code="METASTORE_UNKNOWN",
            ) from error

    def _client(self) -> Any:
        if self._open is None:
            self._open = self._connected(self._servers[0])
        return self._open[1]

    def _connected(self, server: Server) -> tuple[Any, Any]:
        service = load_service()
        from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
        from thrift.transport import TSocket, TTransport

        socket = TSocket.TSocket(server.host, server.port)
        socket.setTimeout(self._timeout_ms)
        transport = (
            TTransport.TBufferedTransport(socket)
            if self._security is None
            else _secured(socket, server, self._security)
        )
        try:
            transport.open()
        except Exception as error:  # Kerberos has errors of its own; connecting changes nothing
            transport.close()
            raise MetastoreError(
                f"the metastore at {server} cannot be reached ({type(error).__name__}); is it running?",
                code="METASTORE_DOWN",
            ) from error
        return transport, service.Client(TBinaryProtocolAccelerated(transport, fallback=True))


def _secured(socket: Any, server: Server, security: Kerberos) -> Any:
    try:
        import kerberos  # noqa: F401 - pure-sasl is silent about its absence until it is too late
        from thrift.transport.TTransport import TSaslClientTransport

        return TSaslClientTransport(socket, host=security.host or server.host, service=security.service)
    except ImportError as error:
        raise DependencyError(
            "a metastore with Kerberos needs further packages: pip install 'filesink[hive-kerberos]'",
            code="HIVE_KERBEROS",
        ) from error


def load_service() -> ModuleType:
    """The generated client of Hive's Thrift service.

    Raises:
        DependencyError: ``HIVE``; it is not installed.
    """
    try:
        from pymetastore.hive_metastore import ThriftHiveMetastore
    except ImportError as error:
        raise DependencyError(
            "a Hive metastore needs a further package: pip install 'filesink[hive]'", code="HIVE"
        ) from error
    service: ModuleType = ThriftHiveMetastore
    return service
