"""Erasure and retention beside a stream, all of them processes that get SIGKILL, and a reader by versions.

``python -m property_tests.killed_operations BASE KILLS`` ends with the number of kills and looks. Rows of one
customer are erased again and again, directories of one old day dropped; all other rows must be there once.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import filesink
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.errors import ConcurrentDriverError, StorageError
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.record import MicroBatch
from filesink.naming import OutputFileConfig
from filesink.operations.erasing.condition import parse
from filesink.operations.erasing.erase import Erase
from filesink.operations.maintenance import Lost, Maintenance
from filesink.operations.replacing.retain import Retain
from filesink.operations.replacing.retention import Retention
from filesink.parts.file_format import BulkFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.ports import Losers, Ports, SerialRunner, Task
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock, SystemIds
from formats.parquet.writer import ParquetWriterFactory

SCHEMA = pa.schema([("day", pa.string()), ("value", pa.string())]).insert(1, pa.field("customer", pa.int32()))
OLD, NEW = "2020-01-01", "2090-01-01"
ERASED = 3
WHERE = f"customer = {ERASED}"
KEPT = Retention(by="partition time", extractor="$day", max_age="30 days")


def rows(batch: int) -> list[tuple[str, int, str]]:
    """Of a micro-batch: five customers on an old day and on a new one."""
    return [(day, customer, f"{batch} {day} {customer}") for day in (OLD, NEW) for customer in range(5)]


def stays(row: tuple[str, int, str]) -> bool:
    """Whether neither operation is for this row."""
    return row[0] == NEW and row[1] != ERASED


@dataclass(frozen=True, slots=True)
class Batch:
    """The input of one epoch; implements ``filesink.ports.WriteJob``."""

    number: int
    run_id: str = "run"
    time_zone: str = "UTC"
    offsets: str = ""
    schema: pa.Schema = SCHEMA

    def write(self, task: Task) -> list[bytes]:
        """See ``WriteJob.write``."""
        table = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows(self.number)]
        return [task(0, 0, [pa.RecordBatch.from_pylist(table, schema=SCHEMA)])]

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``."""
        return len(rows(self.number))

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``."""
        return Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True


def tiers(base: str) -> FileTiers:
    """The sink of all of them."""
    plan = Plan(
        format=BulkFormat(ParquetWriterFactory()),
        assigner=BucketAssigner.partition_bucket_assigner("day"),
        policy=RollingPolicy.on_checkpoint_rolling_policy(),
        names=OutputFileConfig(),
        check_interval_ms=60_000,
    )
    return FileTiers(address=StoreAddress(base_path=base), plan=plan, uid="u")


def ports() -> Ports:
    """Of a process."""
    return Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())


def stream(base: str, done: Any, times: int) -> None:
    """Micro-batches after the one that is done."""
    sink = tiers(base)
    sink.prepare(SCHEMA)
    ledger = sink.open_ledger("uid-u")
    with closing(EpochLoop(sink, ledger, ports=ports(), options=EpochOptions())) as loop:
        for _ in range(times):
            batch = done.value + 1
            loop.run(MicroBatch(query_id="q", batch_id=batch, fingerprint=f"{batch}"), Batch(batch))
            done.value = batch
            time.sleep(0.02)


def erase(base: str, _done: Any = None, times: int = 1000) -> None:
    """Erase again and again."""
    for _ in range(times):
        _tried(lambda: Erase(tiers=tiers(base), condition=parse(WHERE), base_path=base).run(ports()))


def retain(base: str, _done: Any = None, times: int = 1000) -> None:
    """Drop the old day again and again."""
    for _ in range(times):
        _tried(lambda: Retain(tiers=tiers(base), retention=KEPT, base_path=base).run(ports()))


def _tried(call: Any) -> None:
    with suppress(ConcurrentDriverError):  # the other operation came in between
        call()


def look(base: str, done: int) -> bool:
    """A reader by versions: what stays of the batches that were done is there, once; false if too slow."""
    try:
        table = filesink.open(base).snapshot().dataset(on_other_schema="union").to_table()
    except StorageError as error:  # it was replaced while it was read, and has no grace
        if error.code != "SNAPSHOT_GONE":
            raise
        return False
    found = Counter(table["value"].to_pylist())
    assert not found or max(found.values()) == 1, "a row is there twice"
    missing = [
        row[2] for batch in range(done + 1) for row in rows(batch) if stays(row) and row[2] not in found
    ]
    assert not missing, f"{len(missing)} rows are not there, such as {missing[0]!r}"
    return True


def trial(base: str, kills: int, seed: int = 0) -> int:
    """Kill so many processes; how often the reader looked."""
    processes, random = get_context("forkserver"), Random(seed)
    processes.set_forkserver_preload([__name__])
    done = processes.Value("q", -1)
    alive: dict[Any, Any] = {}
    killed = looks = 0
    stream(base, done, 1)
    while killed < kills:
        for function in (stream, erase, retain):
            if function not in alive or not alive[function].is_alive():
                alive[function] = processes.Process(target=function, args=(base, done, 1000), daemon=True)
                alive[function].start()
        time.sleep(random.random() * 0.4)
        looks += look(base, done.value)
        victim = alive[random.choice([stream, erase, retain])]
        assert victim.exitcode is None, "an operation has failed by itself"
        victim.kill()
        victim.join()
        killed += 1
    for process in alive.values():
        process.kill()
        process.join()
    _peace(base, done)
    return looks


def _peace(base: str, done: Any) -> None:
    Maintenance(tiers(base), clock=SystemClock(), ids=SystemIds()).recover(Lost.RAISE, None)
    stream(base, done, 2)
    retain(base, times=1)
    outcome = Erase(tiers=tiers(base), condition=parse(WHERE), base_path=base).run(ports())
    assert outcome.is_clean, outcome.left
    expected = Counter(row[2] for batch in range(done.value + 1) for row in rows(batch) if stays(row))
    assert look(base, done.value)
    by_version = filesink.open(base).snapshot().dataset(on_other_schema="union").to_table()
    assert Counter(by_version["value"].to_pylist()) == expected
    files = [path for path in Path(base).rglob("*") if path.is_file() and "_filesink" not in path.parts]
    assert [path for path in files if path.name[0] in "._"] == [], "something hidden is left"
    listed = Counter(value for path in files for value in pq.ParquetFile(path).read()["value"].to_pylist())
    assert listed == expected
    report = filesink.fsck(base, depth="deep")
    assert report.is_good, [(finding.code, finding.path) for finding in report.findings]


if __name__ == "__main__":
    print(f"{sys.argv[2]} kills, {trial(sys.argv[1], int(sys.argv[2]))} looks: nothing lost, nothing twice")
