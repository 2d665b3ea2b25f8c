"""What the driver needs at scale: 100,000 files in one epoch, and one epoch after the other.

The real epoch loop, ledger, stages and committer run without Spark, on a bucket in memory that counts
requests, and on this machine's disk. Results of tasks are made beforehand, as they come from Spark;
that part is not measured. ``docs/scale.md`` is written from what this prints.

    files     one epoch of so many files: seconds and peak memory of the driver, requests, bytes of its record
    disk      the same on the local disk
    threads   files where a request takes 20 ms: one at a time, and as many as the store does
    client    processor time of a request of the real client, against a server on this machine
    epochs    so many epochs of one file: milliseconds, requests and memory, early and late
    price     requests for a terabyte; with prices per thousand, what they cost
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the server is that of the tests

from counted_objects import CountedObjects
from filesink import BucketAssigner, FileSink
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.commit.task import TaskResult
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.record import EMPTY, MicroBatch, Section
from filesink.naming import HiddenName, join
from filesink.parts.committables import PendingFile
from filesink.ports import Losers, Ports, SerialRunner
from filesink.storage.api import Store
from filesink.storage.open import open_store
from filesink.storage.s3.options import S3Options
from filesink.storage.s3.store import S3Store
from filesink.storage.staged import HiddenFile
from filesink.system import SystemClock, SystemIds, ThreadRunner
from formats import ParquetWriterFactory
from paired import keep, seconds
from tests.servers import rclone

BUCKETS = 1000  # directories that the files of one epoch lie in
TASK_FILES = 500  # of one task
MIB, TERABYTE = 1 << 20, 10**12
ROUND_TRIP = 0.02  # seconds
EPOCH_WRITES = 3.1  # of the ledger; mean over many epochs
SCHEMA = pa.schema([("row", pa.string())])


def main() -> None:
    """Each question in a process of its own, so that memory is that of one."""
    arguments = _arguments()
    if arguments.only:
        QUESTIONS[arguments.only](arguments)
        return
    for name in QUESTIONS:
        subprocess.run([sys.executable, __file__, "--only", name, *sys.argv[1:]], check=True)


def files(arguments: argparse.Namespace) -> None:
    """One epoch of many uploads, in a bucket that answers at once."""
    objects = CountedObjects()
    _one_epoch(f"{arguments.files:,} files in one epoch, S3", store_of(objects), arguments.files, objects)


def disk(arguments: argparse.Namespace) -> None:
    """One epoch of many files, on the local disk."""
    with tempfile.TemporaryDirectory() as base:
        store = open_store(base, {})
        store.prepare()
        _one_epoch(f"{arguments.files:,} files in one epoch, local disk", store, arguments.files, base)


def threads(arguments: argparse.Namespace) -> None:
    """What publishing several at a time gives."""
    del arguments
    taken = {}
    for at_a_time, count in {1: 200, 8: 2_000, 32: 5_000}.items():
        objects = CountedObjects()
        store = store_of(objects)
        store.runner = ThreadRunner(at_a_time)
        loop = loop_of(store)
        loop.run(batch(0), OneRow())  # the first epoch of a driver looks twice, and sweeps
        job = Ready(uploads(store, count))
        objects.round_trip = ROUND_TRIP
        spent = seconds(lambda loop=loop, job=job: loop.run(batch(1), job))
        taken[f"{at_a_time} at a time, {count:,} files"] = f"{spent / count * 1000:.2f} ms a file"
    _found(f"publishing files, requests of {ROUND_TRIP * 1000:.0f} ms", taken)


def client(arguments: argparse.Namespace) -> None:
    """Processor time of the client's requests: what threads of one process cannot do beside one another."""
    del arguments
    count = 1000
    with tempfile.TemporaryDirectory() as place:
        data, log = Path(place) / "data", Path(place) / "log"
        data.mkdir()
        log.mkdir()
        with rclone(data, log) as server:
            store = open_store(f"s3://{server.new_bucket()}/base", server.options)
            loop = loop_of(store)
            loop.run(batch(0), OneRow())
            job = Ready(uploads(store, count))
            before = time.process_time()
            spent = seconds(lambda: loop.run(batch(1), job))
            processor = time.process_time() - before
    found = {"processor": f"{processor / count * 1000:.2f} ms a file", "time": f"{spent:.1f} s"}
    _found(f"publishing {count:,} files with the real client", found)


