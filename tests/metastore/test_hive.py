"""The client of Hive keeps the contract with a real metastore, and survives servers that do not."""

from __future__ import annotations

import socket
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import puresasl.mechanisms
import pytest
from pymetastore.hive_metastore.ttypes import (
    InvalidInputException,
    MetaException,
    NoSuchObjectException,
    UnknownDBException,
)
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportException

from examples.hive_server import HiveServer
from filesink.errors import ConfigError, DependencyError, MetastoreConflictError, MetastoreError
from filesink.metastore.api import Column, Metastore, Table, TableChange, TableName, Values
from filesink.metastore.hive import metastore as hive_module
from filesink.metastore.hive.connection import HiveConnection, Kerberos
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.hive.servers import Server, Servers, parse_uris
from filesink.storage.api import Store
from filesink.storage.open import open_store
from tests.contracts.metastore_contract import MetastoreContract, MetastoreSite, partition
from tests.fakes import SettableClock
from tests.metastore.test_memory import MemoryMetastoreSite


@dataclass
class HiveSite(MetastoreSite):
    """The service itself, asked by its bare stubs over a connection of its own."""

    server: HiveServer

    def __post_init__(self) -> None:
        self.root = f"file:{self.server.warehouse}"

    def metastore(self) -> Metastore:
        return HiveMetastore(self.server.uri)

    def make_directory(self, location: str) -> None:
        Path(location.removeprefix("file:")).mkdir()

    def partitions(self, name: TableName) -> dict[Values, tuple[str, dict[str, str]]]:
        with self._client() as client:
            found = client.get_partitions(name.database, name.table, -1)
        return {tuple(one.values): (one.sd.location, one.parameters) for one in found}

    def columns(self, name: TableName) -> dict[str, str]:
        with self._client() as client:
            found = client.get_table(name.database, name.table)
        return {column.name: column.type for column in (*found.sd.cols, *found.partitionKeys)}

    def store(self, table: Table) -> Store:
        return open_store(table.location.removeprefix("file:"), {})

    def drop_table(self, name: TableName) -> None:
        with self._client() as client:
            client.drop_table(name.database, name.table, False)  # noqa: FBT003 - whether with its files

    @contextmanager
    def _client(self) -> Iterator[object]:
        from pymetastore.hive_metastore import ThriftHiveMetastore
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport import TSocket, TTransport

        transport = TTransport.TBufferedTransport(TSocket.TSocket("127.0.0.1", self.server.port))
        transport.open()
        try:
            yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        finally:
            transport.close()


@pytest.fixture
def site(hive: HiveServer, monkeypatch: pytest.MonkeyPatch) -> MetastoreSite:
    """The server that all tests share; each has tables of its own. Some need more than one request."""
    monkeypatch.setattr(hive_module, "_BATCH", 10)
    return HiveSite(server=hive)


