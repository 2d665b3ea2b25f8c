"""HDFS keeps the contract, on a simulated namenode and on a real one, through both of its doors."""

from __future__ import annotations

import errno
import io
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pytest

from filesink.errors import (
    CommitConflictError,
    CommitStateUnknown,
    ConfigError,
    StagedDataLost,
    StorageError,
)
from filesink.ports import SerialRunner
from filesink.storage.api import PutResult, Store
from filesink.storage.faulty import Fault, Moment
from filesink.storage.hdfs import store as hdfs
from filesink.storage.hdfs import webhdfs
from filesink.storage.hdfs.namenode import Namenode, hadoop_error
from filesink.storage.hdfs.native import NativeNamenode
from filesink.storage.hdfs.output import HdfsFiles
from filesink.storage.hdfs.store import HdfsStore
from filesink.storage.hdfs.webhdfs import WebNamenode
from filesink.storage.staged import Staged
from filesink.system import SystemIds
from tests.contracts.store_contract import StoreContract
from tests.contracts.store_site import Site, hold, stage
from tests.storage.hdfs.mini_hdfs import MiniHdfs
from tests.storage.hdfs.sim_namenode import Cluster, SimFile, SimNamenode
from tests.storage.hdfs.sim_webhdfs import httpfs, web_namenode

BASE = "/data/out"


def hdfs_store(namenode: Namenode, base: str) -> HdfsStore:
    """A store as another process would make it."""
    files = HdfsFiles(namenode, base, url=f"hdfs://nn{base}")
    return HdfsStore(files, runner=SerialRunner(), ids=SystemIds())


@dataclass
class SimulatedSite(Site):
    """The dictionary of the simulated namenode is the oracle."""

    cluster: Cluster = field(default_factory=Cluster)
    door: Namenode | None = None

    def store(self) -> Store:
        return hdfs_store(self.door or SimNamenode(self.cluster), BASE)

    def files(self) -> dict[str, bytes]:
        return {path.removeprefix(f"{BASE}/"): file.content for path, file in self.cluster.files.items()}

    def plant(self, path: str, data: bytes) -> None:
        self.cluster.make_directories(f"{BASE}/{path}".rpartition("/")[0])
        self.cluster.files[f"{BASE}/{path}"] = SimFile(data, mtime_ms=-1, is_open=False)

    def remove(self, path: str) -> None:
        del self.cluster.files[f"{BASE}/{path}"]

    def half_publish(self, staged: Staged, target: str) -> None:
        self.cluster.files[f"{BASE}/{target}"] = self.cluster.files.pop(f"{BASE}/{staged.path}")


