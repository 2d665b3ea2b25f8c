"""A path or uid with a mistake in it is told, with what is there instead."""

from __future__ import annotations

import hashlib
import logging

import pytest

from filesink import ConfigError, FileSink
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.nearby import parent_of
from filesink.ledger.record import BatchWrite
from filesink.naming import HiddenName, sink_tag
from filesink.operations.find_sinks import check_streamed, check_written
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from filesink.storage.open import open_store
from filesink.system import SystemIds
from formats import Encoder
from tests.fakes import World, records

CALLS = ["recover", "plan_sweep", "sweep", "finish"]


def sink_of(base, uid=None):
    """A sink of lines; ``finish`` gets as far as to see whether there is anything."""
    builder = FileSink.for_row_format(base, Encoder.simple_string_encoder())
    return (builder if uid is None else builder.with_uid(uid)).build()


def write(base, sink_id, cause=None, **options):
    """An epoch of a sink of that name."""
    world = World(open_store=StoreAddress(base_path=str(base)), **options)
    world.store().prepare()
    world.driver(sink_id).run(cause or BatchWrite(), world.job(records("1")))


def refusal(call, base, uid=None):
    """What a mistyped call is told."""
    with pytest.raises(ConfigError) as raised:
        getattr(sink_of(base, uid), call)()
    assert raised.value.code == "NO_SINK"
    return raised.value.message


@pytest.mark.parametrize("call", CALLS)
def test_a_mistyped_uid_is_told_who_is_there(tmp_path, call):
    """Nothing succeeds under a name that nobody has; the one that is like it comes first."""
    for sink_id in ("uid-alpha", "uid-trips", "query-q", "batch-1"):
        write(tmp_path, sink_id)
    before = sorted(tmp_path.rglob("*"))
    message = refusal(call, tmp_path, "tripz")
    assert f"uid 'tripz' has written to '{tmp_path}'" in message
    assert "uid 'trips', uid 'alpha', streams without a uid and batch writes" in message
    assert sorted(tmp_path.rglob("*")) == before


def test_of_many_sinks_the_nearest_are_named(tmp_path):
    """An error stays short."""
    for number in range(9):
        (tmp_path / "_filesink" / f"uid-s{number}").mkdir(parents=True)
    assert "have: uid 's7', uid 's0'" in refusal("recover", tmp_path, "S7")
    assert "4 more uids" in refusal("recover", tmp_path, "S7")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("uid", ["trips", None])
def test_a_mistyped_path_is_told_what_lies_near(tmp_path, call, uid):
    """Beside it, above it or below it; and nothing is made there."""
    if call == "finish" and uid is None:
        return  # knows no stream, wherever
    tmp_path /= "data"
    (tmp_path / "trips").mkdir(parents=True)
    write(tmp_path / "trips", "uid-trips")
    (tmp_path / "trips" / "day=1" / "hour=2").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    for wrong in ("tripz", ".", "trips/day=1", "trips/day=1/hour=2"):
        message = refusal(call, tmp_path / wrong, uid)
        assert f"no sink has written to '{tmp_path / wrong}'" in message
        assert f"A sink has written to '{tmp_path / 'trips'}'." in message
    assert "_filesink'. Nothing was done. Pass" in refusal(call, tmp_path / "empty", uid)
    assert not (tmp_path / "tripz").exists()
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("call", ["recover", "plan_sweep", "sweep"])
@pytest.mark.parametrize("uid", ["u", None])
def test_a_sink_that_has_begun_is_no_mistake(tmp_path, call, uid):
    """Its first epoch died before it was decided: the directory of ledgers, or what it has left, is there."""
    open_store(tmp_path / "a", {}).prepare()
    getattr(sink_of(tmp_path / "a", uid), call)()
    name = HiddenName(target="part-0", tag=sink_tag("uid-u"), slot=0, attempt=SystemIds().uuid())
    (tmp_path / "b" / "x").mkdir(parents=True)
    (tmp_path / "b" / "x" / str(name)).touch()
    getattr(sink_of(tmp_path / "b", uid), call)()
    write(tmp_path / "b", "uid-other")
    getattr(sink_of(tmp_path / "b", uid), call)()


def test_named_writes_are_of_their_uid(tmp_path):
    """A sink that has only written under names of its user's is known by their records."""
    name = "txn-" + hashlib.sha256(b"mine\0t").hexdigest()[:32]  # as earlier releases have made it
    write(tmp_path, name, BatchWrite(txn_id="t"))
    assert sink_of(tmp_path, "mine").recover().published == ()
    assert "batch writes with a txn_id" in refusal("recover", tmp_path, "main")


def test_whether_a_uid_has_overwritten_is_not_known(tmp_path, caplog):
    """So it is not refused where somebody has, but the log says what was looked after."""
    write(tmp_path, EXCLUSIVE, BatchWrite(mode=SaveMode.OVERWRITE))
    write(tmp_path, "uid-trips")
    with caplog.at_level(logging.WARNING, "filesink"):
        assert sink_of(tmp_path, "tripz").recover().published == ()
    assert "no sink with uid 'tripz'" in caplog.text
    assert "those that have written: uid 'trips' and overwrites" in caplog.text
    assert "no stream with uid 'tripz'" in refusal("finish", tmp_path, "tripz")


def test_what_has_begun_as_a_stream_may_be_finished(tmp_path):
    """A stream that never had a batch has nothing open, and is no mistake while nobody else is there."""
    open_store(tmp_path, {}).prepare()
    check_streamed(StoreAddress(base_path=str(tmp_path)), "u")
    check_written(StoreAddress(base_path=str(tmp_path)), "u")


@pytest.mark.parametrize(
    ("path", "above"),
    [
        ("/a/b", "/a"),
        ("/a", "/"),
        ("/", None),
        ("s3://bucket/a/b", "s3://bucket/a"),
        ("s3://bucket/a", "s3://bucket"),
        ("s3://bucket", None),
        ("hdfs:///a", None),
        ("hdfs://host:9000/a", "hdfs://host:9000"),
    ],
)
def test_the_directory_above(path, above):
    """Up to the root or the bucket; where it has no spelling that is the same everywhere, it is left out."""
    assert parent_of(path) == above


def test_a_store_without_directories_above():
    """A hint that cannot be had is left out."""
    with pytest.raises(ConfigError, match=r"Nothing was done\. Pass") as raised:
        check_written(StoreAddress(base_path="memory://nowhere"), None)
    assert raised.value.code == "NO_SINK"
