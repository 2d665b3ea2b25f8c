"""What is not S3's: broken connections, and answers of somebody between. Each is an error of ours."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from filesink.errors import CommitStateUnknown, StorageError
from filesink.storage.objects.api import UNAVAILABLE, Condition, CopyRange
from filesink.storage.open import open_store
from filesink.storage.s3.client import S3Objects, connect, options_of
from filesink.storage.staged import UploadedPart

x509 = pytest.importorskip("cryptography.x509", reason="certificates of the tests' own need cryptography")

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
OBJECT = HEAD + b'ETag: "e"\r\nLast-Modified: Fri, 02 Jan 2026 00:00:00 GMT\r\nContent-Length: 100\r\n\r\n'
PAGE = b"<html><body>please log in</body></html>"
LOGIN = HEAD + b"Content-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(PAGE) + PAGE
EMPTY = HEAD + b"Content-Length: 0\r\n\r\n"
NO_XML = HEAD + b"Content-Type: application/xml\r\nContent-Length: 12\r\n\r\n<a><b></a>\0\xff"
ODD = HEAD + b"ETag: e\r\nLast-Modified: someday\r\nContent-Length: none\r\n\r\n"
CALLS: dict[str, Callable[[S3Objects], object]] = {
    "head": lambda objects: objects.head("k"),
    "get": lambda objects: objects.get("k", start=0, end=100),
    "put": lambda objects: objects.put("k", b"1", token="t", condition=Condition.IF_ABSENT),
    "delete": lambda objects: objects.delete("k"),
    "list_objects": lambda objects: objects.list_objects("a/"),
    "list_uploads": lambda objects: objects.list_uploads("a/"),
    "create_upload": lambda objects: objects.create_upload("k", token="t"),
    "upload_part": lambda objects: objects.upload_part("k", "u", number=1, data=b"1"),
    "copy_part": lambda objects: objects.copy_part(
        "k", "u", number=1, source=CopyRange(key="s", etag="e", start=0, end=1)
    ),
    "list_parts": lambda objects: objects.list_parts("k", "u"),
    "complete": lambda objects: objects.complete(
        "k", "u", parts=[UploadedPart(number=1, etag="e", size=1)], condition=Condition.IF_ABSENT
    ),
    "abort": lambda objects: objects.abort("k", "u"),
}
#: What an answer without a word of S3 can be taken for: nothing was to be told.
_WORDLESS = {"delete", "abort", "copy_part"}


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port of which each connection is handed to ``answer``, which ends it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return  # closed: the test is over
                with connection, suppress(OSError):
                    connection.settimeout(10)
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def says(data: bytes) -> Callable[[socket.socket], None]:
    """Answers each request with ``data``, whatever it was."""

    def answer(connection: socket.socket) -> None:
        _take_request(connection)
        connection.sendall(data)

    return answer


def _take_request(connection: socket.socket) -> None:
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(65536)
    head, _, body = request.partition(b"\r\n\r\n")
    if b"100-continue" in head:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    left = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while left > 0:
        left -= len(connection.recv(65536))


def objects_at(port: int, scheme: str = "http") -> S3Objects:
    """A client that asks once."""
    return connect("bucket", options_of(options_at(port, scheme)))


def options_at(port: int, scheme: str = "http") -> dict[str, object]:
    """Storage options of a client that asks once."""
    return {
        "key": "k",
        "secret": "s",
        "endpoint_url": f"{scheme}://127.0.0.1:{port}",
        "client_kwargs": {"region_name": "us-east-1", "verify": False},
        "config_kwargs": {"s3": {"addressing_style": "path"}, "retries": {"total_max_attempts": 1}},
    }


@pytest.mark.parametrize(
    "data",
    [b"", b"SSH-2.0-OpenSSH\r\n", NO_XML, ODD, OBJECT + b"0123456789"],
    ids=["hangs up", "no HTTP", "no XML", "odd headers", "half a body"],
)
def test_an_answer_that_is_broken_is_an_error_of_ours(data: bytes) -> None:
    """Never one of the client's or of the libraries below it; and it may be tried again."""
    with answering(says(data)) as port:
        for operation, call in CALLS.items():
            found = None
            try:
                call(objects_at(port))
            except StorageError as error:
                found = error
            if found is None:  # some of these answers hold all that this call asks for
                assert data.startswith(b"HTTP"), operation
            else:
                assert (found.code, found.is_permanent) == (UNAVAILABLE, False), operation


@pytest.mark.parametrize("data", [LOGIN, EMPTY], ids=["a proxy's page", "nothing"])
def test_a_success_of_somebody_else_is_none(data: bytes) -> None:
    """A page to log in is no empty listing, and says of no object that it was made."""
    with answering(says(data)) as port:
        for operation in sorted(set(CALLS) - _WORDLESS - {"get"}):
            with pytest.raises(StorageError) as raised:
                CALLS[operation](objects_at(port))
            assert raised.value.code == UNAVAILABLE, operation
        got = CALLS["get"](objects_at(port))
        assert isinstance(got, bytes)
        assert len(got) < 100  # than was asked for, which the store compares


def test_no_record_is_made_by_a_page_to_log_in() -> None:
    """What stands there cannot be looked at either, so nobody knows."""
    with answering(says(LOGIN)) as port, pytest.raises(CommitStateUnknown):
        open_store("s3://bucket/a", options_at(port)).put_if_absent("r", b"1")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate that nobody else knows."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start.replace(year=2120))
    made = builder.sign(key, hashes.SHA256())
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none) + made.public_bytes(pem))
    return path


@pytest.mark.parametrize("damage", [b"this is no record of TLS", b""], ids=["damaged", "cut"])
@pytest.mark.parametrize("operation", ["get", "list_objects"])
@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_an_encrypted_body_that_breaks_is_an_error_of_ours(
    certificate: Path, operation: str, damage: bytes
) -> None:
    """The client does not translate what goes wrong in TLS once the headers have been read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def answer(connection: socket.socket) -> None:
        # By hand, so that the connection below the encryption stays ours.
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)

        def done(step: Callable[[], object]) -> object:
            while True:
                try:
                    result = step()
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    incoming.write(connection.recv(65536))
                else:
                    connection.sendall(outgoing.read())
                    return result

        done(tls.do_handshake)
        done(lambda: tls.read(65536))
        done(lambda: tls.write(OBJECT + b"0123456789"))
        connection.sendall(damage)

    with answering(answer) as port, pytest.raises(StorageError) as raised:
        CALLS[operation](objects_at(port, "https"))
    assert raised.value.code == UNAVAILABLE
