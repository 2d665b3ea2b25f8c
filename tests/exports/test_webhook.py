"""A service of HTTP that is told of epochs, and does not behave."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from filesink import ConfigError, DeliveryError, FileSink, FilesinkError, HttpService, ParquetWriterFactory
from filesink import WebhookNotification as Webhook
from filesink.exports.notifications.notification import Notification
from filesink.sinks.asynchronous import Again
from tests.exports.receivers import HurriedClock, Told, first_of_each, half_of_the_time
from tests.sinks.http.server import HangUp, HttpServer, Received, Reply, Silence, serving

TOKEN = "token-that-nobody-may-see"  # noqa: S105 - of this test
QUERY = "key-that-nobody-may-see"


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A service."""
    with serving() as found:
        yield found


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> HurriedClock:
    """That of notifications."""
    made = HurriedClock(now=1_700_000_000_000)
    monkeypatch.setattr(Notification, "clock", made)
    return made


@pytest.fixture
def place() -> Told:
    """A path in memory, with epochs."""
    made = Told()
    made.epochs(6)
    return made


def ids(requests: list[Received]) -> list[str]:
    """Of the events, in the order in which they came."""
    return [json.loads(request.body)["id"] for request in requests]


def told_until_done(place: Told, notification: Notification) -> None:
    """As a driver does it, whose receiver fails now and then."""
    newest = place.directory().version
    while notification.version(place.directory()) < newest:
        with suppress(DeliveryError):
            place.tell(notification)


def test_an_event_for_each_epoch(place: Told, server: HttpServer) -> None:
    """As structured JSON, with its id as the idempotency key and a token from the environment."""
    place.tell(Webhook(server.url))
    inventory = place.directory().inventory_id
    assert ids(server.taken) == [f"{inventory}/{version}" for version in range(1, 7)]
    assert [request.key for request in server.taken] == ids(server.taken)
    assert {request.headers["content-type"] for request in server.taken} == {"application/cloudevents+json"}
    assert server.connections == 1


def test_a_service_that_fails_half_of_the_time(place: Told, server: HttpServer) -> None:
    """With errors, by hanging up before or after it has taken the event: none missed, and in order."""
    place.epochs(54)
    fails = half_of_the_time(3)
    kinds = iter([Reply(500), HangUp(), Reply(503), Reply(429, {"Retry-After": "1"})] * 1000)
    server.answers = lambda _: next(kinds) if fails(None) else Reply()
    told_until_done(place, Webhook(server.url))
    inventory = place.directory().inventory_id
    whole = [f"{inventory}/{version}" for version in range(1, 61)]
    assert first_of_each(ids(server.received)) == whole
    assert ids(server.taken) == whole
    bodies = {(request.key, request.body) for request in server.received}
    assert len(bodies) == len(whole)


def test_an_answer_that_was_lost(place: Told, server: HttpServer) -> None:
    """The event comes again, under the same id."""
    lost = iter([Reply(200, body=b"x" * 100, cut=10)])
    server.answers = lambda _: next(lost, Reply())
    place.tell(Webhook(server.url))
    assert first_of_each(ids(server.received)) == first_of_each(ids(server.taken))
    assert len(first_of_each(ids(server.taken))) == 6


def test_a_service_that_never_answers(place: Told, server: HttpServer) -> None:
    """It is given up after a while, and nothing counts as told."""
    server.answers = lambda _: Silence()
    notification = Webhook(HttpService(server.url, timeout="50 ms"))
    with pytest.raises(DeliveryError) as caught:
        place.tell(notification)
    assert caught.value.code == "RETRIES"
    assert notification.version(place.directory()) == 0
    server.answers = lambda _: Reply()
    place.tell(notification)
    assert len(set(ids(server.taken))) == 6


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_not_followed(place: Told, server: HttpServer, status: int) -> None:
    """Whoever is named there hears nothing, neither the event nor the token."""
    with serving() as elsewhere:
        server.answers = lambda _: Reply(status, {"Location": elsewhere.url})
        with pytest.raises(DeliveryError) as caught:
            place.tell(Webhook(server.url))
        assert caught.value.code == "UNUSABLE"
        assert str(status) in caught.value.message
        assert elsewhere.connections == 0
    assert len(server.received) == 1


@pytest.mark.parametrize(("status", "code"), [(400, "REFUSED"), (404, "UNUSABLE"), (401, "UNUSABLE")])
def test_what_will_not_pass_is_not_repeated(place: Told, server: HttpServer, status: int, code: str) -> None:
    """And what the service says is not repeated in the error."""
    server.answers = lambda _: Reply(status, body=b"said-by-the-service")
    with pytest.raises(DeliveryError) as caught:
        place.tell(Webhook(server.url))
    assert caught.value.code == code
    assert "said-by-the-service" not in str(caught.value)
    assert len(server.received) == 1


