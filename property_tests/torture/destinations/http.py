"""``HttpSink``: what a service has taken down, and under which keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from filesink import HttpSink, Sending
from filesink.api import Sink
from filesink.sinks.http.client import HttpClient
from property_tests.torture.destination import Delivery, Destination, Place, Promise
from property_tests.torture.steps import Steps
from tests.sinks.http.mortal import Mortal, mortal

_KINDS: dict[str, dict[str, Any]] = {"waits": {}, "keeps": {"at_commit": "keep"}}


class HttpRequests(Destination):
    """Requests to a service that is busy now and then, and hangs up.

    A row's key follows from its place in its task, so the tasks of a batch are always the same.
    """

    kinds = tuple(_KINDS)
    promise: ClassVar[Promise] = Promise.ONE_KEY
    tasks = (2,)

    @contextmanager
    def serving(self) -> Iterator[Mortal]:
        """See ``Destination.serving``."""
        with mortal() as service:
            yield service

    def place(self, kind: str, directory: Path, server: Mortal) -> Place:
        """See ``Destination.place``: an address of its own."""
        del kind
        return {"url": f"{server.url}{directory.parent.name}/{directory.name}", "taken": str(server.taken)}

    def arrived(self, place: Place) -> list[Delivery]:
        """See ``Destination.arrived``: in the service's own file."""
        path = place["url"].partition("//")[2].partition("/")[2]
        requests = map(json.loads, Path(place["taken"]).read_text().splitlines())
        return [Delivery(row, key) for to, key, rows in requests if to == f"/{path}" for row in rows]

    def sink(self, place: Place) -> Sink[Any, Any, Any]:
        """See ``Destination.sink``."""
        sending = Sending(records=3, in_flight=2, **_KINDS[place["kind"]])
        return HttpSink(place["url"], ledger=f"{place['directory']}/ledger", sending=sending, uid="u")._sink

    def watch(self, steps: Steps) -> None:
        """See ``Destination.watch``."""
        super().watch(steps)
        steps.count(HttpClient, "_exchange")
