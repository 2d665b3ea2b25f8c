"""``PostgresSink``: a table of PostgreSQL behind the doors of Spark.

How it is used:

    sink = PostgresSink("host=db dbname=shop user=loader", "public.orders", ledger="/data/orders-ledger")
    sink.write(df)                                                            # a batch
    sink.start(stream, checkpoint_location="/data/cp", available_now=True)    # a stream
"""

from __future__ import annotations

import os
from typing import Literal

from filesink.arguments import instance_of
from filesink.durations import Duration, parse_duration_ms
from filesink.ledger.identity import check_uid
from filesink.sinks.doors import SparkSink, engine_options
from filesink.sinks.postgres.committables import Committable
from filesink.sinks.postgres.settings import PostgresServer, PostgresTable
from filesink.sinks.postgres.tiers import PostgresTiers
from filesink.sinks.store_ledger import StoreLedger


class PostgresSink(SparkSink[None, Committable, None]):
    """Writes DataFrames into a table of PostgreSQL, each row exactly once, whatever crashes.

    Tasks COPY into tables of their own; when the epoch is decided, one transaction moves its rows and notes
    that they are there. Columns are matched by name.

    Args:
        server: a conninfo of libpq without a password, or a ``PostgresServer``.
        table: ``"schema.table"``, or a ``PostgresTable``.
        ledger: a directory in any store, or a ``StoreLedger``, of this sink alone; kept across restarts.
        uid: the sink's stable name; needed if a stream may get another checkpoint.
        on_new_query: as ``FileSinkBuilder.on_new_query``.

    Raises:
        ConfigError: an argument cannot be used.
        DependencyError: ``DEPENDENCY``; psycopg is not installed.
    """

    def __init__(
        self,
        server: str | PostgresServer,
        table: str | PostgresTable,
        *,
        ledger: str | os.PathLike[str] | StoreLedger,
        uid: str | None = None,
        on_new_query: Literal["refuse", "append"] = "refuse",
    ) -> None:
        chosen = PostgresTable.at(table)
        tiers = PostgresTiers(
            server=PostgresServer.at(server),
            table=instance_of(chosen, PostgresTable, name="table"),
            ledger=StoreLedger.at(ledger),
            uid=None if uid is None else check_uid(uid),
        )
        self._tiers = tiers
        super().__init__(tiers, options=engine_options(chosen.name, on_new_query=on_new_query))

    def sweep(self, older_than: Duration = "7 days") -> list[str]:
        """Remove what attempts that died have left behind; returns the names of what was removed.

        A stream does so by itself with its next epoch, if it gets that far. What is decided and not yet
        committed stays.

        Args:
            older_than: attempts that old count as dead; longer than any epoch takes that is at work, else
                that one fails. ``int`` is milliseconds.

        Raises:
            StorageError: the server does not answer, or refuses.
        """
        age = parse_duration_ms(older_than, name="older_than")
        codec = self._tiers.committable_codec
        ledgers = self._ledgers()
        streams = [ledger.sink_id for ledger in ledgers if not ledger.is_open]
        unfinished = [record for ledger in ledgers for record in ledger.history.unfinished()]
        decided = {one.name for record in unfinished for one in record.committables.decode(codec)}
        return self._tiers.sweeper().of_dead(age, streams=streams, decided=decided)
