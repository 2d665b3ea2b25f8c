"""Answers of HDFS that say less than they seem to, and what its clients make of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from filesink.errors import CommitConflictError, ConfigError, StagedDataLost, StorageError
from filesink.storage.api import Deletion, PutResult
from filesink.storage.faulty import Fault, Moment
from filesink.storage.hdfs import webhdfs
from filesink.storage.hdfs.namenode import hadoop_error, host_and_port
from filesink.storage.hdfs.native import NativeNamenode, NativeWriter
from filesink.storage.hdfs.webhdfs import WebNamenode
from tests.contracts.store_site import stage
from tests.storage.hdfs.sim_namenode import Cluster
from tests.storage.hdfs.sim_webhdfs import (
    OPERATIONS,
    Operation,
    append_twice,
    rename_with_boolean,
    web_namenode,
)
from tests.storage.hdfs.test_hdfs import SimulatedSite


@pytest.mark.parametrize("data", [b"two", b""])
def test_a_record_of_the_same_size_and_millisecond_is_another(data: bytes) -> None:
    """A file has no more than size and time to be known by: that ours is still hidden tells the rest."""
    site = SimulatedSite(Cluster(tick_ms=0))
    theirs = b"one"[: len(data)]
    assert site.store().put_if_absent("0.record", theirs) is PutResult.CREATED
    assert site.store().put_if_absent("0.record", data) is PutResult.EXISTS
    assert site.files() == {"0.record": theirs}


@pytest.fixture
def gateway() -> Iterator[SimulatedSite]:
    """What stands before a namenode and answers a rename with a boolean."""
    cluster = Cluster()
    with web_namenode(cluster, RENAME=rename_with_boolean) as port:
        site = SimulatedSite(cluster, WebNamenode("127.0.0.1", port, {}))
        site.store().prepare()
        yield site


def test_a_rename_answered_with_true_is_done(gateway: SimulatedSite) -> None:
    """Such a gateway can be worked with."""
    store = gateway.store()
    store.publish(stage(store, "a/part-a-0", b"abc"), "a/part-a-0")
    assert store.put_if_absent("0.record", b"x") is PutResult.CREATED
    assert gateway.files() == {"a/part-a-0": b"abc", "0.record": b"x"}


def test_a_rename_answered_with_false_is_not_done(gateway: SimulatedSite) -> None:
    """The status is that of success; the name is another's all the same."""
    store = gateway.store()
    staged = stage(store, "a/part-a-0", b"abc")
    gateway.plant("a/part-a-0", b"theirs")
    with pytest.raises(CommitConflictError):
        store.publish(staged, "a/part-a-0")
    assert store.put_if_absent("a/part-a-0", b"ours") is PutResult.EXISTS
    assert gateway.files() == {"a/part-a-0": b"theirs", staged.path: b"abc"}


def test_a_rename_into_a_directory_is_no_publication(gateway: SimulatedSite) -> None:
    """The answer is true, and the file lies hidden below the final name: said at once, not later."""
    store = gateway.store()
    staged = stage(store, "a/part-a-0", b"abc")
    gateway.plant("a/part-a-0/theirs", b"theirs")
    with pytest.raises(CommitConflictError):
        store.publish(staged, "a/part-a-0")
    assert store.put_if_absent("a/part-a-0", b"ours") is PutResult.EXISTS


def test_a_rename_answered_with_false_for_no_reason_is_an_error(gateway: SimulatedSite) -> None:
    """Nothing stands in its way and nothing was done: nobody claims it was, nor that bytes are lost."""
    store = gateway.store()
    staged = stage(store, "a/part-a-0", b"abc")
    gateway.cluster.plan = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=OSError(5, "simulated")) if operation == "rename" else None
    )
    with pytest.raises(StorageError) as raised:
        store.publish(staged, "a/part-a-0")
    assert not isinstance(raised.value, CommitConflictError | StagedDataLost)
    with pytest.raises(StorageError):
        store.put_if_absent("0.record", b"x")
    assert gateway.files() == {staged.path: b"abc"}