@pytest.mark.spark
class TestHiveMetastore(MetastoreContract):
    """The conformance suite, with a server of Hive 2.3."""

    def test_partitions_have_the_storage_of_their_table(self, site: MetastoreSite, table) -> None:
        """Readers take format and columns from the partition, not from the table."""
        one = partition(table, "d")
        site.metastore().add_partitions(table, [one])
        with site._client() as client:
            [found] = client.get_partitions(table.name.database, table.name.table, -1)
        assert found.sd.serdeInfo.serializationLib == table.format.serde
        assert [column.name for column in found.sd.cols] == ["a", "b"]

    def test_what_a_partition_has_besides_is_kept(self, site: MetastoreSite, table) -> None:
        """A change writes back what it does not know, such as columns of the partition's own."""
        one = partition(table, "d")
        site.metastore().add_partitions(table, [one])
        with site._client() as client:
            [found] = client.get_partitions(table.name.database, table.name.table, -1)
            found.sd.serdeInfo.parameters = {"mine": "1"}
            client.alter_partition(table.name.database, table.name.table, found)
        site.metastore().alter_partitions(table, [replace(one, parameters={"numRows": "1"})])
        with site._client() as client:
            [found] = client.get_partitions(table.name.database, table.name.table, -1)
        assert found.sd.serdeInfo.parameters == {"mine": "1"}

    def test_partitions_get_the_new_columns_of_their_table(
        self, site: MetastoreSite, metastore: Metastore, table
    ) -> None:
        """Those that were there before, too: else Hive shows null in them for rows that are written later."""
        metastore.add_partitions(table, [partition(table, "d")])
        metastore.alter_table(table.name, TableChange(new_columns=(Column(name="c", type="int"),)))
        with site._client() as client:
            [found] = client.get_partitions(table.name.database, table.name.table, -1)
        assert [column.name for column in found.sd.cols] == ["a", "b", "c"]

    def test_what_decides_how_files_are_written_is_read(
        self, site: MetastoreSite, metastore: Metastore, table
    ) -> None:
        """Lines are written by the settings of the serde, and a table in buckets is refused."""
        with site._client() as client:
            found = client.get_table(table.name.database, table.name.table)
            found.sd.serdeInfo.parameters = {"separatorChar": ";"}
            found.sd.bucketCols, found.sd.numBuckets = ["a"], 4
            client.alter_table(table.name.database, table.name.table, found)
        seen = metastore.get_table(table.name)
        assert (seen.format.serde_parameters["separatorChar"], seen.bucket_columns) == (";", ("a",))

    def test_it_tells_what_it_has_added(self, metastore: Metastore, table) -> None:
        """Whoever asked need not look again."""
        first, second = partition(table, "1"), partition(table, "2")
        assert metastore.add_partitions(table, [first]) == {first.values}
        assert metastore.add_partitions(table, [first, second]) == {second.values}

    def test_threads_do_not_wait_for_each_other(self, hive: HiveServer, table) -> None:
        """Each has a connection to itself, and finds its answers there; one is left for the next call."""
        client = HiveMetastore(hive.uri)
        batches = [[partition(table, f"{batch}-{i}") for i in range(5)] for batch in range(12)]
        added = client.runner.run(lambda batch: client.add_partitions(table, batch), batches)
        assert added == [{one.values for one in batch} for batch in batches]
        client.close()
        assert client._connections._idle == []

    def test_a_dead_server_is_passed_over(self, hive: HiveServer, table) -> None:
        """The next URI is tried when the first refuses; the one that answered is tried first from then on."""
        with refusing_port() as dead:
            client = HiveMetastore(f"thrift://127.0.0.1:{dead}, {hive.uri}", clock=SettableClock())
            assert client.get_table(table.name) is not None
            client.add_partitions(table, [partition(table, "d")])
        client.close()

    def test_a_server_that_hangs_up_is_passed_over(self, hive: HiveServer, table) -> None:
        """A question is asked again elsewhere when the connection breaks."""
        with HangsUp() as hangs_up:
            client = HiveMetastore(f"thrift://127.0.0.1:{hangs_up.port},{hive.uri}", clock=SettableClock())
            assert client.get_table(table.name) is not None
        assert hangs_up.accepted
        client.close()

    def test_a_table_in_no_database(self, site: MetastoreSite, metastore: Metastore) -> None:
        """What the service refuses for good is a conflict."""
        lost = replace(site.fresh_table(), name=TableName(database="no_such_db", table="t"))
        with pytest.raises(MetastoreConflictError) as caught:
            metastore.create_table(lost)
        assert caught.value.code == "METASTORE_REFUSED"


class HangsUp:
    """Accepts connections and closes them after the first bytes, as a server that dies."""

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.accepted = 0
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                if not connection.recv(1):
                    return
                self.accepted += 1

    def __exit__(self, *error: object) -> None:
        socket.create_connection(("127.0.0.1", self.port)).close()  # the last one sends nothing
        self._thread.join()
        self._socket.close()


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections: bound, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_an_order_is_never_repeated() -> None:
    """A change whose reply is lost is unknown: one connection, one request, and then an error."""
    with HangsUp() as hangs_up:
        client = HiveMetastore(f"thrift://127.0.0.1:{hangs_up.port}", clock=SettableClock())
        with pytest.raises(MetastoreError) as caught:
            client.create_table(MemoryMetastoreSite().fresh_table())
    assert caught.value.code == "METASTORE_UNKNOWN"
    assert hangs_up.accepted == 1


