"""Where Hive metastores listen, and which of several is tried first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from filesink.errors import ConfigError

_DEFAULT_PORT = 9083


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


class Servers:
    """Servers in the order in which they are tried, the last good one first; shared by all connections.

    Args:
        servers: at least one, in the order of preference.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        self._order = list(servers)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._order)

    def first(self) -> Server:
        """The one to try."""
        with self._lock:
            return self._order[0]

    def failed(self, server: Server) -> None:
        """Try the others before this one; unless somebody else has said so meanwhile."""
        with self._lock:
            if self._order[0] == server:
                self._order.append(self._order.pop(0))
