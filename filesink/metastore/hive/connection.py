"""Connections to one of several Hive metastore servers, each for one call at a time.

Rules:
1. Opening a connection may be tried anywhere, any number of times: servers in their order, the last
   good one first, in rounds with growing pauses.
2. A question (``ask``) may be asked again; what changes something (``tell``) may not, by us: a reply
   that is lost says nothing, and the caller looks before it repeats.
3. After any failure of the transport the connection is dropped: a late reply must not be taken for
   that of the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from filesink.arguments import instance_of
from filesink.errors import DependencyError, MetastoreConflictError, MetastoreError
from filesink.metastore.hive.servers import Server, Servers
from filesink.metastore.service_errors import sentence
from filesink.ports import Clock

if TYPE_CHECKING:
    from types import ModuleType

R = TypeVar("R")

_ROUNDS = 3  # over all servers
_FIRST_PAUSE = 0.5  # seconds; doubled each time


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """Authentication by Kerberos (SASL, GSSAPI), with the ticket of the driver's user.

    ``service`` is the first part of the server's principal, as in ``hive/_HOST@REALM``. ``host`` is the
    second part, if it is not the host of the URI.
    """

    service: str = "hive"
    host: str | None = None

    def __post_init__(self) -> None:
        instance_of(self.service, str, name="service")
        if self.host is not None:
            instance_of(self.host, str, name="host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An open connection and the stubs that call over it."""

    server: Server
    transport: Any
    stubs: Any


class HiveConnections:
    """Calls of the Thrift service by any number of threads: each call has a connection to itself.

    Args:
        servers: whom to connect to.
        security: ``None`` for a metastore without authentication.
        timeout_ms: of connecting and of each answer.
        clock: waits between rounds.
    """

    def __init__(self, servers: Servers, *, security: Kerberos | None, timeout_ms: int, clock: Clock) -> None:
        self._new = partial(HiveConnection, servers, security=security, timeout_ms=timeout_ms, clock=clock)
        self._idle: list[HiveConnection] = []  # the one used last is used next
        self._lock = Lock()

    def ask(self, question: Callable[[Any], R]) -> R:
        """See ``HiveConnection.ask``."""
        return self._borrow(lambda connection: connection.ask(question))

    def tell(self, order: Callable[[Any], R]) -> R:
        """See ``HiveConnection.tell``."""
        return self._borrow(lambda connection: connection.tell(order))

    def close(self) -> None:
        """Drop the connections that nobody uses at the moment."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _borrow(self, call: Callable[[HiveConnection], R]) -> R:
        with self._lock:
            connection = self._idle.pop() if self._idle else self._new()
        try:
            return call(connection)
        finally:
            with self._lock:
                self._idle.append(connection)


class HiveConnection:
    """Calls of the Thrift service by one thread at a time, with failover. The arguments are those above."""

    def __init__(self, servers: Servers, *, security: Kerberos | None, timeout_ms: int, clock: Clock) -> None:
        self._servers = servers
        self._security = security
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._open: Client | None = None

    def ask(self, question: Callable[[Any], R]) -> R:
        """Call something that changes nothing; repeated elsewhere if the connection breaks.

        Raises:
            MetastoreError: ``METASTORE_DOWN``; no server answered. Errors of the service pass through.
            MetastoreConflictError: ``METASTORE_LOGIN``; the server or Kerberos refused the login.
        """
        pause = _FIRST_PAUSE
        attempts = _ROUNDS * len(self._servers)
        for attempt in range(1, attempts + 1):
            try:
                return self._call(question)
            except MetastoreConflictError:
                raise  # a login that one refuses, all do
            except MetastoreError:
                if attempt == attempts:
                    raise
            if attempt % len(self._servers) == 0:
                self._clock.sleep(pause)
                pause *= 2
        raise AssertionError("the last failure was raised")

    def tell(self, order: Callable[[Any], R]) -> R:
        """Call something that changes something; never repeated.

        Raises:
            MetastoreError: ``METASTORE_DOWN``, not done; ``METASTORE_UNKNOWN``, perhaps done.
        """
        self.ask(lambda _: None)  # a connection
        return self._call(order)

    def close(self) -> None:
        """Drop the connection."""
        if self._open is not None:
            self._open.transport.close()
            self._open = None

    def _call(self, call: Callable[[Any], R]) -> R:
        from thrift.protocol.TProtocol import TProtocolException
        from thrift.Thrift import TException
        from thrift.transport.TTransport import TTransportException

        client = self._client()
        try:
            return call(client.stubs)
        except (TTransportException, TProtocolException, OSError, EOFError) as error:
            self.close()
            self._servers.failed(client.server)
            raise MetastoreError(
                f"the connection to the metastore at {client.server} broke ({type(error).__name__}): "
                f"{sentence(str(error))}; it is not known whether the request was carried out",
                code="METASTORE_UNKNOWN",
            ) from error
        except TException:  # the service's own: an answer
            raise
        except BaseException:  # interrupted, by Ctrl-C for one: the answer is still to come
            self.close()
            raise

    def _client(self) -> Client:
        if self._open is None:
            self._open = self._connected(self._servers.first())
        return self._open

    def _connected(self, server: Server) -> Client:
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
            self._servers.failed(server)
            raise _not_connected(server, error) from error
        stubs = service.Client(TBinaryProtocolAccelerated(transport, fallback=True))
        return Client(server=server, transport=transport, stubs=stubs)


def _not_connected(server: Server, error: Exception) -> MetastoreError:
    from thrift.transport.TTransport import TTransportException

    text = sentence(str(error))
    if "SASL" in text or not isinstance(error, TTransportException | OSError | EOFError):
        return MetastoreConflictError(
            f"no login to the metastore at {server} ({type(error).__name__}): {text}. Get a ticket with "
            "kinit, and check Kerberos(service=…, host=…) against the server's principal",
            code="METASTORE_LOGIN",
        )
    return MetastoreError(
        f"the metastore at {server} cannot be reached ({type(error).__name__}): {text}. Is it running?",
        code="METASTORE_DOWN",
    )


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