def test_the_timeout_is_that_of_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer holds nobody up for longer."""
    asked: list[float] = []
    monkeypatch.setattr(TSocket, "setTimeout", lambda _socket, ms: asked.append(ms))
    with refusing_port() as port:
        client = HiveMetastore(f"thrift://127.0.0.1:{port}", timeout="2 s", clock=SettableClock())
        with pytest.raises(MetastoreError):
            client.get_table(TableName.parse("a.b"))
    assert asked == [2000] * 3


def test_what_the_service_could_not_do_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trouble of its own, such as with its database, is no conflict. Its words are told, but for secrets."""

    def fail(*_: object) -> None:
        raise MetaException("the database is full, url=jdbc:x?password=secret\nat org.apache.hadoop")

    monkeypatch.setattr(HiveConnection, "ask", fail)
    with pytest.raises(MetastoreError) as caught:
        HiveMetastore("thrift://127.0.0.1:1").get_table(TableName.parse("a.b"))
    assert caught.value.code == "METASTORE_FAILED"
    assert not isinstance(caught.value, MetastoreConflictError)
    assert "(MetaException): the database is full" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        MetaException("java.security.AccessControlException: Permission denied: user=u, access=WRITE"),
        MetaException("No privilege 'Alter' found for outputs { database:default, table:t}"),
        InvalidInputException("no"),
        UnknownDBException("no"),
        NoSuchObjectException("no"),
        TApplicationException(TApplicationException.UNKNOWN_METHOD, "no"),
    ],
    ids=repr,
)
def test_what_the_service_refuses_for_good_is_not_tried_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing permission, or something that is not there: whoever asks again is told the same."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(HiveConnection, "ask", fail)
    with pytest.raises(MetastoreConflictError) as caught:
        HiveMetastore("thrift://127.0.0.1:1").get_table(TableName.parse("a.b"))
    assert caught.value.code == "METASTORE_REFUSED"
    assert error.message in str(caught.value)


class NoTicket(Exception):  # noqa: N818 - as kerberos.GSSError
    """An error of the library for Kerberos."""