def epochs(arguments: argparse.Namespace) -> None:
    """Many epochs of one small file each."""
    objects = CountedObjects()
    store, taken, counts = store_of(objects), [], []
    loop = loop_of(store)
    memory = []
    for number in range(arguments.epochs):
        taken.append(seconds(lambda number=number: loop.run(batch(number), OneRow())) * 1000)
        counts.append(objects.requests.total())
        if number in {999, arguments.epochs - 1}:
            memory.append(resident())
    early, late = statistics.median(taken[100:1000]), statistics.median(taken[-900:])
    kept = objects.list_objects("base/_filesink/uid-scale/")[0]
    _found(
        f"{arguments.epochs:,} epochs of one file, S3",
        {
            "epochs 100 to 999": f"{early:.2f} ms",
            "the last 900": f"{late:.2f} ms (ratio {late / early:.2f})",
            "requests of an epoch, median": f"{statistics.median(_differences(counts)):.0f}",
            "requests of an epoch, mean of the last 900": f"{(counts[-1] - counts[-901]) / 900:.1f}",
            "requests by kind, a thousand epochs": _per(objects.requests, arguments.epochs / 1000),
            "ledger": f"{len(kept)} objects, {sum(each.size for each in kept):,} bytes",
            "memory after 1,000 and after all, with the bucket's": " and ".join(map(_mb, memory)),
        },
    )


def price(arguments: argparse.Namespace) -> None:
    """The model of ``docs/scale.md`` for a few sizes of files."""
    found = {}
    for size in (1, 16, 128, 1024):
        requests = requests_per_terabyte(size * MIB, epoch_bytes=1000 * size * MIB)
        cost = requests * arguments.write_price / 1000
        text = f"{requests:,.0f} writes and listings"
        found[f"files of {size} MiB"] = text + (f", {cost:,.2f}" if cost else "")
    _found("requests for a terabyte, 1,000 files an epoch", found)


