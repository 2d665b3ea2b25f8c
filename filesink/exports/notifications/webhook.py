"""Tells an address of HTTP of each epoch, by a request for each."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from filesink.errors import ConfigError, DependencyError
from filesink.exports.notifications.cloud_events import CONTENT_TYPE, event_bytes
from filesink.exports.notifications.notification import Notification
from filesink.sink_directory.feed import FeedEntry
from filesink.sinks.asynchronous import Answer
from filesink.sinks.http.service import HttpService

if TYPE_CHECKING:
    from filesink.sinks.http.client import HttpClient

_TIMES: Final = 2  # as long as ``timeout`` may one request take, with all its pauses


@dataclass(frozen=True)
class WebhookNotification(Notification):
    """Sends an event of CloudEvents 1.0, as JSON, to an address; its id is also the idempotency key.

    Success is any answer of 2xx. No redirection is followed, and no more is read of an answer than 64 KiB.

    Args:
        service: ``"https://host/path"``; or an ``HttpService``, with headers, a token from the environment,
            a timeout or certificates of your own. Its ``body`` does not matter.
        name, after: see ``Notification``.

    Raises:
        ConfigError: as from ``HttpService``.
    """

    service: str | HttpService = field()

    def __post_init__(self) -> None:
        """Check what was given. An address may hold a key, and must not be shown."""
        object.__setattr__(self, "service", HttpService.at(self.service))
        super().__post_init__()

    def _receiver(self) -> tuple[str, str]:
        return "webhook", HttpService.at(self.service).shown

    def prepare(self) -> None:
        """See ``Notification.prepare``."""
        self.open().close()

    def open(self) -> Webhook:
        """See ``Notification.open``."""
        given = HttpService.at(self.service)
        return Webhook(replace(given, headers={"Content-Type": CONTENT_TYPE, **given.headers}))


class Webhook:
    """See ``Sender``."""

    def __init__(self, service: HttpService) -> None:
        self._service = service
        self._client = _client(service)

    def send(self, entry: FeedEntry) -> Answer:
        """See ``Sender.send``. A service that goes on answering, but never ends, is cut off."""
        client, is_cut = self._client, threading.Event()

        def cut() -> None:
            is_cut.set()
            client.cut()

        watch = threading.Timer(_TIMES * self._service.timeout_s(), cut)
        watch.daemon = True
        watch.start()
        try:
            return client.send(event_bytes(entry), entry.id)
        finally:
            watch.cancel()
            if is_cut.is_set():  # it sends nothing any more
                client.close()
                self._client = _client(self._service)

    def close(self) -> None:
        """See ``Sender.close``."""
        self._client.close()


def _client(service: HttpService) -> HttpClient:
    try:
        from filesink.sinks.http.client import HttpClient
    except ImportError as error:
        raise DependencyError(
            f"HTTP needs urllib3 ({error.name} is missing); pip install 'filesink[http]'", code="DEPENDENCY"
        ) from error
    try:
        return HttpClient(service, most=1)
    except ConfigError as error:
        if error.code != "NO_TOKEN":
            raise
    raise ConfigError(
        f"environment variable {service.token_env} holds no token; it must be set for the driver",
        code="NO_TOKEN",
    )