@pytest.mark.parametrize(
    ("error", "code", "attempts"),
    [
        (NoTicket("No Kerberos credentials available"), "METASTORE_LOGIN", 1),
        (
            TTransportException(1, "Bad SASL negotiation status: 3 (GSS initiate failed)"),
            "METASTORE_LOGIN",
            1,
        ),
        (TTransportException(1, "Could not connect to any of [('h', 1)]"), "METASTORE_DOWN", 3),
    ],
    ids=["no ticket", "refused", "away"],
)
def test_a_login_that_is_refused_is_not_tried_again(
    error: Exception, code: str, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rounds with pauses are for servers that are away."""
    tried = []

    def fail(_socket: object) -> None:
        tried.append(1)
        raise error

    monkeypatch.setattr(TSocket, "open", fail)
    with pytest.raises(MetastoreError) as caught:
        HiveMetastore("thrift://127.0.0.1:1", clock=SettableClock()).get_table(TableName.parse("a.b"))
    assert (caught.value.code, len(tried)) == (code, attempts)
    assert isinstance(caught.value, MetastoreConflictError) == (code == "METASTORE_LOGIN")
    assert str(error.args[-1] if code == "METASTORE_LOGIN" else "Could not connect") in str(caught.value)


def test_an_interrupted_call_leaves_no_connection() -> None:
    """Ctrl-C, while an answer is on its way: it must not be taken for that of the next call."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with socket.create_server(("127.0.0.1", 0)) as mute:
        client = HiveMetastore(f"thrift://127.0.0.1:{mute.getsockname()[1]}")
        with pytest.raises(KeyboardInterrupt):
            client._connections.ask(interrupted)
        near, _ = mute.accept()
        with near:
            assert near.recv(1) == b""  # hung up


def test_servers_that_fail_are_tried_last() -> None:
    """Said by several threads at once, it counts once: the one that is good stays the first."""
    one, other = Server("one", 1), Server("other", 2)
    servers = Servers([one, other])
    servers.failed(one)
    servers.failed(one)
    assert servers.first() == other


def test_no_server_at_all() -> None:
    """All servers are tried in three rounds with pauses between; then the last one is named."""
    clock = SettableClock()
    with refusing_port() as one, refusing_port() as other:
        client = HiveMetastore(f"thrift://127.0.0.1:{one},thrift://127.0.0.1:{other}", clock=clock)
        with pytest.raises(MetastoreError) as caught:
            client.get_table(TableName.parse("a.b"))
    assert caught.value.code == "METASTORE_DOWN"
    assert clock.slept == [0.5, 1.0]


@pytest.mark.parametrize(
    ("uris", "servers"),
    [
        ("thrift://a:9083", [("a", 9083)]),
        ("thrift://a/ , thrift://b:1/", [("a", 9083), ("b", 1)]),
        ("thrift://[::1]:9083", [("::1", 9083)]),
    ],
)
def test_uris(uris: str, servers: list[tuple[str, int]]) -> None:
    """Several with commas, blanks around them, the usual port left out."""
    assert parse_uris(uris) == tuple(Server(*server) for server in servers)


@pytest.mark.parametrize(
    "uris",
    [
        "",
        "a:9083",
        "http://a",
        "thrift://",
        "thrift://a:x",
        "thrift://a:65536",
        "thrift://a:0",
        "thrift://u:secret@a:1",
        "thrift://a:1/db",
        "thrift://a,",
    ],
)
def test_bad_uris(uris: str) -> None:
    """Refused when the sink is built; the message holds no password."""
    with pytest.raises(ConfigError) as caught:
        HiveMetastore(uris)
    assert caught.value.code == "METASTORE_URI"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("security", "principal"),
    [
        (Kerberos(), "hive@127.0.0.1"),
        (Kerberos(service="metastore", host="hms.example.org"), "metastore@hms.example.org"),
    ],
    ids=["of the address", "given"],
)
def test_kerberos_is_configured(monkeypatch: pytest.MonkeyPatch, security: Kerberos, principal: str) -> None:
    """The SASL transport gets the service and the host of the server's principal, and GSSAPI."""
    asked = []

    def init(**arguments: object) -> tuple[int, object]:
        asked.append(arguments)
        return 1, object()

    fake = types.ModuleType("kerberos")
    fake.authGSSClientInit = init  # type: ignore[attr-defined]
    fake.authGSSClientClean = lambda _: 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kerberos", fake)
    monkeypatch.setattr(puresasl.mechanisms, "kerberos", fake, raising=False)
    monkeypatch.setitem(puresasl.mechanisms.mechanisms, "GSSAPI", puresasl.mechanisms.GSSAPIMechanism)
    with refusing_port() as port:
        connection = HiveConnection(
            Servers([Server("127.0.0.1", port)]),
            security=security,
            timeout_ms=1000,
            clock=SettableClock(),
        )
        with pytest.raises(MetastoreError) as caught:
            connection.ask(lambda _: None)
    assert caught.value.code == "METASTORE_DOWN"
    assert asked[0]["service"] == principal


def test_kerberos_without_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra to install is named."""
    monkeypatch.setitem(sys.modules, "kerberos", None)
    with pytest.raises(DependencyError) as caught:
        HiveMetastore("thrift://127.0.0.1:1", security=Kerberos()).get_table(TableName.parse("a.b"))
    assert caught.value.code == "HIVE_KERBEROS"


def test_hive_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra to install is named when the sink is built."""
    monkeypatch.setitem(sys.modules, "pymetastore.hive_metastore", None)
    with pytest.raises(DependencyError) as caught:
        HiveMetastore("thrift://127.0.0.1:1")
    assert caught.value.code == "HIVE"
