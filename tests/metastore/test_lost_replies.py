"""A real Hive metastore behind a line that breaks at each request, before it, after it and meanwhile.

The policy is called again until nothing is left, as the publisher does; then every partition is there
once, with the numbers of its files.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum

import pytest

from examples.hive_server import HiveServer
from filesink.errors import MetastoreError
from filesink.metastore.api import Table, TableName
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.policies import CommittedPartition, Site
from filesink.storage.memory import MemoryFiles, MemoryStore
from tests.fakes import SettableClock
from tests.metastore.test_hive import HiveSite

_LATE = 0.15  # seconds
REQUESTS, ADD = 4, 4  # of an announcement, and which of them adds partitions


class Break(Enum):
    """What becomes of one request, and with it of its connection."""

    BEFORE = "it never arrives"
    AFTER = "it is carried out and the reply is lost"
    LATE = "the line is cut, and the request arrives a moment later"
    SILENT = "it is carried out and the line stays open without a reply"
    GARBAGE = "it is carried out and the reply is no Thrift"


class Line:
    """A proxy to a server that breaks one request; ``number`` counts requests from 1, 0 breaks none."""

    def __init__(self, port: int, number: int, how: Break) -> None:
        self._target, self._left, self._how = port, number, how
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.timeout = "2 s" if how is Break.SILENT else "60 s"  # of a client, which only one should need
        self.requests = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Accept no more, and wait until everything has arrived."""
        self._socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:  # closed
                return
            self._threads.append(threading.Thread(target=self._serve, args=(near,)))
            self._threads[-1].start()

    def _serve(self, near: socket.socket) -> None:
        far = socket.create_connection(("127.0.0.1", self._target))
        with near, far, suppress(ConnectionError):  # the client may hang up at any time
            while request := near.recv(1 << 20):
                self.requests += 1
                if self.requests == self._left:
                    self._break(near, far, request)
                    return
                far.sendall(request)
                near.sendall(far.recv(1 << 20))

    def _break(self, near: socket.socket, far: socket.socket, request: bytes) -> None:
        match self._how:
            case Break.BEFORE:
                return
            case Break.LATE:
                near.close()
                time.sleep(_LATE)
        far.sendall(request)
        far.recv(1 << 20)
        match self._how:
            case Break.GARBAGE:
                near.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            case Break.SILENT:
                near.recv(1)  # until the client gives up


@pytest.fixture
def table(hive: HiveServer) -> Table:
    """A table by ``day`` and ``k``."""
    fresh = HiveSite(server=hive).fresh_table()
    metastore = HiveMetastore(hive.uri)
    metastore.create_table(fresh)
    metastore.close()
    return fresh


def site_of(table: Table) -> Site:
    """A file of two rows in each of two partitions."""
    files = MemoryFiles()
    for bucket in buckets(table):
        files.make(f"{bucket}/part-0", b"1\n2\n")
    return Site(store=MemoryStore(files), base_path=table.location)


def buckets(table: Table) -> list[str]:
    """Two directories as the keys of the table want them."""
    return ["/".join(f"{key.name}={value}" for key in table.partition_keys) for value in "12"]


def announced(table: Table, bucket: str) -> CommittedPartition:
    """A partition with one new file."""
    return CommittedPartition(
        bucket=bucket,
        values={},
        location=f"{table.location}/{bucket}",
        epoch=0,
        files=(f"{bucket}/part-0",),
        file_count=1,
        rows=2,
        bytes=4,
        may_be_repeated=False,
    )


def announce(table: Table, line: Line, site: Site) -> int:
    """Announce both partitions until nothing is left; how many rounds that took."""
    uris = f"thrift://127.0.0.1:{line.port}"
    policy = MetastorePolicy(
        str(table.name), HiveMetastore(uris, timeout=line.timeout, clock=SettableClock())
    )
    left = [announced(table, bucket) for bucket in buckets(table)]
    rounds = 0
    while left and rounds < 10:
        left, rounds = policy.commit_all(left, site), rounds + 1
    policy.close()
    assert left == []
    return rounds


def breaks() -> Iterator[tuple[int, Break]]:
    """Each request of an announcement with each kind of failure; the slow one where it matters most."""
    for how in Break:
        for number in (2, ADD) if how is Break.SILENT else range(1, REQUESTS + 1):
            yield number, how


@pytest.mark.spark
@pytest.mark.parametrize(("number", "how"), list(breaks()))
def test_a_line_that_breaks_costs_nothing_but_a_round(
    hive: HiveServer, table: Table, number: int, how: Break
) -> None:
    """Two new partitions, and then news of the first: nothing twice, nothing missing, numbers right."""
    line = Line(hive.port, number, how)
    try:
        announce(table, line, site_of(table))
        assert line.requests > REQUESTS
    finally:
        line.close()
    found = HiveSite(server=hive).partitions(table.name)
    assert {location for location, _ in found.values()} == {
        f"{table.location}/{bucket}" for bucket in buckets(table)
    }
    told = [
        [parameters[name] for name in ("numFiles", "totalSize", "numRows")]
        for _, parameters in found.values()
    ]
    assert told == [["1", "4", "2"]] * 2


@pytest.mark.spark
def test_without_breaks_every_request_is_needed(hive: HiveServer, table: Table) -> None:
    """Else the test above would not see each of them."""
    line = Line(hive.port, 0, Break.BEFORE)
    try:
        assert announce(table, line, site_of(table)) == 1
        assert line.requests == REQUESTS
    finally:
        line.close()


@pytest.mark.spark
def test_a_server_that_never_answers_is_given_up(hive: HiveServer) -> None:
    """A question goes on to the next server; who has no other is told after the time-out."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        uri = f"thrift://127.0.0.1:{mute.getsockname()[1]}"
        metastore = HiveMetastore(f"{uri},{hive.uri}", timeout="3 s", clock=SettableClock())
        assert metastore.get_table(TableName.parse("default.no_such_table")) is None
        metastore.close()
        alone = HiveMetastore(uri, timeout="50 ms", clock=SettableClock())
        with pytest.raises(MetastoreError) as caught:
            alone.get_table(TableName.parse("default.t"))
        assert caught.value.code == "METASTORE_UNKNOWN"