@dataclass
class RealSite(Site):
    """A real cluster: the store under test uses one of the two doors, the oracle the other."""

    namenode: Namenode
    oracle: Namenode
    base: str

    def store(self) -> Store:
        return hdfs_store(self.namenode, self.base)

    def files(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            for entry in self.oracle.list(f"{self.base}/{directory}".rstrip("/")):
                path = f"{directory}/{entry.name}".lstrip("/")
                if entry.is_directory:
                    waiting.append(path)
                else:
                    with self.oracle.open(f"{self.base}/{path}") as reader:
                        found[path] = reader.read()
        return found

    def plant(self, path: str, data: bytes) -> None:
        self.remove(path)
        writer = self.oracle.create(f"{self.base}/{path}")
        writer.write(data)
        writer.close()

    def remove(self, path: str) -> None:
        self.oracle.delete(f"{self.base}/{path}")

    def half_publish(self, staged: Staged, target: str) -> None:
        self.oracle.rename(f"{self.base}/{staged.path}", f"{self.base}/{target}")


@pytest.fixture
def native(hdfs_cluster: MiniHdfs) -> Namenode:
    """The namenode's own protocol."""
    return NativeNamenode(f"hdfs://127.0.0.1:{hdfs_cluster.rpc_port}", {})


@pytest.fixture
def web(hdfs_cluster: MiniHdfs) -> Namenode:
    """The namenode's REST interface."""
    return WebNamenode("127.0.0.1", hdfs_cluster.web_port, {"user": "root"})


class TestSimulatedHdfs(StoreContract):
    @pytest.fixture
    def site(self) -> Site:
        return SimulatedSite()


class TestSimulatedWebHdfs(StoreContract):
    """The client of the REST interface, against a server of it that is the simulated namenode."""

    outputs, published, pieces = 10, 6, 12
    serve = staticmethod(web_namenode)

    @pytest.fixture
    def site(self) -> Iterator[Site]:
        cluster = Cluster()
        with self.serve(cluster) as port:
            yield SimulatedSite(cluster, WebNamenode("127.0.0.1", port, {}))


class TestSimulatedHttpFs(TestSimulatedWebHdfs):
    """The same client through HttpFS, which hands over what is read without another address."""

    serve = staticmethod(httpfs)


@pytest.mark.spark
@pytest.mark.slow
class TestNativeHdfs(StoreContract):
    outputs, published, pieces = 6, 4, 12  # a small cluster takes half a second for each

    @pytest.fixture
    def site(self, native: Namenode, web: Namenode) -> Site:
        return RealSite(native, web, f"/native/{uuid.uuid4()}")


@pytest.mark.nightly
class TestManyFilesOnNativeHdfs(TestNativeHdfs):
    outputs, published, pieces = 200, 40, 60


@pytest.mark.spark
@pytest.mark.slow
class TestWebHdfs(StoreContract):
    outputs, published, pieces = 6, 4, 12

    @pytest.fixture
    def site(self, native: Namenode, web: Namenode) -> Site:
        return RealSite(web, native, f"/web/{uuid.uuid4()}")


@pytest.mark.nightly
class TestManyFilesOnWebHdfs(TestWebHdfs):
    outputs, published, pieces = 200, 40, 60


# --- the namenode itself ---------------------------------------------------------------------


@pytest.fixture(
    params=[
        "simulated",
        pytest.param("native", marks=[pytest.mark.spark, pytest.mark.slow]),
        pytest.param("web", marks=[pytest.mark.spark, pytest.mark.slow]),
    ]
)
def namenode(request: pytest.FixtureRequest) -> Namenode:
    """Each way to a namenode, real or not."""
    if request.param == "simulated":
        return SimNamenode(Cluster())
    found: Namenode = request.getfixturevalue(request.param)
    return found


def write(namenode: Namenode, path: str, data: bytes) -> None:
    """A closed file."""
    writer = namenode.create(path)
    writer.write(data)
    writer.close()


def test_a_namenode_renames_without_replacing(namenode: Namenode) -> None:
    """The simulated namenode, the real one, and both clients agree about every kind of target."""
    base = f"/rename/{uuid.uuid4()}"
    for name in ("a", "b", "d/x"):
        write(namenode, f"{base}/{name}", name.encode())
    for target, error in (("b", FileExistsError), ("d", OSError), ("no/c", FileNotFoundError)):
        with pytest.raises(error):
            namenode.rename(f"{base}/a", f"{base}/{target}")
    with pytest.raises(FileNotFoundError):
        namenode.rename(f"{base}/none", f"{base}/c")
    before = namenode.status(f"{base}/a")
    namenode.rename(f"{base}/a", f"{base}/c")
    after = namenode.status(f"{base}/c")
    assert before is not None
    assert after is not None
    assert (before.size, before.mtime_ms) == (after.size, after.mtime_ms)
    assert namenode.status(f"{base}/a") is None
    assert {entry.name for entry in namenode.list(base)} == {"b", "c", "d"}


def test_a_namenode_creates_without_replacing(namenode: Namenode) -> None:
    """A name is taken once, by a file or a directory; nothing can lie below a file."""
    base = f"/create/{uuid.uuid4()}"
    write(namenode, f"{base}/d/a", b"a")
    for path in (f"{base}/d/a", f"{base}/d"):
        with pytest.raises(FileExistsError):
            namenode.create(path)
    with pytest.raises(NotADirectoryError):
        namenode.create(f"{base}/d/a/b")
    with pytest.raises(OSError, match="irectory"):
        namenode.delete(f"{base}/d")
    with namenode.open(f"{base}/d/a") as reader:
        assert reader.read() == b"a"


# --- what goes wrong -------------------------------------------------------------------------


def failing(operation: str, moment: Moment, *, times: int = 1) -> Cluster:
    """A cluster where the next calls of a kind fail."""
    left = [times]

    def plan(asked: str, path: str) -> Fault | None:
        if asked != operation or "_filesink" in path or not left[0]:
            return None
        left[0] -= 1
        return Fault(moment=moment, error=OSError(5, "simulated"))

    cluster = Cluster()
    hdfs_store(SimNamenode(cluster), BASE).prepare()
    cluster.plan = plan
    return cluster


def test_a_lost_reply_to_a_rename_is_a_publication() -> None:
    """The hidden name is gone and our file is there: done, whatever the answer was."""
    site = SimulatedSite(failing("rename", Moment.AFTER))
    store = site.store()
    store.publish(stage(store, "a/part-a-0", b"abc"), "a/part-a-0")
    assert site.files() == {"a/part-a-0": b"abc"}


def test_a_rename_that_was_not_done_is_an_error() -> None:
    """Nothing claims success, and a second call does it."""
    site = SimulatedSite(failing("rename", Moment.BEFORE))
    store = site.store()
    staged = stage(store, "a/part-a-0", b"abc")
    with pytest.raises(StorageError) as raised:
        store.publish(staged, "a/part-a-0")
    assert not isinstance(raised.value, CommitConflictError | StagedDataLost)
    assert site.visible() == {}
    store.publish(staged, "a/part-a-0")
    assert site.visible() == {"a/part-a-0": b"abc"}


def test_a_file_is_not_moved_into_a_directory_of_its_name() -> None:
    """HDFS would move the file inside; that is a conflict, and nothing becomes visible."""
    site = SimulatedSite()
    store = site.store()
    store.prepare()
    staged = stage(store, "a/part-a-0", b"abc")
    site.cluster.make_directories(f"{BASE}/a/part-a-0")
    with pytest.raises(CommitConflictError):
        store.publish(staged, "a/part-a-0")
    assert site.files() == {staged.path: b"abc"}


@pytest.mark.parametrize("data", [b"", b"record"])
def test_a_lost_reply_to_a_put_is_our_own(data: bytes) -> None:
    """Whose file stands there is told by its time, not by the answer."""
    store = SimulatedSite(failing("rename", Moment.AFTER)).store()
    assert store.put_if_absent("0.record", data) is PutResult.CREATED
    assert store.read("0.record") == data


def test_a_put_that_was_not_done_is_an_error() -> None:
    """No file is left, and the next put creates it."""
    site = SimulatedSite(failing("rename", Moment.BEFORE))
    store = site.store()
    with pytest.raises(StorageError):
        store.put_if_absent("0.record", b"x")
    assert site.files() == {}
    assert store.put_if_absent("0.record", b"x") is PutResult.CREATED


def test_a_put_that_cannot_be_looked_at_is_unknown() -> None:
    """After an error nobody guesses: the hidden file stays to tell whose record it is."""
    cluster = Cluster()
    store = hdfs_store(SimNamenode(cluster), BASE)
    store.prepare()
    renamed = []

    def plan(operation: str, path: str) -> Fault | None:
        renamed.extend([path] if operation == "rename" else [])
        late = operation == "rename" or (operation == "status" and renamed)
        return Fault(moment=Moment.AFTER, error=OSError(5, "simulated")) if late else None

    cluster.plan = plan
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("0.record", b"x")


def test_a_put_of_which_nothing_is_left_is_unknown() -> None:
    """The rename was done and its reply lost, and somebody took the file away: it was there."""
    cluster = failing("rename", Moment.AFTER)
    lose = cluster.plan

    def plan(operation: str, path: str) -> Fault | None:
        if operation == "status":
            cluster.files.pop(f"{BASE}/0.record", None)
        return lose(operation, path)

    cluster.plan = plan
    with pytest.raises(CommitStateUnknown):
        SimulatedSite(cluster).store().put_if_absent("0.record", b"x")


def test_a_put_whose_hidden_file_cannot_be_removed_is_unknown() -> None:
    """The rename that was given up is done later, and finds the file: nobody was told that it is not."""
    cluster = Cluster()
    store = hdfs_store(SimNamenode(cluster), BASE)
    store.prepare()
    cluster.plan = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=OSError(5, "simulated"))
        if operation in {"rename", "delete"}
        else None
    )
    with pytest.raises(CommitStateUnknown):
        store.put_if_absent("0.record", b"x")
    cluster.plan = lambda _operation, _path: None
    hidden = next(path for path in cluster.files if ".put." in path)
    SimNamenode(cluster).rename(hidden, f"{BASE}/0.record")
    assert store.read("0.record") == b"x"


