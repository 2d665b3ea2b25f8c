"""Announcing many partitions to a real Hive metastore: in batches, and with one call each.

    python benchmarks/partitions.py [--partitions 10000] [--single 500]

One call each is what ``append_partition_by_name`` loops do, as in SeaTunnel's Hive sink. It is measured
on fewer partitions and compared by partitions a second. The server is the one in PySpark's jars.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.hive_server import hive_server
from filesink.metastore.api import Column, Table, TableName
from filesink.metastore.hive import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.policies import CommittedPartition, Site
from filesink.metastore.table_formats import HIVE_FORMATS
from filesink.storage.open import open_store

_GOAL = 5.0


def main() -> int:
    """The exit status is 0 if batches are five times as fast."""
    parser = argparse.ArgumentParser(description="partitions announced a second")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--single", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, hive_server(Path(directory)) as server:
        metastore = HiveMetastore(server.uri, timeout="10 min")
        measure(metastore, Path(directory), "warm_up", 200, batch=200)
        singles = [
            measure(metastore, Path(directory), f"single_{i}", arguments.single, batch=1) for i in (1, 2)
        ]
        batches = measure(
            metastore, Path(directory), "batched", arguments.partitions, batch=arguments.partitions
        )
    single = max(singles)
    ratio = batches / single
    print(f"one call each: {single:7.1f} partitions/s ({arguments.single} of them, the better of two runs)")
    print(f"in batches:    {batches:7.1f} partitions/s ({arguments.partitions} of them in one epoch)")
    print(f"ratio {ratio:.1f}, wanted {_GOAL:.1f}")
    return 0 if ratio >= _GOAL else 1


def measure(metastore: HiveMetastore, directory: Path, name: str, count: int, *, batch: int) -> float:
    """Announce ``count`` partitions with a file each, ``batch`` at a time; partitions a second."""
    base = directory / name
    buckets = [f"p={i}" for i in range(count)]
    for bucket in buckets:
        (base / bucket).mkdir(parents=True)
        (base / bucket / "part-0.parquet").write_bytes(b"x")
    metastore.create_table(
        Table(
            name=TableName(database="default", table=name),
            columns=(Column(name="a", type="bigint"),),
            partition_keys=(Column(name="p", type="string"),),
            location=f"file:{base}",
            format=HIVE_FORMATS["parquet"],
        )
    )
    policy = MetastorePolicy(f"default.{name}", metastore)
    site = Site(store=open_store(str(base), {}), base_path=str(base), partition_columns=("p",))
    events = [event(base, bucket) for bucket in buckets]
    start = time.monotonic()
    for first in range(0, count, batch):
        left = policy.commit_all(events[first : first + batch], site)
        if left:
            raise SystemExit(f"{len(left)} partitions were not announced")
    return count / (time.monotonic() - start)


def event(base: Path, bucket: str) -> CommittedPartition:
    """A partition with one file of one row."""
    return CommittedPartition(
        bucket=bucket,
        values={},
        location=f"file:{base}/{bucket}",
        epoch=0,
        files=(f"{bucket}/part-0.parquet",),
        file_count=1,
        rows=1,
        bytes=1,
        may_be_repeated=False,
    )


if __name__ == "__main__":
    sys.exit(main())
