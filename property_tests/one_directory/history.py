"""What is written into the directory: each epoch by its number, in a process that may be killed anywhere.

Epoch ``n`` brings version ``n``, so that what a reader has to see is told by the version of its table.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import Any, Final

import pyarrow as pa

import filesink
from compaction import compact
from filesink import DeltaExport, Exporter, IcebergExport, ManifestExport, SparkMetadataExport
from filesink.buckets.assigner import BucketAssigner
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.identity import batch_write
from filesink.ledger.record import MicroBatch
from filesink.naming import OutputFileConfig
from filesink.parts.file_format import BulkFormat
from filesink.parts.plan import Plan
from filesink.parts.rolling import RollingPolicy
from filesink.ports import Losers, Ports, SerialRunner, Task
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from filesink.system import SystemClock, SystemIds
from formats.parquet.writer import ParquetWriterFactory
from property_tests.one_directory.engines import TABLE, Row, catalog

UID: Final = "rows"
ROWS: Final = 6
NARROW: Final = pa.schema([("k", pa.string()), ("value", pa.string())]).insert(1, pa.field("id", pa.int64()))
WIDE: Final = NARROW.append(pa.field("more", pa.int64()))
#: Between any two calls of functions in these files a driver may die.
PLACES: Final = ("/filesink/storage/local/", "/filesink/exports/", "/pyiceberg/catalog/", "/pyiceberg/io/")


class Kind(Enum):
    """What an epoch does."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    COMPACTION = "compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All epochs: ``length`` of them, from number 1."""

    length: int

    def kind(self, number: int) -> Kind:
        """One overwrite after two thirds; compactions at the half and near the end."""
        if number == 2 * self.length // 3:
            return Kind.OVERWRITE
        return Kind.COMPACTION if number in {self.length // 2, self.length - 1} else Kind.APPEND

    def schema(self, number: int) -> pa.Schema:
        """One more column after a third."""
        return WIDE if number >= self.length // 3 else NARROW

    def rows(self, number: int) -> list[Row]:
        """Of one epoch."""
        if self.kind(number) is Kind.COMPACTION:
            return []
        more = number if self.schema(number) is WIDE else None
        return [
            ("abcde fé"[(number + place) % 8], number * ROWS + place, f"row {number}", more)
            for place in range(ROWS)
        ]

    def at(self, version: int) -> Counter[Row]:
        """The rows that readers of a version see."""
        first = 2 * self.length // 3 if version >= 2 * self.length // 3 else 1
        return Counter(row for number in range(first, version + 1) for row in self.rows(number))


@dataclass(frozen=True, slots=True)
class Batch:
    """The input of one epoch; implements ``filesink.ports.WriteJob``."""

    rows: list[Row]
    schema: pa.Schema
    run_id: str = "run"
    time_zone: str = "UTC"
    offsets: str = ""

    def write(self, task: Task) -> list[bytes]:
        """See ``WriteJob.write``."""
        table = [dict(zip(WIDE.names, row, strict=True)) for row in self.rows]
        return [task(0, 0, [pa.RecordBatch.from_pylist(table, schema=self.schema)])]

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``."""
        return len(self.rows)

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``."""
        return Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True


def exporters(base: str) -> list[Exporter]:
    """All that are kept of the path."""
    return [DeltaExport(), IcebergExport(catalog(base), TABLE), SparkMetadataExport(), ManifestExport()]


def drive(base: str, history: History, number: int) -> None:
    """One epoch and its exports, by a driver that has just started. Repeated, it goes on where one died."""
    kind = history.kind(number)
    if kind is Kind.COMPACTION:
        compact(base, ParquetWriterFactory())
    else:
        _epoch(base, history, number, kind)
    for exporter in exporters(base):
        filesink.export(base, exporter)


def _epoch(base: str, history: History, number: int, kind: Kind) -> None:
    sink = FileTiers(address=StoreAddress(base_path=base), plan=_plan(), uid=UID)
    schema, ids = history.schema(number), SystemIds()
    sink.prepare(schema)
    cause: Any
    if kind is Kind.OVERWRITE:
        sink_id, cause = batch_write(SaveMode.OVERWRITE, UID, f"epoch-{number}", ids)
    else:
        batch = sum(history.kind(one) is Kind.APPEND for one in range(1, number))
        sink_id, cause = f"uid-{UID}", MicroBatch(query_id="q", batch_id=batch, fingerprint=f"{number}")
    ports = Ports(clock=SystemClock(), ids=ids, runner=SerialRunner())
    with closing(EpochLoop(sink, sink.open_ledger(sink_id), ports=ports, options=EpochOptions())) as loop:
        loop.run(cause, Batch(history.rows(number), schema))


def _plan() -> Plan:
    """Columns of directories are in the files, too: engines read them there if they do not know better."""
    return Plan(
        format=BulkFormat(ParquetWriterFactory()),
        assigner=BucketAssigner.partition_bucket_assigner("k").with_columns_in_file(),
        policy=RollingPolicy.on_checkpoint_rolling_policy(),
        names=OutputFileConfig(),
        check_interval_ms=60_000,
    )


def driver(base: str, history: History, number: int, at: int | None, calls: Any = None) -> None:
    """``drive`` in a process of its own, which dies at call ``at``; ``calls`` is told how many it made."""
    made = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal made
        if event == "call" and any(place in frame.f_code.co_filename for place in PLACES):
            made += 1
            if made - 1 == at:
                os.kill(os.getpid(), signal.SIGKILL)

    profile: Callable[[FrameType, str, object], None] = count
    sys.setprofile(profile)
    drive(base, history, number)
    sys.setprofile(None)
    if calls is not None:
        calls.value = made
