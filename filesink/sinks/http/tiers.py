"""The sink as an engine drives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from filesink.api import WriterContext
from filesink.errors import DependencyError
from filesink.parts import file_format
from filesink.parts.file_format import RowFormat
from filesink.sinks.asynchronous import AsyncSink, AsyncSinkWriter, Entry, Sending
from filesink.sinks.http.service import Body, HttpService
from formats.encoders import Encoder

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT = RowFormat(Encoder.json_lines())


@dataclass(frozen=True, kw_only=True)
class HttpTiers(AsyncSink):
    """Records as requests to ``service``."""

    service: HttpService

    def prepare(self, schema: pa.Schema) -> None:
        """See ``Sink.prepare``; no request is made.

        Raises:
            ConfigError: ``NO_TOKEN``, ``CA_FILE``.
            DependencyError: ``DEPENDENCY``; urllib3 is not installed.
            SchemaError: JSON cannot hold a column.
        """
        try:
            from filesink.sinks.http.client import HttpClient
        except ImportError as error:
            raise DependencyError(
                f"HTTP needs urllib3 ({error.name} is missing); pip install 'filesink[http]'",
                code="DEPENDENCY",
            ) from error
        HttpClient(self.service, most=1).close()
        file_format.check_schema(_FORMAT, schema)
        file_format.check_crossing(_FORMAT, schema)
        super().prepare(schema)

    def open_writer(
        self, context: WriterContext, *, sending: Sending, unsent: Sequence[Entry]
    ) -> AsyncSinkWriter:
        """See ``AsyncSink.open_writer``."""
        from filesink.sinks.http.writer import HttpWriter

        if Body(self.service.body) is Body.JSON:
            sending = replace(sending, records=1)
        return HttpWriter(self.service, context, sending=sending, unsent=unsent)