def requests_per_terabyte(
    file_size: int, *, epoch_bytes: int, part_size: int = S3Options().part_size
) -> float:
    """Requests for 10^12 bytes, all of which are billed as writes (PUT, POST, LIST).

    For each file: begin, parts, look at the parts, complete. For each epoch, as ``epochs`` counts them:
    two objects of the ledger and a listing. Deletions are left out.
    """
    parts = max(1, -(-file_size // part_size))
    written, at_work = TERABYTE / file_size, TERABYTE / epoch_bytes
    return written * (3 + parts) + at_work * EPOCH_WRITES


QUESTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "files": files,
    "disk": disk,
    "threads": threads,
    "client": client,
    "epochs": epochs,
    "price": price,
}


@dataclass(frozen=True, slots=True)
class Ready:
    """The input of an epoch whose tasks are done; implements ``filesink.ports.WriteJob``."""

    results: list[bytes]
    run_id: str = "run"
    time_zone: str = "UTC"
    offsets: str = ""
    schema: pa.Schema = SCHEMA

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        """See ``WriteJob.write``."""
        del task
        return self.results

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``; nothing is replayed here."""
        raise NotImplementedError

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``."""
        return Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True


class OneRow(Ready):
    """The input of an epoch of one row, written as a task does."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__([])

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        """See ``WriteJob.write``."""
        return [task(0, 0, [pa.record_batch([pa.array(["row"])], schema=SCHEMA)])]


def store_of(objects: CountedObjects) -> S3Store:
    """Our store in that bucket."""
    return S3Store(objects, "base", options=S3Options(), clock=SystemClock(), ids=SystemIds())


def loop_of(store: Store) -> EpochLoop:
    """The epochs of a sink whose files lie in ``store``."""
    builder = FileSink.for_bulk_format("/nowhere", ParquetWriterFactory()).with_uid("scale")
    tiers: FileTiers = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).tiers()
    tiers = replace(tiers, address=lambda: store)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    return EpochLoop(tiers, tiers.open_ledger("uid-scale"), ports=ports, options=EpochOptions())


def batch(number: int) -> MicroBatch:
    """A micro-batch."""
    return MicroBatch(query_id="query", batch_id=number, fingerprint=f"{number:064x}")


def uploads(store: Store, count: int) -> list[bytes]:
    """Results of tasks that have uploaded ``count`` small files."""

    def pending(number: int) -> PendingFile:
        hidden, target = names(number)
        output = store.create(hidden, target=target)
        output.write(b"bytes")
        return PendingFile(bucket=_bucket(number), target=target, staged=output.close(), rows=1, size=5)

    made = results(pending(number) for number in range(count))
    store.sync()
    return made


def local_files(base: str, count: int) -> list[bytes]:
    """Results of tasks that have written ``count`` small files; made without a sync of each."""
    for number in range(BUCKETS):
        Path(base, _bucket(number)).mkdir(exist_ok=True)

    def pending(number: int) -> PendingFile:
        hidden, target = names(number)
        path = Path(base, hidden)
        path.write_bytes(b"bytes")
        found = path.stat()
        staged = HiddenFile(path=hidden, size=found.st_size, inode=found.st_ino, mtime_ns=found.st_mtime_ns)
        return PendingFile(bucket=_bucket(number), target=target, staged=staged, rows=1, size=5)

    return results(pending(number) for number in range(count))


def names(number: int) -> tuple[str, str]:
    """The hidden name and the final one of a file."""
    part = f"part-{SystemIds().uuid()}-0"
    hidden = HiddenName(target="part-0", tag="0123abcd", slot=0, attempt=SystemIds().uuid())
    bucket = _bucket(number)
    return join(bucket, str(hidden)), join(bucket, f"{part}.parquet")


def results(files_: Iterator[PendingFile]) -> list[bytes]:
    """Files as tasks report them."""
    codec = FileSink.for_bulk_format("/nowhere", ParquetWriterFactory()).tiers().committable_codec
    made, waiting = [], []

    def report() -> None:
        section = Section(codec.version, codec.encode(waiting))
        made.append(
            TaskResult(
                subtask=len(made), attempt=0, rows=len(waiting), committables=section, state=EMPTY, metrics={}
            ).to_bytes()
        )
        waiting.clear()

    for file in files_:
        waiting.append(file)
        if len(waiting) == TASK_FILES:
            report()
    if waiting:
        report()
    return made


def resident(name: str = "VmRSS") -> int:
    """Bytes of memory of this process; ``VmHWM`` is their peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def _one_epoch(title: str, store: Store, count: int, where: CountedObjects | str) -> None:
    job = Ready(uploads(store, count) if isinstance(where, CountedObjects) else local_files(where, count))
    loop, size = loop_of(store), sum(map(len, job.results))
    os.sync()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, asked = resident(), Counter(where.requests) if isinstance(where, CountedObjects) else Counter()
    processor = time.process_time()
    spent = seconds(lambda: loop.run(batch(0), job))
    found = {
        "time": f"{spent:.1f} s, {spent / count * 1e6:.0f} µs a file",
        "processor": f"{time.process_time() - processor:.1f} s",
        "peak memory": f"{_mb(resident('VmHWM') - before)} more than before",
        "results of the tasks": f"{size / count:.0f} bytes a file",
    }
    if isinstance(where, CountedObjects):
        found["record"] = f"{where.largest / count:.0f} bytes a file"
        found["requests"] = _per(where.requests - asked, 1)
    _found(title, found)


def _bucket(number: int) -> str:
    return f"b={number % BUCKETS}"


def _differences(counts: list[int]) -> list[int]:
    return [late - early for early, late in pairwise(counts)]


def _per(requests: Counter[str], times: float) -> str:
    return ", ".join(f"{count / times:,.0f} {name}" for name, count in sorted(requests.items()))


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def _found(title: str, found: dict[str, str]) -> None:
    print(f"\n{title}")
    for name, text in found.items():
        print(f"  {name + ':':<46} {text}")
    keep(title, {"facts": found})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time, memory and requests of the driver at scale")
    parser.add_argument("--files", type=int, default=100_000, help="of one epoch")
    parser.add_argument("--epochs", type=int, default=10_000)
    parser.add_argument("--only", choices=list(QUESTIONS), default="")
    parser.add_argument("--write-price", type=float, default=0.0, help="of a thousand PUT, POST or LIST")
    return parser.parse_args()


if __name__ == "__main__":
    main()