def test_bytes_that_were_appended_twice_are_not_reported() -> None:
    """A request repeated on its way leaves a longer file, which its writer finds out at close."""
    cluster = Cluster()
    with web_namenode(cluster, APPEND=append_twice) as port:
        site = SimulatedSite(cluster, WebNamenode("127.0.0.1", port, {}))
        output = site.store().create(".part.inprogress", target="part")
        output.write(b"abc")
        with pytest.raises(StorageError) as raised:
            output.close()
        assert raised.value.code == "SIZE"
        assert site.files() == {".part.inprogress": b"abcabc"}
        output.discard()
        assert site.files() == {}


@dataclass
class SimFileWriter:
    """What hdfs-native writes with; ``hsync`` raises what it is told to."""

    refusal: Exception | None = None
    calls: list[str] = field(default_factory=list)

    def hsync(self) -> None:
        self.calls.append("hsync")
        if self.refusal is not None:
            raise self.refusal

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(
    "refusal", [None, RuntimeError("Unsupported: hsync is not supported for erasure-coded files")]
)
def test_the_last_block_is_synced_before_its_file_is_closed(refusal: Exception | None) -> None:
    """Close alone leaves it in the memory of datanodes; of erasure-coded files that is all there is."""
    writer = SimFileWriter(refusal)
    NativeWriter(writer, "/x").close()
    assert writer.calls == ["hsync", "close"]


@pytest.mark.parametrize("refusal", [RuntimeError("the pipeline broke"), OSError("hsync")])
def test_a_file_whose_sync_failed_is_not_closed_as_whole(refusal: Exception) -> None:
    """Its bytes may be on no disk: the writer is told so."""
    writer = SimFileWriter(refusal)
    with pytest.raises(OSError, match=str(refusal)) as raised:
        NativeWriter(writer, "/x").close()
    assert raised.value.errno == 5
    assert writer.calls == ["hsync"]


def test_a_file_given_up_is_not_synced() -> None:
    """Nobody wants its bytes."""
    writer = SimFileWriter(OSError("hsync"))
    NativeWriter(writer, "/x").abandon()
    assert writer.calls == ["close"]


@pytest.mark.parametrize("operation", ["mkdirs", "rename"])
def test_a_start_that_the_namenode_refuses_is_an_error_of_the_store(operation: str) -> None:
    """With the path and the state of the namenode; the probe's files go."""
    site = SimulatedSite()
    error = hadoop_error("SafeModeException", "/x")
    site.cluster.plan = lambda asked, _path: (
        Fault(moment=Moment.BEFORE, error=error) if asked == operation else None
    )
    with pytest.raises(StorageError, match=r"'hdfs://nn/data/out/_filesink.*safe mode") as raised:
        site.store().prepare()
    assert raised.value.code == "SAFE_MODE"
    assert site.files() == {}


def test_a_record_that_cannot_be_closed_leaves_nothing() -> None:
    """Its hidden file is removed at once, as long as the namenode answers."""
    site = SimulatedSite()
    site.cluster.plan = lambda operation, _path: (
        Fault(moment=Moment.AFTER, error=OSError(5, "simulated")) if operation == "close" else None
    )
    with pytest.raises(StorageError):
        site.store().put_if_absent("0.record", b"abc")
    assert site.files() == {}


def test_a_directory_is_no_unchanged_file() -> None:
    """Whatever its size and time: an overwrite leaves it alone."""
    site = SimulatedSite()
    site.plant("a/x", b"abc")
    (entry,) = site.store().list("")
    changed = site.store().delete_if_unchanged("a", size=entry.size, version=entry.version)
    assert changed is Deletion.CHANGED


