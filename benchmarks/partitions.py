"""Announcing many partitions to a real Hive metastore: as the sink does it, and with one call each.

    python benchmarks/partitions.py [--partitions 10000] [--single 500] [--pairs 3]

The baseline does what a naive client does and nothing more: one ``add_partition`` for each partition,
over one open connection of the same generated client. It is measured on fewer partitions and compared by
the time of one. Ours is all that ``MetastorePolicy`` does for an epoch: look, list each directory, add,
look again at what others may have added. The server is the one in PySpark's jars, its database in memory;
it is warm, as one that runs for weeks: the first rounds are not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.hive_server import HiveServer, hive_server
from filesink.metastore.api import Column, Table, TableName
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.policies import CommittedPartition, Site
from filesink.metastore.tables.formats import HIVE_FORMATS
from filesink.storage.open import open_store
from paired import Comparison, Contender, compare, seconds

_GOAL = 5.0
_HEAP = "2g"  # so that collecting garbage is not what is measured
_WARM_UPS = 3  # by then the server has compiled what it runs


def main() -> int:
    """The exit status is 0 if the sink is five times as fast."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=10_000, help="announced in one epoch")
    parser.add_argument("--single", type=int, default=500, help="added with one call each")
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, hive_server(Path(directory), heap=_HEAP) as server:
        tables = Tables(server, Path(directory))
        comparison = compare(
            f"{arguments.partitions} partitions announced in one epoch",
            baseline=Contender(
                name="add_partition for each", measure=lambda: tables.one_by_one(arguments.single)
            ),
            ours=Contender(name="filesink", measure=lambda: tables.announced(arguments.partitions)),
            unit="ms a partition",
            rounds=arguments.pairs,
            warm_ups=_WARM_UPS,
        )
    return 0 if verdict(comparison) else 1


def verdict(comparison: Comparison) -> bool:
    """Print how many times as fast, by the median pair."""
    times = 1 / statistics.median(comparison.ratios)
    print(f"\n{times:.1f} times as fast, wanted {_GOAL:.1f}")
    return times >= _GOAL


@dataclass
class Tables:
    """Makes a table for each measurement, and drops it after."""

    server: HiveServer
    directory: Path
    _numbers: Iterator[int] = field(default_factory=count)

    def announced(self, partitions: int) -> float:
        """What the sink does for one epoch; milliseconds a partition."""
        metastore = HiveMetastore(self.server.uri, timeout="10 min")
        with self._table(partitions, metastore) as table:
            base = table.location.removeprefix("file:")
            policy = MetastorePolicy(str(table.name), metastore)
            site = Site(store=open_store(base, {}), base_path=base, partition_columns=("p",))
            events = [_event(table, number) for number in range(partitions)]
            took = seconds(lambda: _must_be_empty(policy.commit_all(events, site)))
        metastore.close()
        return took * 1000 / partitions

    def one_by_one(self, partitions: int) -> float:
        """One ``add_partition`` each, and nothing else; milliseconds a partition."""
        from pymetastore.hive_metastore import ttypes

        metastore = HiveMetastore(self.server.uri, timeout="10 min")
        with self._table(partitions, metastore) as table, _client(self.server) as client:
            storage = client.get_table(table.name.database, table.name.table).sd

            def add_all() -> None:
                for number in range(partitions):
                    storage.location = f"{table.location}/p={number}"
                    client.add_partition(
                        ttypes.Partition(
                            dbName=table.name.database,
                            tableName=table.name.table,
                            values=[str(number)],
                            sd=storage,
                            parameters={},
                        )
                    )

            took = seconds(add_all)
        metastore.close()
        return took * 1000 / partitions

    @contextmanager
    def _table(self, partitions: int, metastore: HiveMetastore) -> Iterator[Table]:
        """A table and its partitions' directories with a file each; all must be registered at the end."""
        name = TableName(database="default", table=f"t{next(self._numbers)}")
        base = self.directory / name.table
        for number in range(partitions):
            (base / f"p={number}").mkdir(parents=True)
            (base / f"p={number}" / "part-0.parquet").write_bytes(b"x")
        table = Table(
            name=name,
            columns=(Column(name="a", type="bigint"),),
            partition_keys=(Column(name="p", type="string"),),
            location=f"file:{base}",
            format=HIVE_FORMATS["parquet"],
        )
        metastore.create_table(table)
        yield table
        with _client(self.server) as client:
            found = len(client.get_partition_names(name.database, name.table, -1))
            client.drop_table(name.database, name.table, deleteData=False)
        if found != partitions:
            raise SystemExit(f"{found} of {partitions} partitions are registered")


@contextmanager
def _client(server: HiveServer) -> Iterator[Any]:
    """The bare stubs, with the fastest of Thrift's protocols, as our own client uses it."""
    from pymetastore.hive_metastore import ThriftHiveMetastore
    from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
    from thrift.transport import TSocket, TTransport

    transport = TTransport.TBufferedTransport(TSocket.TSocket("127.0.0.1", server.port))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport, fallback=True))
    finally:
        transport.close()


def _event(table: Table, number: int) -> CommittedPartition:
    """A partition with one file of one row."""
    return CommittedPartition(
        bucket=f"p={number}",
        values={},
        location=f"{table.location}/p={number}",
        epoch=0,
        files=(f"p={number}/part-0.parquet",),
        file_count=1,
        rows=1,
        bytes=1,
        may_be_repeated=False,
    )


def _must_be_empty(left: list[CommittedPartition]) -> None:
    if left:
        raise SystemExit(f"{len(left)} partitions were not announced")


if __name__ == "__main__":
    sys.exit(main())
