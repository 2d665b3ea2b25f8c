"""Records of a partition as requests of HTTP; a thread for each that is in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from filesink.api import WriterContext
from filesink.sinks.asynchronous import Answer, AsyncSinkWriter, Entry, Request, Sending, Unusable
from filesink.sinks.http.client import HttpClient
from filesink.sinks.http.service import Body, HttpService
from formats.encoders import Encoder

if TYPE_CHECKING:
    import pyarrow as pa

_RECORDS = Encoder.json_lines()


class HttpWriter(AsyncSinkWriter):
    """See ``AsyncSinkWriter``.

    Args:
        service: the address.
        context: of the writer.
        sending: the limits.
        unsent: entries that earlier epochs have left.
    """

    def __init__(
        self, service: HttpService, context: WriterContext, *, sending: Sending, unsent: Sequence[Entry]
    ) -> None:
        super().__init__(context, sending=sending, unsent=unsent)
        self._body = Body(service.body)
        self._client = HttpClient(service, most=sending.in_flight)
        self._threads = ThreadPoolExecutor(sending.in_flight, thread_name_prefix="filesink-http")

    def payloads(self, batch: pa.RecordBatch) -> Iterable[bytes]:
        """See ``AsyncSinkWriter.payloads``: each record as an object of JSON."""
        return bytes(_RECORDS.encode(batch)).splitlines()

    def submit(self, request: Request, answer: Callable[[Answer], None]) -> None:
        """See ``AsyncSinkWriter.submit``."""
        body = body_of(self._body, [entry.payload for entry in request.entries])
        self._threads.submit(lambda: answer(self._outcome(body, request.key)))

    def _outcome(self, body: bytes, key: str) -> Answer:
        try:
            return self._client.send(body, key)
        except Exception as error:  # noqa: BLE001 - of the user's own ``judge``; in no thread may it be lost
            return Unusable(why=f"judge has failed: {type(error).__name__}: {error}")

    def close(self) -> None:
        """See ``SinkWriter.close``; no thread and no connection is left."""
        self._client.cut()
        self._threads.shutdown(cancel_futures=True)
        self._client.close()


def body_of(body: Body, objects: Sequence[bytes]) -> bytes:
    """Objects of JSON, as a request has them."""
    match body:
        case Body.JSON:
            return objects[0]
        case Body.NDJSON:
            return b"\n".join([*objects, b""])
        case Body.ARRAY:
            return b"[" + b",".join(objects) + b"]"
