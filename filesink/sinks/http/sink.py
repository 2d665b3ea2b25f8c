"""``HttpSink``: a service behind the doors of Spark.

How it is used:

    service = HttpService("https://example.org/events", token_env="EVENTS_TOKEN")
    sink = HttpSink(service, ledger="/data/events-ledger")
    sink.write(df)                                                            # a batch
    sink.start(stream, checkpoint_location="/data/cp", available_now=True)    # a stream
"""

from __future__ import annotations

import os
from typing import Literal

from filesink.arguments import instance_of
from filesink.ledger.identity import check_uid
from filesink.sinks.asynchronous import Entry, Sending
from filesink.sinks.doors import SparkSink, engine_options
from filesink.sinks.http.service import HttpService
from filesink.sinks.http.tiers import HttpTiers
from filesink.sinks.store_ledger import StoreLedger


class HttpSink(SparkSink[Entry, Entry, None]):
    """Sends DataFrames to a service as JSON, each record at least once, whatever crashes.

    Tasks send while they read; an epoch is decided when the service has taken all of it, or, with
    ``Sending(at_commit="keep")``, when the rest is in the ledger. A decided epoch is not sent again. Every
    request has a key, under which it comes again if it does.

    Args:
        service: an address, or an ``HttpService``.
        ledger: a directory in any store, or a ``StoreLedger``, of this sink alone; kept across restarts.
        sending: how many entries go together, and how many requests at once; for each task.
        uid: the sink's stable name; needed if a stream may get another checkpoint.
        on_new_query: as ``FileSinkBuilder.on_new_query``.

    Raises:
        ConfigError: an argument cannot be used.
    """

    def __init__(
        self,
        service: str | HttpService,
        *,
        ledger: str | os.PathLike[str] | StoreLedger,
        sending: Sending | None = None,
        uid: str | None = None,
        on_new_query: Literal["refuse", "append"] = "refuse",
    ) -> None:
        chosen = HttpService.at(service)
        tiers = HttpTiers(
            service=chosen,
            ledger=StoreLedger.at(ledger),
            sending=instance_of(Sending() if sending is None else sending, Sending, name="sending"),
            uid=None if uid is None else check_uid(uid),
        )
        super().__init__(tiers, options=engine_options(chosen.shown, on_new_query=on_new_query))
