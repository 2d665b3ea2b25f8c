"""Drivers that announce to a real Hive metastore, and are killed while they do.

A process of its own, on a real disk, dies by SIGKILL before its n-th call of either, or while the
server works on one. Whoever is started next goes on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from examples.hive_server import HiveServer
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.ledger.identity import batch_write
from filesink.ledger.record import BatchWrite, MicroBatch
from filesink.metastore.api import Column, Table, TableName
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.ports import Ports, SerialRunner
from filesink.save_mode import SaveMode
from filesink.storage.local.store import LocalStore
from filesink.system import SystemClock, SystemIds
from property_tests.simulation.workload import SCHEMA, Shape, plan_of, rows_in
from property_tests.test_kills import BATCHES, Job, KillingFs, in_a_process, left_over, sweep, visible_rows
from tests.metastore.faulty import FaultyMetastore
from tests.metastore.test_hive import HiveSite

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = int(os.environ.get("FILESINK_KILLS", "3"))  # of each test; hundreds are for a night
_IN_FLIGHT = 0.02  # seconds; a call to the server takes some milliseconds


class DailyJob(Job):
    """A partition for each batch, and one that every batch adds to."""

    def bucket_of(self, row: str) -> str:
        return f"p={row[:2]}" if int(row[-1]) % 2 else "p=all"


@dataclass
class Driven:
    """A table, and the drivers that write into it one after the other."""

    server: HiveServer
    base: Path
    moments: Random
    killed: int = 0
    _countdown: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self.base.mkdir()
        self.name = TableName(database="default", table=self.base.name)
        metastore = HiveMetastore(self.server.uri)
        metastore.create_table(
            Table(
                name=self.name,
                columns=(Column(name="row", type="string"),),
                partition_keys=(Column(name="p", type="string"),),
                location=f"file:{self.base}/out",
                format=HIVE_FORMATS["textfile"],
            )
        )
        metastore.close()

    def stream(self, batches: list[list[str]], *, deadline: int = 0) -> None:
        """The query from its checkpoint on, in a process that may not come to its end."""

        def body() -> None:
            loop = self._loop("uid-s", deadline)
            for number, rows in enumerate(batches):
                done = self.base / f"commit-{number}"
                if not done.exists():
                    cause = MicroBatch(query_id="q", batch_id=number, fingerprint=str(number))
                    loop.run(cause, DailyJob(rows, f"run-{os.getpid()}"))
                    done.touch()
            loop.finish()

        self._run(body)

    def overwrite(
        self, txn_id: str, rows: list[str], *, deadline: int = 0, mode: SaveMode = SaveMode.OVERWRITE
    ) -> None:
        """A batch job that replaces files."""
        sink_id, cause = batch_write(mode, "s", txn_id, SystemIds())
        assert isinstance(cause, BatchWrite)
        self._run(lambda: self._loop(sink_id, deadline).run(cause, DailyJob(rows, "")))

    def partitions(self) -> dict[str, tuple[str, dict[str, str]]]:
        """What the server says, by directory."""
        found = HiveSite(server=self.server).partitions(self.name)
        return {f"p={values[0]}": partition for values, partition in found.items()}

    def files(self) -> dict[str, list[Path]]:
        """What readers see, by directory."""
        found: dict[str, list[Path]] = {}
        for path in sorted((self.base / "out").glob("p=*/part-*")):
            found.setdefault(path.parent.name, []).append(path)
        return found

    def check(self, *, emptied: frozenset[str] = frozenset()) -> None:
        """Every directory with files is a partition once, where it is and with its numbers."""
        files, partitions = self.files(), self.partitions()
        assert partitions.keys() == files.keys() | emptied
        for bucket, (location, parameters) in partitions.items():
            there = files.get(bucket, [])
            rows = sum(len(rows_in(path.read_bytes(), path.name)) for path in there)
            assert location == f"file:{self.base}/out/{bucket}"
            assert parameters["numFiles"] == str(len(there))
            assert parameters["totalSize"] == str(sum(path.stat().st_size for path in there))
            assert parameters["numRows"] in {str(rows), "-1"}
        sweep(self.base / "out")  # what a write left that was never decided bears a tag that nobody else has
        assert left_over(self.base / "out") == []

    def _run(self, body) -> None:
        self.killed += in_a_process(body) == signal.SIGKILL

    def _loop(self, sink_id: str, deadline: int) -> EpochLoop:
        self._countdown[0] = deadline
        metastore = FaultyMetastore(HiveMetastore(self.server.uri), self._die)
        policy = MetastorePolicy(str(self.name), metastore)
        base_path = str(self.base / "out")
        sink = FileTiers(
            address=lambda: LocalStore(
                KillingFs(base_path, self._countdown), runner=SerialRunner(), ids=SystemIds()
            ),
            plan=plan_of(Shape(rolls=True)),
            uid="s",
            publishing=Publishing(commit=PartitionCommit(policies=[policy]), base_path=base_path),
        )
        sink.prepare(SCHEMA)
        ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
        return EpochLoop(sink, sink.open_ledger(sink_id), ports=ports, options=EpochOptions())

    def _die(self, operation: str, table: str) -> None:
        """Before a call to the metastore, or soon after it was sent."""
        del operation, table
        self._countdown[0] -= 1
        if self._countdown[0] == 0:
            if self.moments.random() < 0.5:
                os.kill(os.getpid(), signal.SIGKILL)
            delay = self.moments.random() * _IN_FLIGHT
            threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()


@pytest.fixture
def histories(hive: HiveServer, tmp_path: Path) -> Iterator[Driven]:
    """Tables without end, each with moments of its own; the seed is shown if an assertion fails."""
    seed = time.time_ns()
    print(f"seed {seed}")  # noqa: T201
    moments = Random(seed)  # noqa: S311 - moments, not secrets
    return (
        Driven(server=hive, base=tmp_path / f"k{seed}_{number}", moments=moments) for number in range(10_000)
    )


def test_a_killed_stream_announces_every_partition(histories: Iterator[Driven]) -> None:
    """No partition before its files at any time; in the end each once, where it is, with its numbers."""
    killed = 0
    for driven in histories:
        driven.stream(BATCHES[:3], deadline=driven.moments.randint(40, 160))
        assert driven.partitions().keys() <= driven.files().keys()
        driven.stream(BATCHES, deadline=driven.moments.choice((0, 30)))
        assert driven.partitions().keys() <= driven.files().keys()
        driven.stream(BATCHES)
        assert visible_rows(driven.base / "out") == Counter(row for rows in BATCHES for row in rows)
        driven.check()
        killed += driven.killed
        if killed >= KILLS:
            break


def test_a_killed_overwrite_tells_of_what_it_has_emptied(histories: Iterator[Driven]) -> None:
    """Repeated, it has replaced everything, and the partitions that are empty say so."""
    killed = 0
    for driven in histories:
        driven.stream(BATCHES[:1])
        driven.overwrite("new", BATCHES[1], deadline=driven.moments.randint(30, 90))
        seen = visible_rows(driven.base / "out")
        assert seen >= Counter(BATCHES[0]) or seen >= Counter(BATCHES[1])
        driven.overwrite("new", BATCHES[1])
        driven.overwrite("newer", BATCHES[2])  # one more: garbage lives until a good epoch
        assert visible_rows(driven.base / "out") == Counter(BATCHES[2])
        driven.check(emptied=frozenset({"p=00", "p=01"}))
        killed += driven.killed
        if killed >= KILLS:
            break


def test_a_killed_overwrite_of_partitions_tells_of_those_it_has_replaced(
    histories: Iterator[Driven],
) -> None:
    """Repeated, the partition that got data has the new rows and their numbers; others are untouched."""
    killed = 0
    for driven in histories:
        driven.stream(BATCHES[:1])
        mode = SaveMode.OVERWRITE_PARTITIONS
        driven.overwrite("new", BATCHES[1], deadline=driven.moments.randint(30, 90), mode=mode)
        driven.overwrite("new", BATCHES[1], mode=mode)
        driven.overwrite("newer", BATCHES[2], mode=mode)  # one more: garbage lives until a good epoch
        kept = [row for rows in BATCHES[:2] for row in rows if int(row[-1]) % 2]
        assert visible_rows(driven.base / "out") == Counter([*kept, *BATCHES[2]])
        driven.check()
        killed += driven.killed
        if killed >= KILLS:
            break