def test_a_put_that_was_never_renamed_is_an_error() -> None:
    """What could not be written appears nowhere, though its beginning cannot be removed either."""
    cluster = Cluster()
    store = hdfs_store(SimNamenode(cluster), BASE)
    store.prepare()
    cluster.plan = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=OSError(5, "simulated"))
        if operation in {"write", "delete"}
        else None
    )
    with pytest.raises(StorageError) as raised:
        store.put_if_absent("0.record", b"x")
    assert not isinstance(raised.value, CommitStateUnknown)


@pytest.mark.parametrize("operation", ["create", "write", "close", "status"])
def test_a_failed_output_leaves_nothing_after_its_discard(operation: str) -> None:
    """Whether or not a call that failed had its effect, the hidden file is removed."""
    for moment in Moment:
        site = SimulatedSite(failing(operation, moment))
        store = site.store()
        output = store.create(".part.inprogress", target="part")
        with pytest.raises(StorageError):
            output.write(b"abc") and output.close()
        output.discard()
        assert site.files() == {}


def test_a_status_that_fails_is_not_an_absent_file() -> None:
    """Unreadable is an error, for the ledger above all."""
    store = SimulatedSite(failing("status", Moment.BEFORE)).store()
    with pytest.raises(StorageError):
        store.read("0.record")


