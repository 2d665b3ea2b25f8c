"""The client, with a real server: whatever happens on the way has one outcome."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from filesink import ConfigError, HttpService
from filesink.sinks.asynchronous import Again, Delivered, Refused, Unusable
from filesink.sinks.http.client import HttpClient
from tests.sinks.http.server import HangUp, HttpServer, Reply, Silence, serving
from tests.spark.outside import eventually


def sent(server: HttpServer | str, **options):
    """The outcome of one request of its own client."""
    url = server if isinstance(server, str) else server.url
    client = HttpClient(HttpService(url, **options), most=1)
    try:
        return client.send(b'{"a":1}\n', "uid-s/0/0/0")
    finally:
        client.close()


def test_a_request_looks_as_it_should(server: HttpServer, monkeypatch) -> None:
    """Path and query, method, headers of the user's, token and key."""
    monkeypatch.setenv("EVENTS_TOKEN", " abc.def \n")
    url = f"{server.url}?shard=1"
    assert sent(url, method="PUT", headers={"X-From": "tests"}, token_env="EVENTS_TOKEN") == Delivered()
    (found,) = server.received
    assert (found.method, found.path, found.body) == ("PUT", "/events?shard=1", b'{"a":1}\n')
    assert found.headers["x-from"] == "tests"
    assert found.headers["authorization"] == "Bearer abc.def"
    assert found.headers["content-type"] == "application/x-ndjson"
    assert found.key == "uid-s/0/0/0"


def test_a_header_in_other_letters_is_the_same_header(server: HttpServer, monkeypatch) -> None:
    """The user's type of content counts, and a key that takes the place of ours: each is sent once."""
    monkeypatch.setenv("EVENTS_TOKEN", "abc")
    headers = {"content-type": "application/json", "IDEMPOTENCY-KEY": "mine"}
    assert sent(server.url, headers=headers, token_env="EVENTS_TOKEN", key_header=None) == Delivered()
    (found,) = server.received
    names = [name.lower() for name in found.names]
    assert len(names) == len(set(names))
    assert found.headers["content-type"] == "application/json"
    assert (found.key, found.headers["authorization"]) == ("mine", "Bearer abc")


def test_a_key_may_have_another_name_or_none(server: HttpServer) -> None:
    """As the service wants it."""
    sent(server, key_header="X-Request-Id")
    sent(server, key_header=None)
    first, second = server.received
    assert first.headers["x-request-id"] == "uid-s/0/0/0"
    assert "idempotency-key" not in first.headers.keys() | second.headers.keys()


def test_connections_are_used_again(server: HttpServer) -> None:
    """Unless the rest of an answer would have to be read first."""
    client = HttpClient(HttpService(server.url), most=1)
    for _ in range(5):
        assert client.send(b"{}", "k") == Delivered()
    assert server.connections == 1
    server.answers = lambda _: Reply(body=bytes(1 << 20))
    for _ in range(2):
        assert client.send(b"{}", "k") == Delivered()
    assert server.connections == 2
    client.close()


@pytest.mark.parametrize(
    "reply", [HangUp(), Silence(), Reply(body=bytes(100), cut=50)], ids=["hangs up", "silent", "cut"]
)
def test_an_answer_that_is_none_may_have_been_success(server: HttpServer, reply) -> None:
    """So the request goes again; nothing is repeated behind our back."""
    server.answers = lambda _: reply
    found = sent(server, timeout="300 ms")
    assert isinstance(found, Again)
    assert found.why.startswith("the connection to '127.0.0.1:")
    assert len(server.received) == 1


