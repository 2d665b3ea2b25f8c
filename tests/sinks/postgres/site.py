"""A table of the tests, the sinks that write to it, and what an observer of their own sees."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from filesink import PostgresServer, PostgresTable, StoreLedger
from filesink.api import Metrics, WriterContext
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ledger.identity import append_sink_id
from filesink.ledger.record import BatchWrite
from filesink.ports import Ports, SerialRunner
from filesink.sinks.postgres.committables import Committable, prefix_of
from filesink.sinks.postgres.tiers import PostgresTiers
from tests.fakes import CountingIds, FakeJob, SettableClock, micro_batch
from tests.sinks.postgres.server import TestServer

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
DDL = "id bigint, name text"


def rows(*ids: int, name: str = "n") -> pa.RecordBatch:
    """Rows with these ids."""
    return pa.RecordBatch.from_pydict({"id": list(ids), "name": [f"{name}{one}" for one in ids]}, SCHEMA)


@dataclass
class Ids(CountingIds):
    """Ids that differ from those of every other test, and of every other process."""

    def uuid(self) -> str:
        return str(uuid.uuid4())


@dataclass
class Site:
    """A schema of one test.

    Attributes:
        options: of ``PostgresTable``.
    """

    server: TestServer
    directory: Path
    schema: str = field(default_factory=lambda: f"t_{uuid.uuid4().hex[:12]}")
    ddl: str = DDL
    table: str = "goods"
    uid: str | None = "u"
    options: dict[str, Any] = field(default_factory=dict)
    conninfo: str = ""

    def __post_init__(self) -> None:
        self.clock, self.ids = SettableClock(), Ids()
        self.conninfo = self.conninfo or self.server.conninfo
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            if self.ddl:
                connection.execute(f"CREATE TABLE {self.schema}.{self.table} ({self.ddl})")

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of the observer's own."""
        return psycopg.connect(self.server.conninfo, autocommit=True)

    def do(self, statement: str) -> list[Any]:
        """The rows of a statement; ``{t}`` is the table and ``{s}`` the schema."""
        with self.connect() as connection:
            found = connection.execute(statement.format(t=f"{self.schema}.{self.table}", s=self.schema))
            return found.fetchall() if found.description else []

    def ids_there(self) -> list[int]:
        """The ids in the table, sorted; twice if they are there twice."""
        return sorted(one for (one,) in self.do("SELECT id FROM {t}"))

    def multiset(self) -> Counter[Any]:
        """All rows of the table."""
        return Counter(self.do("SELECT * FROM {t}"))

    def leftovers(self) -> list[str]:
        """Tables of attempts, and prepared transactions of them."""
        tables = self.do("SELECT tablename FROM pg_tables WHERE schemaname = '{s}'")
        prefix = prefix_of(self.tiers().target).rstrip("b")
        in_doubt = self.do(f"SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, '{prefix}')")  # noqa: S608
        known = {self.table, "filesink_epochs"}
        return [name for (name,) in tables if name not in known] + [gid for (gid,) in in_doubt]

    def tiers(self, **options: Any) -> PostgresTiers:
        """The sink."""
        return PostgresTiers(
            server=PostgresServer(self.conninfo),
            table=PostgresTable(f"{self.schema}.{self.table}", **(self.options | options)),
            ledger=StoreLedger(self.directory / "ledger"),
            uid=self.uid,
            clock=self.clock,
        )

    def driver(self, sink_id: str | None = None, **options: Any) -> EpochLoop[None, Committable, None]:
        """A driver that has just started."""
        tiers = self.tiers(**options)
        ports = Ports(clock=self.clock, ids=self.ids, runner=SerialRunner())
        return EpochLoop(
            tiers, tiers.open_ledger(sink_id or f"uid-{self.uid}"), ports=ports, options=EpochOptions()
        )

    def job(self, *partitions: pa.RecordBatch | Iterable[pa.RecordBatch], **options: Any) -> FakeJob:
        """A job with these partitions."""
        lists = [[one] if isinstance(one, pa.RecordBatch) else one for one in partitions]
        schema = next((one.schema for one in partitions if isinstance(one, pa.RecordBatch)), SCHEMA)
        return FakeJob(lists, self.clock, self.ids, schema=schema, **options)

    def run(self, batch_id: int, *partitions: pa.RecordBatch, **options: Any) -> None:
        """One micro-batch by a driver that has just started."""
        self.tiers(**options).prepare(partitions[0].schema if partitions else SCHEMA)
        self.driver(**options).run(micro_batch(batch_id), self.job(*partitions))

    def write(self, *partitions: pa.RecordBatch, **options: Any) -> None:
        """One batch write."""
        self.tiers(**options).prepare(partitions[0].schema)
        cause = BatchWrite(writer=f"batch-{self.ids.uuid()}")
        self.driver(append_sink_id(self.uid), **options).run(cause, self.job(*partitions))

    def context(self, epoch: int = 0, subtask: int = 0) -> WriterContext:
        """The context of one attempt."""
        return WriterContext(
            sink_id=f"uid-{self.uid}", epoch=epoch, subtask_index=subtask, number_of_parallel_subtasks=None,
            attempt=0, time_zone="UTC", clock=self.clock, ids=self.ids, metrics=Metrics(),
        )  # fmt: skip

    def staged(self, *batches: pa.RecordBatch, epoch: int = 0, **options: Any) -> list[Committable]:
        """What tasks report that have written a batch each."""
        tiers = self.tiers(**options)
        tiers.prepare(batches[0].schema)
        found: list[Committable] = []
        for subtask, batch in enumerate(batches):
            context = self.context(epoch, subtask)
            writer = tiers.create_writer(context)
            writer.write(batch, context)
            found += writer.prepare_commit(epoch)
            writer.close()
        return found

    def beside(self, **changes: Any) -> Site:
        """Another table of the same server."""
        return replace(self, schema=f"t_{uuid.uuid4().hex[:12]}", **changes)


def commit(site: Site, committables: Sequence[Committable]) -> list[Committable]:
    """What a new committer leaves."""
    return site.tiers().create_committer().commit(committables)
