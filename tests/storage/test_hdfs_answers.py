"""Answers of HDFS that say less than they seem to, and what its clients make of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from filesink.errors import CommitConflictError, StagedDataLost, StorageError
from filesink.storage.api import PutResult
from filesink.storage.faulty import Fault, Moment
from filesink.storage.hdfs_native import NativeWriter
from filesink.storage.webhdfs import WebNamenode
from tests.contracts.store_site import stage
from tests.storage.sim_namenode import Cluster
from tests.storage.sim_webhdfs import append_twice, rename_with_boolean, web_namenode
from tests.storage.test_hdfs import SimulatedSite


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