def test_a_service_that_is_away_may_come_back() -> None:
    """Nobody listens there, or its name is not known."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert isinstance(sent(f"http://127.0.0.1:{taken.getsockname()[1]}/"), Again)
    found = sent("http://nowhere.invalid/?key=hush")
    assert isinstance(found, Again)
    assert found.why.startswith("the host 'nowhere.invalid' has no address")


def test_a_redirection_is_not_followed(server: HttpServer, monkeypatch) -> None:
    """A token is for the address that it was given for."""
    monkeypatch.setenv("EVENTS_TOKEN", "abc")
    with serving() as other:
        server.answers = lambda _: Reply(307, {"Location": other.url})
        assert sent(server, token_env="EVENTS_TOKEN") == Unusable(why="HTTP 307 Temporary Redirect")
        assert other.received == []


def test_the_users_own_word_counts_more_than_the_status(server: HttpServer) -> None:
    """It sees status, headers and body; where it says nothing, the status does."""
    server.answers = lambda request: Reply(200, {"X-Failed": "1"} if b"2" in request.body else {}, b"no")

    def judge(answer):
        return Refused(why=f"{answer.status} {answer.body!r}") if "x-failed" in answer.headers else None

    client = HttpClient(HttpService(server.url, judge=judge), most=1)
    assert client.send(b"1", "k") == Delivered()
    assert client.send(b"2", "k") == Refused(why="200 b'no'")
    client.close()


def test_what_is_in_flight_is_cut(server: HttpServer) -> None:
    """Threads that wait for an answer come back at once, and later ones do not even try."""
    server.answers = lambda _: Silence()
    client = HttpClient(HttpService(server.url, timeout="1 h"), most=20)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(client.send(b"{}", "k"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(server.received) == 20)
    client.cut()
    for thread in threads:
        thread.join(60)
    assert [type(one) for one in found] == [Again] * 20
    assert isinstance(client.send(b"{}", "k"), Again)
    assert len(server.received) == 20
    client.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_waits_for_a_connection_is_cut(scheme: str) -> None:
    """The service takes no connection, or takes it and says nothing of TLS."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(0)
        client = HttpClient(
            HttpService(f"{scheme}://127.0.0.1:{mute.getsockname()[1]}/", timeout="1 h"), most=8
        )
        found: list[object] = []
        threads = [threading.Thread(target=lambda: found.append(client.send(b"{}", "k"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        eventually(lambda: len(client._connections._open) == 8)
        client.cut()
        for thread in threads:
            thread.join(60)
    assert [type(one) for one in found] == [Again] * 8
    assert client._connections._open == set()
    client.close()


@pytest.mark.parametrize("value", [None, "", " \n", "a\nb", "schlüssel"])
def test_a_token_that_is_not_there_is_told_by_its_name(server: HttpServer, monkeypatch, value) -> None:
    """Before anything is sent; a value that cannot be a token is not shown."""
    monkeypatch.delenv("EVENTS_TOKEN", raising=False)
    if value is not None:
        monkeypatch.setenv("EVENTS_TOKEN", value)
    with pytest.raises(ConfigError, match="variable EVENTS_TOKEN holds no token") as raised:
        sent(server, token_env="EVENTS_TOKEN")
    assert raised.value.code == "NO_TOKEN"
    assert not value or not value.strip() or value.strip() not in str(raised.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """A certificate of our own for 127.0.0.1, and its key, in one file."""
    directory = tmp_path_factory.mktemp("tls")
    both = directory / "both.pem"
    subject = ["-subj", "/CN=filesink-tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - of the system
    both.write_bytes((directory / "key.pem").read_bytes() + (directory / "cert.pem").read_bytes())
    return both


def test_a_certificate_is_looked_at(certificate: Path) -> None:
    """One that is not trusted ends it at once, since nothing may be sent; with ``ca_file`` it is trusted."""

    def wrapped(server) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return "https"

    with serving(wrapped) as server:
        found = sent(server)
        assert isinstance(found, Unusable)
        assert "not trusted" in found.why
        assert server.received == []
        assert sent(server, ca_file=str(certificate)) == Delivered()


def test_certificates_that_are_none_are_refused(tmp_path: Path) -> None:
    """When a sink starts, not with its first record."""
    (tmp_path / "empty.pem").touch()
    for name in ("nowhere.pem", "empty.pem"):
        with pytest.raises(ConfigError) as raised:
            sent("https://127.0.0.1/", ca_file=str(tmp_path / name))
        assert raised.value.code == "CA_FILE"