def test_a_directory_that_was_not_made_is_an_error() -> None:
    """The status is that of success, the answer is no."""
    with (
        web_namenode(Cluster(), MKDIRS=lambda *_: {"boolean": False}) as port,
        pytest.raises(OSError, match="did not make the directory"),
    ):
        WebNamenode("127.0.0.1", port, {}).mkdirs("/x")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"user": "me"}, ("user.name", "me")),
        ({"user": "me", "proxy_to": "you"}, ("doas", "you")),
        ({"token": "hunter2"}, ("delegation", "hunter2")),
    ],
)
def test_every_request_says_who_asks(options: dict[str, str], told: tuple[str, str]) -> None:
    """Those to the namenode, whatever they ask; else it takes everybody for its own user."""
    cluster, asked = Cluster(), []
    kept: dict[str, Operation] = {
        name: lambda *told, do=operation: asked.append(told[2]) or do(*told)  # type: ignore[misc]
        for name, operation in OPERATIONS.items()
    }
    with web_namenode(cluster, **kept) as port:
        store = SimulatedSite(cluster, WebNamenode("127.0.0.1", port, options)).store()
        store.prepare()
        assert store.list("_filesink") == []
    assert {query["op"] for query in asked} == set(OPERATIONS)
    assert all(told in query.items() for query in asked)