class ReplacingNamenode(SimNamenode):
    """What libhdfs makes of HDFS behind pyarrow: a rename removes what is in its way."""

    def rename(self, source: str, target: str, /) -> None:
        self._cluster.files.pop(target, None)
        super().rename(source, target)


def test_a_rename_that_replaces_is_refused_at_start() -> None:
    """A file system behind the same name that overwrites is found out before anything is written."""
    cluster = Cluster()
    with pytest.raises(ConfigError) as raised:
        hdfs_store(ReplacingNamenode(cluster), BASE).prepare()
    assert raised.value.code == "NO_EXCLUSIVE_PUBLISH"
    assert cluster.files == {}


def test_probes_that_died_are_removed_a_day_later() -> None:
    """A start removes the probes of starts that were killed, by the cluster's own clock."""
    cluster = Cluster()
    store = hdfs_store(SimNamenode(cluster), BASE)
    old = f"{BASE}/_filesink/.probe.{uuid.uuid4()}.first"
    cluster.make_directories(f"{BASE}/_filesink")
    cluster.files[old] = SimFile(mtime_ms=cluster.now_ms, is_open=False)
    store.prepare()
    assert old in cluster.files
    for hours, found in ((23, True), (2, False)):
        cluster.now_ms += hours * 3600 * 1000
        store.prepare()
        assert (old in cluster.files) is found


def test_a_file_under_the_base_path_is_refused() -> None:
    """The base path must be a directory."""
    site = SimulatedSite()
    site.plant("x", b"")
    with pytest.raises(ConfigError) as raised:
        hdfs_store(SimNamenode(site.cluster), f"{BASE}/x").prepare()
    assert raised.value.code == "PATH_NOT_DIR"


# --- the clients -----------------------------------------------------------------------------


def test_java_exceptions_become_numbers() -> None:
    """Permission and quota are told from a broken disk, with or without package and outer class."""
    assert isinstance(
        hadoop_error("org.apache.hadoop.security.AccessControlException", "/x"), PermissionError
    )
    outer = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"
    assert hadoop_error(outer, "/x").errno == 36
    assert hadoop_error("SomethingNew", "/x").errno == 5


@pytest.mark.parametrize(
    ("exception", "kind", "code"),
    [
        ("AccessControlException", PermissionError, errno.EACCES),
        ("SecurityException", PermissionError, errno.EACCES),
        ("AlreadyBeingCreatedException", FileExistsError, errno.EEXIST),
        ("FileAlreadyExistsException", FileExistsError, errno.EEXIST),
        ("FileNotFoundException", FileNotFoundError, errno.ENOENT),
        ("ParentNotDirectoryException", NotADirectoryError, errno.ENOTDIR),
        ("PathIsNotEmptyDirectoryException", OSError, errno.ENOTEMPTY),
        ("DSQuotaExceededException", OSError, errno.EDQUOT),
        ("NSQuotaExceededException", OSError, errno.EDQUOT),
        ("QuotaByStorageTypeExceededException", OSError, errno.EDQUOT),
        ("SafeModeException", OSError, errno.EROFS),
        ("RetriableException", OSError, errno.EAGAIN),
        ("StandbyException", OSError, errno.EAGAIN),
        ("InvalidPathException", OSError, errno.EINVAL),
    ],
)
def test_each_java_exception_that_says_something_has_its_number(
    exception: str, kind: type[OSError], code: int
) -> None:
    """A name that is taken, above all: a file that another client writes right now is one, too."""
    found = hadoop_error(f"org.apache.hadoop.{exception}", "/x")
    assert isinstance(found, kind)
    assert found.errno == code