@pytest.mark.parametrize("given", ["ok", Again(why="x", numbers=[1])])
def test_a_judge_without_sense(place: Told, server: HttpServer, given) -> None:
    """Nothing counts as told, and the error says whose answer it is."""
    notification = Webhook(HttpService(server.url, judge=lambda _: given))
    with pytest.raises(DeliveryError, match="judge of HttpService") as caught:
        place.tell(notification)
    assert caught.value.code == "ANSWER"
    assert notification.version(place.directory()) == 0


def test_a_huge_answer(place: Told, server: HttpServer) -> None:
    """Its status counts, and no more of it is read than a beginning."""
    server.answers = lambda _: Reply(200, body=b"x" * 20_000_000)
    place.tell(Webhook(server.url))
    assert len(ids(server.taken)) == 6


@contextmanager
def trickling() -> Iterator[str]:
    """A service whose answers never end; its address."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)

        def drip(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while not over.wait(0.02):
                    connection.sendall(b"x")

        def serve() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    connection, _ = listener.accept()
                    threading.Thread(target=drip, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            over.set()
            thread.join()


def test_an_answer_that_never_ends(place: Told) -> None:
    """No pause is long, and yet it is given up."""
    with trickling() as url, pytest.raises(DeliveryError) as caught:
        place.tell(Webhook(HttpService(url, timeout="100 ms")))
    assert caught.value.code == "RETRIES"


def test_no_secret_is_seen_anywhere(
    place: Told,
    server: HttpServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither a token nor a key in an address, in errors, our log, any ``repr``, or beside the path."""
    monkeypatch.setenv("HOOK_TOKEN", TOKEN)
    caplog.set_level(logging.DEBUG)
    service = HttpService(f"{server.url}?key={QUERY}", token_env="HOOK_TOKEN", headers={"X-Key": TOKEN})
    shown: list[Any] = []
    for answer in (
        Reply(500),
        Reply(401, body=TOKEN.encode()),
        HangUp(),
        Reply(302, {"Location": f"/{TOKEN}"}),
    ):
        server.answers = lambda _, answer=answer: answer
        with pytest.raises(DeliveryError) as caught:
            place.tell(Webhook(service))
        shown += [caught.value, caught.value.__cause__, caught.value.__context__]
    server.answers = lambda _: Reply()
    builder = FileSink.for_bulk_format("/tmp/never-written", ParquetWriterFactory())  # noqa: S108 - not written
    shown += [
        Webhook(service),
        Webhook(f"{server.url}?key={QUERY}"),
        builder.with_notification(Webhook(service)),
    ]
    place.tell(Webhook(service))
    assert {request.headers["authorization"] for request in server.received} == {f"Bearer {TOKEN}"}
    beside = [path for path in place.files.files if "_notifications" in path]
    seen = "".join(map(repr, shown)) + "".join(map(str, shown)) + "".join(beside)
    seen += "".join(str(place.files.files[path].content) for path in beside)
    seen += "".join(one.getMessage() for one in caplog.records if one.name.startswith("filesink"))
    assert TOKEN not in seen + caplog.text
    assert QUERY not in seen


def test_a_token_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said when the sink is built, before anything is written."""
    monkeypatch.delenv("HOOK_TOKEN", raising=False)
    builder = FileSink.for_bulk_format("/tmp/never-written", ParquetWriterFactory())  # noqa: S108 - not written
    with pytest.raises(ConfigError, match="HOOK_TOKEN") as caught:
        builder.with_notification(Webhook(HttpService("https://example.org", token_env="HOOK_TOKEN")))
    assert caught.value.code == "NO_TOKEN"
    with pytest.raises(ConfigError) as caught:
        Webhook("https://user:password@example.org/")
    assert caught.value.code == "CREDENTIALS"


def test_two_of_one_name_are_refused() -> None:
    """They would share what is noted."""
    builder = FileSink.for_bulk_format("/tmp/never-written", ParquetWriterFactory())  # noqa: S108 - not written
    hook = Webhook("https://example.org/")
    with pytest.raises(FilesinkError) as caught:
        builder.with_notification(hook).with_notification(hook)
    assert caught.value.code == "CONFLICT"
    builder.with_notification(hook).with_notification(Webhook("https://example.org/other"))