def test_a_namenode_that_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task does not wait for ever."""
    monkeypatch.setattr(webhdfs, "_TIMEOUT", (10, 0.1))
    ended = Event()
    with web_namenode(Cluster(), GETFILESTATUS=lambda *_: ended.wait(20)) as port:
        try:
            with pytest.raises(OSError, match="ReadTimeout"):
                WebNamenode("127.0.0.1", port, {}).status("/x")
        finally:
            ended.set()


# --- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [lambda *_: b"<html>", lambda *told: b"?" * int(told[2]["length"])])
def test_a_cluster_that_cannot_be_read_is_refused_at_start(answer: Operation) -> None:
    """Writing works, so without a look the first epoch would be published and its record never read."""
    cluster = Cluster()
    with web_namenode(cluster, OPEN=answer) as port:
        store = SimulatedSite(cluster, WebNamenode("127.0.0.1", port, {})).store()
        with pytest.raises(StorageError, match="hdfs://nn/data/out/_filesink") as raised:
            store.prepare()
    assert raised.value.code == "IO"
    assert cluster.files == {}


@pytest.fixture
def web() -> Iterator[SimulatedSite]:
    """A cluster behind its REST interface, where every range that is read is a request."""
    cluster = Cluster()
    with web_namenode(cluster) as port:
        yield SimulatedSite(cluster, WebNamenode("127.0.0.1", port, {}))


def test_a_file_that_goes_while_it_is_read_is_an_error_of_the_store(web: SimulatedSite) -> None:
    """Who reads it was told that it is there, and expects no ``FileNotFoundError`` any more."""
    web.plant("part", bytes(3 << 20))
    with web.store().open_input("part") as reader:
        assert reader.read(10) == bytes(10)
        web.remove("part")
        with pytest.raises(StorageError, match="'hdfs://nn/data/out/part': it was removed meanw") as raised:
            reader.read()
    assert raised.value.code == "UNAVAILABLE"
    with pytest.raises(FileNotFoundError):
        web.store().open_input("part")


def test_pieces_that_go_while_they_are_joined_are_an_error_of_the_store(web: SimulatedSite) -> None:
    """A late merge, whose inputs another driver has removed, is told so with the path."""
    held = stage(web.store(), "a/part-a-0", b"abc")
    web.cluster.plan = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=FileNotFoundError(2, "simulated")) if operation == "open" else None
    )
    with pytest.raises(StorageError, match="was removed meanwhile; start again") as raised:
        web.store().concat([held], ".merged", target="a/part-b-0")
    assert raised.value.code == "UNAVAILABLE"
    assert web.files() == {held.path: b"abc"}


def test_bytes_that_cannot_be_read_are_an_error_of_the_store(web: SimulatedSite) -> None:
    """Whether they are read at once or from an open file, the error names the path."""
    web.plant("part", b"abc")
    reader = web.store().open_input("part")
    web.cluster.plan = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=OSError(5, "simulated")) if operation == "open" else None
    )
    for read in (reader.read, lambda: reader.read(1), lambda: web.store().read("part")):
        with pytest.raises(StorageError, match="cannot read 'hdfs://nn/data/out/part'") as raised:
            read()
        assert raised.value.code == "IO"


def test_a_place_that_cannot_be_is_no_error_of_the_store() -> None:
    """Damage in a file may name one, so whoever reads it is told by the ``ValueError`` of any file."""
    site = SimulatedSite()
    site.plant("part", b"abc")
    with site.store().open_input("part") as reader, pytest.raises(ValueError, match="negative"):
        reader.seek(-1)


# --- advice ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exception", "code", "advice"),
    [
        ("SafeModeException", "SAFE_MODE", "wait until it has left it"),
        ("StandbyException", "STANDBY", "name the active one"),
        ("RetriableException", "STANDBY", "wait and start again"),
        ("SomethingNew", "IO", "the cluster's logs"),
    ],
)
def test_the_state_of_a_namenode_is_not_taken_for_a_broken_disk(
    exception: str, code: str, advice: str
) -> None:
    """Nobody is sent to remount a file system or to look for a driver."""
    error = hadoop_error(f"org.apache.hadoop.{exception}", "/x")
    site = SimulatedSite()
    site.cluster.plan = lambda _operation, _path: Fault(moment=Moment.BEFORE, error=error)
    store = site.store()
    for ask in (lambda: store.list(""), lambda: store.open_input("x"), lambda: store.read("x")):
        with pytest.raises(StorageError, match=advice) as raised:
            ask()
        assert raised.value.code == code
        assert exception in str(raised.value)
        assert "disk" not in str(raised.value)


# --- addresses -------------------------------------------------------------------------------

WRONG = ["nn:99999", "nn:0", "nn:hunter2", "nn:-1", "nn:", "[::1", "::1", "[::1]:x", "n n"]


@pytest.mark.parametrize("address", WRONG)
def test_a_wrong_address_is_a_mistake_of_configuration(address: str) -> None:
    """It is found before anything is asked, and not repeated: a password may stand where the port should."""
    for ask in (
        lambda: NativeNamenode(f"hdfs://{address}", {}),
        lambda: host_and_port(f"webhdfs://{address}"),
    ):
        with pytest.raises(ConfigError, match="from 1 to 65535") as raised:
            ask()
        assert raised.value.code == "BAD_VALUE"
        assert "hunter2" not in str(raised.value)


def test_an_address_may_have_no_port_and_be_one_of_ipv6() -> None:
    """Both as they stand in a URI."""
    assert host_and_port("webhdfs://nn_1.example.org") == ("nn_1.example.org", None)
    assert host_and_port("webhdfs://nn:9870") == ("nn", 9870)
    assert host_and_port("webhdfs://[::1]:9870") == ("[::1]", 9870)
    NativeNamenode("hdfs://[::1]:8020", {})


def test_no_configured_cluster_is_a_mistake_of_configuration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``hdfs:///data`` where nothing names the default."""
    for name in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(ConfigError, match="HADOOP_CONF_DIR") as raised:
        NativeNamenode("hdfs://", {})
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    "options",
    [{"config_dir": "here"}, {"fs.defaultFS": "hdfs://nn:8020"}, {"ipc.client.connect.max.retries": 1}],
    ids=["config_dir", "setting", "number"],
)
def test_options_are_the_client_s(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The default cluster is where they say: in a directory of Hadoop's files, or among them."""
    for name in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    setting = "<property><name>fs.defaultFS</name><value>hdfs://nn:8020</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{setting}</configuration>")
    given = {name: str(tmp_path) if value == "here" else value for name, value in options.items()}
    NativeNamenode("hdfs://nn:8020" if "ipc.client.connect.max.retries" in given else "hdfs://", given)


@pytest.mark.parametrize("more", [{"user": "me"}, {"proxy_to": "me"}, {"password": "hunter2"}])
def test_options_that_exclude_each_other_are_a_mistake_of_configuration(more: dict[str, str]) -> None:
    """The message names them without their values."""
    with pytest.raises(ConfigError, match="'token' goes without") as raised:
        WebNamenode("nn", 9870, {"token": "hunter2", **more})
    assert raised.value.code == "BAD_VALUE"
    assert "hunter2" not in str(raised.value)
