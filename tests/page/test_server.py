"""Pages over HTTP: what is answered, and all that is not."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from filesink.errors import StorageError
from filesink.page.server import Page, PageServer
from tests.cli.running import run
from tests.fakes import SettableClock
from tests.operations.broken_paths import whole

pytestmark = pytest.mark.filterwarnings("error")


class Served:
    """Two pages, one of which is broken, and how often the first was made."""

    def __init__(self) -> None:
        self.made = 0
        self.clock = SettableClock(1000)
        pages = [
            Page(name="/data/<b>", make=self.make, clock=self.clock, every_ms=5000),
            Page(name="/data/gone", make=self.fail, clock=self.clock, every_ms=5000),
        ]
        self.server = PageServer(pages, port=0)
        self.host = f"127.0.0.1:{self.server.server_port}"

    def make(self) -> str:
        self.made += 1
        return f"<!doctype html>page {self.made}"

    def fail(self) -> str:
        raise StorageError("the store <i>does not answer", code="X")

    def get(self, path="/0", *, method="GET", host=None):
        """Status, headers and text."""
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        connection.putrequest(method, path, skip_host=True)
        for one in [self.host] if host is None else host:
            connection.putheader("Host", one)
        connection.endheaders()
        answer = connection.getresponse()
        found = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        return found


@pytest.fixture
def served() -> Iterator[Served]:
    """A server of the test's own, stopped at its end."""
    found = Served()
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def test_a_page_is_served(served: Served) -> None:
    """With headers that let nothing run, frame or keep it, and that have it looked at again."""
    status, headers, text = served.get()
    assert (status, text) == (200, "<!doctype html>page 1")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert (headers["Cache-Control"], headers["Refresh"]) == ("no-store", "5")
    assert "Python" not in headers["Server"]


def test_the_list_has_the_names_as_text(served: Served) -> None:
    """Each is a link to its number."""
    status, _, text = served.get("/")
    assert status == 200
    assert '<a href="/0">/data/&lt;b&gt;</a>' in text


def test_it_listens_on_loopback_alone(served: Served) -> None:
    """Nobody else reaches it."""
    assert served.server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_refused(served: Served, method: str) -> None:
    """Before a page is looked up."""
    status, headers, _ = served.get(method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert served.made == 0


def test_head_has_no_body(served: Served) -> None:
    """The headers are those of GET."""
    assert served.get(method="HEAD")[::2] == (200, "")


@pytest.mark.parametrize(
    "host",
    [
        ["evil.example"],
        ["evil.example:80"],
        ["127.0.0.1"],
        ["127.0.0.1:1"],
        [],
        [""],
        ["localhost.evil.example"],
    ],
    ids=str,
)
def test_another_host_is_refused(served: Served, host: list[str]) -> None:
    """A stranger's page, whose name was made to lead here, learns nothing."""
    status, _, text = served.get(host=host)
    assert status == 421
    assert "/data" not in text
    assert served.made == 0


def test_two_hosts_are_refused(served: Served) -> None:
    """Which of them a proxy took is not known."""
    assert served.get(host=[served.host, "evil.example"])[0] == 421


def test_localhost_is_this_host(served: Served) -> None:
    """In any case of letters."""
    assert served.get(host=[f"LocalHost:{served.server.server_port}"])[0] == 200


@pytest.mark.parametrize(
    "path",
    ["/2", "/../../etc/passwd", "/0/..", "/0?x=/etc/passwd", "/%30", "/etc/passwd", "*", "/\u00e9"],
)
def test_only_numbers_are_pages(served: Served, path: str) -> None:
    """Whatever else is asked for is not there, and is not said again."""
    connection = socket.create_connection(("127.0.0.1", served.server.server_port), timeout=10)
    with connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {served.host}\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 404 " in head.splitlines()[0]
    assert b"passwd" not in body
    assert served.made == 0


def test_a_page_is_made_once_for_many(served: Served) -> None:
    """Until it is old; a clock that was set back makes it old, too."""
    assert {served.get()[2] for _ in range(3)} == {"<!doctype html>page 1"}
    served.clock.now += 5000
    assert served.get()[2] == "<!doctype html>page 2"
    served.clock.now = 0
    assert served.get()[2] == "<!doctype html>page 3"


def test_what_cannot_be_looked_at_is_told(served: Served) -> None:
    """As text; the next look may be better."""
    status, headers, text = served.get("/1")
    assert status == 503
    assert "the store &lt;i&gt;does not answer" in text
    assert headers["Refresh"] == "5"


def test_an_error_that_is_not_ours_is_told_too(served: Served) -> None:
    """By its type: nobody waits for an answer that never comes, and its text may be a secret."""

    def fail() -> str:
        raise RuntimeError("hunter2")

    page = Page(name="/data/gone", make=fail, clock=served.clock, every_ms=5000)
    served.server.pages["/2"] = page.now
    status, _, text = served.get("/2")
    assert (status, "RuntimeError" in text, "hunter2" in text) == (503, True, False)


def test_nonsense_ends_no_server(served: Served) -> None:
    """Bytes that are no request, and a client that hangs up."""
    for nonsense in (
        b"\x00\xff\r\n\r\n",
        b"GET /0 HTTP/9.9\r\n\r\n",
        b"GET",
        b"GET /0 HTTP/1.1\r\n" + b"a: b\r\n" * 999,
    ):
        with socket.create_connection(("127.0.0.1", served.server.server_port), timeout=10) as connection:
            connection.sendall(nonsense)
    assert served.get()[0] == 200


def test_a_port_that_is_taken(served: Served, tmp_path: Path) -> None:
    """One sentence."""
    whole(tmp_path / "base")
    ran = run("serve", tmp_path / "base", "--port", str(served.server.server_port))
    assert ran.code == 3
    assert "cannot be used" in ran.err


def test_a_path_that_is_no_sink(tmp_path: Path) -> None:
    """Is said at once, and nothing is served."""
    assert run("serve", tmp_path / "none").code == 2


@pytest.mark.slow
def test_the_command_serves_two_paths(tmp_path: Path) -> None:
    """As a user starts it; Ctrl-C ends it with 0."""
    whole(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    command = [
        sys.executable,
        "-m",
        "filesink",
        "serve",
        tmp_path / "one",
        tmp_path / "two",
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:  # noqa: S603 - our own
        try:
            url = json.loads(program.stdout.readline())["url"]
            connection = HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=60)
            connection.request("GET", "/1")
            answer = connection.getresponse()
            assert (answer.status, f"{tmp_path / 'two'}" in answer.read().decode()) == (200, True)
        finally:
            program.send_signal(2)
        assert program.wait(30) == 0