def test_a_record_that_is_read_short_is_no_record() -> None:
    """A reader that ends too early says so, and nobody takes a beginning for the whole."""
    site = SimulatedSite()
    site.store().put_if_absent("0.record", b"record")

    class Short(SimNamenode):
        def open(self, path: str, /) -> BinaryIO:
            return io.BytesIO(super().open(path).read()[:-1])

    with pytest.raises(StorageError) as raised:
        hdfs_store(Short(site.cluster), BASE).read("0.record")
    assert raised.value.code == "IO"


def test_a_source_that_is_read_short_is_not_joined() -> None:
    """Between the look at it and its last byte it has changed: nothing is made of it."""
    site = SimulatedSite()
    held = stage(site.store(), "a/part-a-0", b"abc")

    class Short(SimNamenode):
        def open(self, path: str, /) -> BinaryIO:
            return io.BytesIO(super().open(path).read()[:-1])

    with pytest.raises(StagedDataLost, match="has 2 bytes, 3 were recorded"):
        hdfs_store(Short(site.cluster), BASE).concat([held], ".merged", target="a/part-b-0")
    assert site.files() == {held.path: b"abc"}


def test_sources_are_joined_from_their_beginnings_to_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps it takes to copy one."""
    monkeypatch.setattr(hdfs, "_COPY_BYTES", 2)
    site = SimulatedSite()
    store = site.store()
    held = [hold(store, "a/part-a-0", b"abc"), hold(store, "a/part-b-0", b"defgh")]
    store.publish(store.concat(held, "a/.merged", target="a/part-c-0"), "a/part-c-0")
    assert site.visible() == {"a/part-c-0": b"abcdefgh"}


def test_a_file_of_many_requests_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes come in any portions, and go in requests of one size and one for what is left."""
    monkeypatch.setattr(webhdfs, "_CHUNK", 3)
    sizes = []

    class Counted(WebNamenode):
        def append(self, path: str, data: Any) -> None:
            sizes.append(len(data))
            super().append(path, data)

    cluster = Cluster()
    with web_namenode(cluster) as port:
        writer = Counted("127.0.0.1", port, {}).create("/x")
        assert [writer.write(data) for data in (b"ab", b"cdefghij", b"k")] == [2, 8, 1]
        writer.close()
    assert (cluster.files["/x"].content, sizes) == (b"abcdefghijk", [3, 3, 3, 2])


def test_bytes_go_by_the_proxy_of_datanodes() -> None:
    """What the namenode names is asked for where ``data_proxy`` says; the namenode itself is not."""
    named, meant = Cluster(), Cluster()
    write(SimNamenode(named), "/x", b"named")
    write(SimNamenode(meant), "/x", b"meant")
    with web_namenode(named) as port, web_namenode(meant) as other:
        options = {"data_proxy": {f":{port}/": f":{other}/"}}
        assert WebNamenode("127.0.0.1", port, options).open("/x").read() == b"meant"


def test_a_datanode_that_sends_less_is_an_error() -> None:
    """The REST interface promises no length: what was asked for came, or nothing did."""
    cluster = Cluster()
    write(SimNamenode(cluster), "/x", b"record")
    with web_namenode(cluster, OPEN=lambda *_: b"rec") as port:
        reader = WebNamenode("127.0.0.1", port, {}).open("/x")
        with pytest.raises(OSError, match="3 of 6 bytes came"):
            reader.read()


def test_unknown_options_are_refused_without_values() -> None:
    """An option that no client reads is an error; its value may be a secret."""
    for open_namenode in (
        lambda: NativeNamenode("hdfs://nn", {"passwort": "hunter2"}),
        lambda: WebNamenode("nn", 9870, {"passwort": "hunter2"}),
        lambda: WebNamenode("nn", 9870, {"kwargs": "hunter2"}),
    ):
        with pytest.raises(ConfigError, match=r"passwort|kwargs") as raised:
            open_namenode()
        assert raised.value.code == "UNKNOWN_OPTION"
        assert "hunter2" not in str(raised.value)


def test_a_namenode_that_is_not_there_is_an_error() -> None:
    """Neither client takes it for an absent file, and no message holds a token."""
    native = NativeNamenode("hdfs://127.0.0.1:1", {"dfs.client.failover.max.attempts": "1"})
    web = WebNamenode("127.0.0.1", 1, {"token": "hunter2"})
    for namenode in (native, web):
        with pytest.raises(OSError) as raised:  # noqa: PT011 - any, but not the one of an absent file
            namenode.status("/x")
        assert not isinstance(raised.value, FileNotFoundError)
        assert "hunter2" not in str(raised.value)
