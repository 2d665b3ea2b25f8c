"""Drivers that die, or whose broker does, at a chosen step of any kind; see ``tests.sinks.forks``."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from filesink import FilesinkError, KafkaCluster, StoreLedger
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ports import Ports, SerialRunner
from filesink.sinks.kafka.cluster import client
from filesink.sinks.kafka.tiers import KafkaTiers
from filesink.storage.local.store import LocalStore
from filesink.system import SystemClock, SystemIds
from tests.fakes import FakeJob, micro_batch
from tests.sinks.forks import serve
from tests.sinks.kafka.site import SCHEMA, rows

BATCHES = 2
IN_BATCH = 6
OF_PRODUCER = ("init_transactions", "begin_transaction", "produce", "flush", "commit_transaction")
OF_STORE = ("create", "sync", "verify", "put_if_absent", "open_input", "discard")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a driver does: the first ``batches`` of a stream, each in ``tasks`` tasks.

    Attributes:
        transaction_bytes: of ``KafkaCluster``; few make a transaction of each file.
        die_at: the step at which somebody dies; -1 for none.
        side: ``"before"`` or ``"after"`` it, or ``"during"``: after ``delay`` seconds, whatever goes on then.
        broker: process of the broker if that is who dies; 0 for the driver.
    """

    servers: str
    topic: str
    markers: str
    directory: str
    transaction_bytes: int = 1 << 20
    batches: int = BATCHES
    tasks: int = 2
    die_at: int = -1
    side: str = "before"
    delay: float = 0.0
    broker: int = 0


@dataclass
class Steps:
    """Counts steps that leave something behind: in the store, in the ledger, in Kafka."""

    run: Run
    count: int = 0

    def pass_by(self, side: str) -> None:
        """Die, or kill, if it is time."""
        if self.count == self.run.die_at and side == self.run.side:
            self._kill()
        if self.count == self.run.die_at and (side, self.run.side) == ("before", "during"):
            threading.Timer(self.run.delay, self._kill).start()
        if side == "after":
            self.count += 1

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.run.broker or os.getpid(), signal.SIGKILL)

    def counted(self, method: Any) -> Any:
        """``method``, each call a step."""

        @wraps(method)
        def counting(*args: Any, **kwargs: Any) -> Any:
            self.pass_by("before")
            try:
                return method(*args, **kwargs)
            finally:
                self.pass_by("after")

        return counting


def drive(run: Run) -> str:
    """One driver, from its start to its end."""
    steps = Steps(run)
    methods = {name: steps.counted(getattr(Producer, name)) for name in OF_PRODUCER}
    client.Producer = type("Counted", (Producer,), methods)  # type: ignore[misc]
    for name in OF_STORE:
        setattr(LocalStore, name, steps.counted(getattr(LocalStore, name)))
    try:
        run_stream(run)
    except FilesinkError as error:
        return f"failed {steps.count} {error}"
    return f"done {steps.count}"


def run_stream(run: Run) -> None:
    """Each batch in its turn, as a query that was started again does."""
    cluster = KafkaCluster(run.servers, marker_topic=run.markers, transaction_bytes=run.transaction_bytes)
    ledger = StoreLedger(Path(run.directory) / "ledger")
    sink = KafkaTiers(cluster=cluster, topic=run.topic, ledger=ledger, uid="u")
    sink.prepare(SCHEMA)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    driver = EpochLoop(sink, sink.open_ledger("uid-u"), ports=ports, options=EpochOptions())
    for batch in range(run.batches):
        ids = range(batch * IN_BATCH, (batch + 1) * IN_BATCH)
        tasks = [[rows(*ids[task :: run.tasks])] for task in range(run.tasks)]
        driver.run(micro_batch(batch), FakeJob(tasks, ports.clock, ports.ids, schema=SCHEMA))  # type: ignore[arg-type]


if __name__ == "__main__":
    serve(lambda order: drive(Run(**order)))
