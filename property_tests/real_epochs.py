"""A whole sink without Spark, run as a program: what real kills and real errnos are aimed at.

``python -m property_tests.real_epochs BASE`` writes the same four batches on every call and then ends
the input, with a row format whose parts stay open across epochs, and with Parquet. A call that comes
after a dead one goes on where that stopped, as a restarted query does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.buckets.assigner import BucketAssigner
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.record import MicroBatch
from filesink.naming import OutputFileConfig
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.ports import Losers, Ports, SerialRunner
from filesink.storage.api import Store
from filesink.storage.local.posix import PosixFs
from filesink.storage.local.store import LocalStore
from filesink.system import SystemClock, SystemIds
from formats.encoders import Encoder
from formats.parquet.writer import ParquetWriterFactory

BATCHES = 4
PARTITIONS = 2
ROWS = 40  # of a partition
SCHEMA = pa.schema([("bucket", pa.string()), ("row", pa.string())])
FORMATS: dict[str, tuple[FileFormat, RollingPolicy]] = {
    "lines": (
        RowFormat(Encoder.simple_string_encoder()),
        RollingPolicy.default_rolling_policy(part_size=300),
    ),
    "parquet": (
        BulkFormat(ParquetWriterFactory()),
        RollingPolicy.on_checkpoint_rolling_policy(max_rows=15),
    ),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """The input of one epoch; implements ``filesink.ports.WriteJob``."""

    number: int
    run_id: str = "run"
    time_zone: str = "UTC"
    offsets: str = ""
    schema: pa.Schema = SCHEMA

    def write(self, task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes]) -> list[bytes]:
        """See ``WriteJob.write``."""
        return [task(partition, 0, self.records(partition)) for partition in range(PARTITIONS)]

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``."""
        return PARTITIONS * ROWS

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``."""
        return Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True

    def records(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, half of them in each of two buckets."""
        numbers = range(ROWS)
        rows = [f"{self.number}-{partition}-{number:03}" for number in numbers]
        buckets = [f"b{number % 2}" for number in numbers]
        yield pa.record_batch([pa.array(buckets), pa.array(rows)], schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class OneThread:
    """The local store, all of whose system calls are made by the thread that uses it.

    strace counts calls by thread: the n-th call of a program is one only if there are no others.
    """

    base_path: str

    def __call__(self) -> Store:
        """The store itself."""
        return LocalStore(PosixFs(self.base_path), runner=SerialRunner(), ids=SystemIds())


def main(base: str) -> None:
    """Write every batch into each format's directory, then end the input."""
    for name in FORMATS:
        run_query(name, OneThread(f"{base}/{name}"))


def run_query(name: str, address: Callable[[], Store], *, batches: int = BATCHES) -> None:
    """Write the batches as one of ``FORMATS``, then end the input, as one driver process would."""
    form, policy = FORMATS[name]
    tiers = FileTiers(
        address=address,
        plan=Plan(
            format=form,
            assigner=BucketAssigner.partition_bucket_assigner("bucket"),
            policy=policy,
            names=OutputFileConfig(),
            check_interval_ms=60_000,
        ),
        uid="real",
    )
    tiers.prepare(SCHEMA)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    loop = EpochLoop(tiers, tiers.open_ledger("uid-real"), ports=ports, options=EpochOptions())
    for number in range(batches):
        loop.run(MicroBatch(query_id="query", batch_id=number, fingerprint=f"{number}"), Batch(number))
    loop.finish()


def expected(batches: int = BATCHES) -> list[str]:
    """Every row of these batches, sorted."""
    return sorted(
        str(row)
        for number in range(batches)
        for partition in range(PARTITIONS)
        for records in Batch(number).records(partition)
        for row in records.column("row").to_pylist()
    )


def visible_files(base: Path) -> list[Path]:
    """What a reader takes: files whose names, and those of their directories, begin with neither . nor _."""
    return sorted(
        path
        for path in base.rglob("*")
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(base).parts)
    )


def hidden_files(base: Path) -> list[Path]:
    """Everything else but the ledger's own files, and probes of dead starts, which go after a day."""
    seen = set(visible_files(base))
    ours = (path for path in base.rglob("*") if path.is_file() and not path.name.startswith(".probe."))
    return sorted(
        path for path in ours if path not in seen and (path.name[0] == "." or "_filesink" not in path.parts)
    )


def rows_of(path: Path) -> list[str]:
    """The rows of one file; raises if it is not whole."""
    return rows_in(path.name, path.read_bytes())


def rows_in(name: str, data: bytes) -> list[str]:
    """The rows of one file's bytes; raises if it is not whole."""
    if name.endswith(".parquet"):
        table = pq.ParquetFile(pa.BufferReader(data)).read()
        return [str(row) for row in table.column("row").to_pylist()]
    if not data.endswith(b"\n"):
        raise ValueError(f"{name} ends in the middle of a line")
    return data.decode().splitlines()


if __name__ == "__main__":
    main(sys.argv[1])
