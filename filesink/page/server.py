"""Pages over HTTP, for the machine itself.

Rules:
1. It listens on the loopback interface, and nowhere else.
2. GET and HEAD are answered, and nothing else. The address of a page is its number: what a request asks for
   is looked up among those, and reaches no store and no file system.
3. A request whose ``Host`` is not this server is refused: a page of a stranger, whose name leads here, could
   read what is answered (DNS rebinding).
4. A page is made at most every few seconds, however many ask: each is a listing of its path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final

from filesink.errors import FilesinkError
from filesink.page.document import POLICY, plain_page
from filesink.page.markup import tag
from filesink.ports import Clock

_HOST: Final = "127.0.0.1"
_HEADERS: Final = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


@dataclass(eq=False, kw_only=True)
class Page:
    """A page that is made anew when somebody asks and it is old.

    Attributes:
        name: the path that it is about.
        make: makes it; what it raises is told on the page, by its own message if it is one of ours.
        clock: tells its age.
        every_ms: how old it may get.
    """

    name: str
    make: Callable[[], str]
    clock: Clock
    every_ms: int
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _made: tuple[int, HTTPStatus, str] | None = None

    def now(self) -> tuple[HTTPStatus, str]:
        """Status and text. Whoever comes while it is made waits for it."""
        with self._lock:
            now_ms = self.clock.now_ms()
            if self._made is None or not 0 <= now_ms - self._made[0] < self.every_ms:
                self._made = (now_ms, *self._anew())
            return self._made[1:]

    def _anew(self) -> tuple[HTTPStatus, str]:
        try:
            return HTTPStatus.OK, self.make()
        except FilesinkError as error:  # told; the next look may be better
            return self._failed(error.message)
        except Exception as error:  # noqa: BLE001 - told by its type: its text may be anybody's
            return self._failed(f"{type(error).__name__} while this was looked at; try fsck")

    def _failed(self, why: str) -> tuple[HTTPStatus, str]:
        return HTTPStatus.SERVICE_UNAVAILABLE, plain_page(self.name, tag("p", why, class_="bad"))


class PageServer(ThreadingHTTPServer):
    """Serves ``pages`` at ``/0``, ``/1`` …, and a list of them, or the only one, at ``/``.

    Args:
        pages: at least one.
        port: 0 for any that is free; ``url`` tells which.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True

    def __init__(self, pages: Sequence[Page], *, port: int) -> None:
        super().__init__((_HOST, port), _Handler)
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in (_HOST, "localhost"))
        self.pages: dict[str, Callable[[], tuple[HTTPStatus, str]]] = {
            f"/{number}": page.now for number, page in enumerate(pages)
        }
        links = [tag("p", tag("a", page.name, href=f"/{number}")) for number, page in enumerate(pages)]
        index = HTTPStatus.OK, plain_page("filesink", *links)
        self.pages["/"] = pages[0].now if len(pages) == 1 else lambda: index
        self.refresh = max(1, min(page.every_ms for page in pages) // 1000)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{_HOST}:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are nobody's concern, and a traceback may hold what nobody should read."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: PageServer
    timeout: ClassVar[float] = 10  # seconds that a client may take for its request
    server_version = "filesink"
    sys_version = ""
    protocol_version = "HTTP/1.0"

    def parse_request(self) -> bool:
        """See ``BaseHTTPRequestHandler``; refuses before anything is looked up."""
        if not super().parse_request():
            return False
        if self.command not in {"GET", "HEAD"}:
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, plain_page("Only GET"), allow="GET, HEAD")
            return False
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, plain_page("Not this host"))
            return False
        return True

    def do_GET(self) -> None:
        """A page, or that there is none."""
        page = self.server.pages.get(self.path)
        if page is None:
            self._answer(HTTPStatus.NOT_FOUND, plain_page("No such page"))
        else:
            self._answer(*page())

    do_HEAD = do_GET  # noqa: N815 - the name that the library calls

    def _answer(self, status: HTTPStatus, page: str, *, allow: str | None = None) -> None:
        body = page.encode()
        self.send_response(status)
        for name, value in _HEADERS:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if allow is not None:
            self.send_header("Allow", allow)
        if status in {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}:
            self.send_header("Refresh", str(self.server.refresh))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the library
        """Says nothing: a request may hold anything."""
