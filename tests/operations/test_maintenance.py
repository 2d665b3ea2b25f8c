"""Recovery and sweeping by hand: what operators call when no query runs."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from filesink import FileSink
from filesink.api.events import Listeners
from filesink.errors import (
    CommitFailedError,
    ConcurrentDriverError,
    ConfigError,
    IdentityError,
    StagedDataLost,
    StateCorruptError,
    StateError,
    StorageError,
)
from filesink.ledger.identity import EXCLUSIVE, batch_write, txn_name
from filesink.ledger.record import BatchWrite
from filesink.ledger.transactions import find_write
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy
from filesink.naming import HiddenName, name_of, parse_hidden, sink_tag
from filesink.operations.maintenance import Lost, Maintenance
from filesink.parts.committables import CommittableCodec
from filesink.save_mode import SaveMode
from filesink.storage.address import StoreAddress
from filesink.storage.faulty import Fault, Moment
from formats.encoders import Encoder
from tests.compaction.test_superseded import compact, rows_once
from tests.fakes import QUERY, SettableClock, World, keep_open, micro_batch, plan_of, records
from tests.storage.fake_objects import FakeObjects
from tests.storage.s3.test_s3_answers import store_of

WEEK = 7 * 24 * 3600 * 1000


class Killed(BaseException):
    """The driver dies here."""


def kill(world, operation, cause, job, *, sink_id=None, below=""):
    """Run an epoch whose driver dies at the first ``operation`` on a path ``below`` a directory."""

    def fault(asked, path):
        dies = asked == operation and (operation != "put_if_absent" or path.endswith(".record"))
        dies = dies and path.startswith(below)
        return Fault(moment=Moment.BEFORE, error=Killed()) if dies else None

    world.fault = fault
    with pytest.raises(Killed):
        world.driver(sink_id).run(cause, job)
    world.fault = lambda _operation, _path: None


def lose(world, marker):
    """Take away the hidden file of which ``marker`` is the content."""
    path = next(path for path in world.hidden() if world.files.files[path].content == marker)
    del world.files.files[path]


OFFSETS = b"v1\n{}\n{}"


def planned(batch_id):
    """A micro-batch as the checkpoint has it."""
    return micro_batch(batch_id, fingerprint=hashlib.sha256(OFFSETS).hexdigest())


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint that has planned batch 1 and committed none."""
    for name in ("commits", "offsets"):
        (tmp_path / name).mkdir()
    (tmp_path / "metadata").write_text(json.dumps({"id": QUERY}))
    (tmp_path / "offsets" / "1").write_bytes(OFFSETS)
    return str(tmp_path)


def test_nothing_to_recover():
    """On an empty base, and after good epochs, recovery does nothing."""
    world = World()
    assert world.maintenance().recover(Lost.RAISE, None).published == ()
    world.driver().run(micro_batch(0), world.job(records("1")))
    report = world.maintenance().recover(Lost.RAISE, None)
    assert (report.published, report.retracted, report.lost_rows, report.swept) == ((), (), 0, 0)


@pytest.mark.parametrize("uid", ["u", None])
def test_a_decided_epoch_is_carried_through(uid):
    """What a dead driver has decided becomes visible, and what it left is swept."""
    world = World(uid=uid)
    sink_id = "uid-u" if uid else "query-q"
    kill(world, "put_if_absent", micro_batch(0), world.job(records("garbage")), sink_id=sink_id)
    kill(world, "publish", micro_batch(0), world.job(records("1")), sink_id=sink_id)
    report = world.maintenance().recover(Lost.RAISE, None)
    assert [epoch.rows for epoch in report.published] == [1]
    assert report.swept == 1
    assert world.rows() == ["1"]
    assert world.hidden() == []


def test_a_named_write_of_a_sink_with_uid_is_carried_through():
    """Appends of each uid have a chain, and recovery of the sink that it belongs to finds it."""
    world = World()
    for uid, row in (("u", "1"), ("other", "2")):
        sink_id, cause = batch_write(SaveMode.APPEND, uid, "a", world.ids)
        kill(world, "publish", cause, world.job(records(row)), sink_id=sink_id)
    assert len(world.maintenance().recover(Lost.RAISE, None).published) == 1
    assert world.rows() == ["1"]


@pytest.mark.parametrize("sink_id", [txn_name("u", "a"), "uid-u"])
def test_a_write_that_an_earlier_release_has_decided_is_carried_through(sink_id):
    """Then a txn_id had a ledger of its own, and other writes with a uid were in that of its streams."""
    world = World()
    cause = BatchWrite(txn_id="a" if sink_id.startswith("txn-") else "")
    kill(world, "publish", cause, world.job(records("1")), sink_id=sink_id)
    assert len(world.maintenance().recover(Lost.RAISE, None).published) == 1
    assert world.rows() == ["1"]


def two_files_one_lost(world, cause=None):
    """A decided micro-batch of two files of which one was published and the other is gone."""
    world.driver().run(micro_batch(0), world.job(records("0")))
    files = records("1", bucket="a"), records("2", bucket="b")
    kill(world, "publish", cause or planned(1), world.job(*files), below="b/")
    lose(world, b"2\n")


def test_lost_bytes_are_named_first():
    """Without the user's word nothing is given up and nothing taken back."""
    world = World()
    two_files_one_lost(world)
    with pytest.raises(StagedDataLost):
        world.maintenance().recover(Lost.RAISE, None)
    assert not world.driver().ledger.head().complete


def test_a_sink_recovers_as_it_is_told(tmp_path, checkpoint):
    """What is lost and where the checkpoint is are the user's words, which FileSink hands on."""
    base = tmp_path / "base"
    base.mkdir()
    world = World(open_store=StoreAddress(base_path=str(base)))
    world.driver().run(micro_batch(0), world.job(records("0")))
    kill(world, "publish", planned(1), world.job(records("1", bucket="b")))
    next((base / "b").glob(".*")).unlink()
    sink = FileSink.for_row_format(base, Encoder.simple_string_encoder()).with_uid("u").build()
    with pytest.raises(StagedDataLost):
        sink.recover()
    assert sink.recover(lost="rewrite", checkpoint_location=checkpoint).retracted == (1,)


@pytest.mark.parametrize("gone", ["its file", "its directory"])
def test_what_is_given_up_is_first_gone_for_good(tmp_path, gone):
    """The loss is made durable before the rest is published, or a power cut could give the file back."""
    world = World(open_store=StoreAddress(base_path=str(tmp_path)))
    kill(world, "publish", planned(0), world.job([records("0", bucket="a"), records("1", bucket="b/c")]))
    if gone == "its directory":
        shutil.rmtree(tmp_path / "b")
    else:
        next((tmp_path / "b" / "c").glob(".*")).unlink()
    calls = []
    world.fault = lambda operation, _path: calls.append(operation)
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 1
    assert calls.index("sync_directories") < calls.index("publish")
    assert len(list((tmp_path / "a").glob("part-*"))) == 1


def test_a_copy_of_a_ledger_is_in_nobodys_way_who_has_a_uid(tmp_path):
    """A backup of another stream's ledger decides nothing for this one; only who asks for all meets it."""
    base = StoreAddress(base_path=str(tmp_path))
    world, every = (World(uid=uid, open_store=base) for uid in ("u", None))
    world.driver().run(micro_batch(0), world.job(records("0")))
    shutil.copytree(tmp_path / "_filesink" / "uid-u", tmp_path / "_filesink" / "uid-u.bak")
    assert world.maintenance().recover(Lost.RAISE, None).published == ()
    with pytest.raises(StateCorruptError, match=r"move it out of '_filesink'"):
        every.maintenance().recover(Lost.RAISE, None)


def test_accept_publishes_what_is_left():
    """The rows that are gone are counted, the others are visible, and the query goes on."""
    world = World()
    two_files_one_lost(world)
    report = world.maintenance().recover(Lost.ACCEPT, None)
    [published] = report.published
    assert (report.lost_rows, [file.bucket for file in published.files]) == (1, ["a"])
    assert published.already_committed
    assert world.rows() == ["0", "1"]
    world.driver().run(micro_batch(2), world.job(records("3")))
    assert world.rows() == ["0", "1", "3"]
    assert world.hidden() == []


def test_what_is_wrong_with_others_does_not_keep_a_sink_from_its_own():
    """An overwrite that cannot be carried through here is no reason to leave our epoch undone."""
    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(lambda _event: None)]))
    overwrite = BatchWrite(mode=SaveMode.OVERWRITE)
    world.driver(EXCLUSIVE).run(overwrite, world.job(records("1", bucket="p=1")))
    world.partition_commit = None
    world.driver().run(micro_batch(0), world.job(records("2", bucket="p=1")))
    for sink_id in (EXCLUSIVE, world.sink_id):
        world.store().delete(f"_filesink/{sink_id}/000000000000.complete")
    with pytest.raises(StateError):
        world.maintenance().recover(Lost.RAISE, None)
    assert f"_filesink/{world.sink_id}/000000000000.complete" in world.files.files


@pytest.mark.parametrize("cause", [planned(1), replace(planned(1), fingerprint="")], ids=["sink", "source"])
def test_rewrite_takes_the_epoch_back(checkpoint, cause):
    """What it has published is removed, and its replay writes each row once, also without a fingerprint."""
    world = World()
    two_files_one_lost(world, cause)
    with pytest.raises(StagedDataLost):
        world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == ["0", "1"]
    assert world.maintenance().recover(Lost.REWRITE, checkpoint).retracted == (1,)
    assert world.rows() == ["0"]
    world.driver().run(cause, world.job(records("1", "2")))
    assert world.rows() == ["0", "1", "2"]
    assert world.hidden() == []


def test_a_publication_that_is_late_finds_nothing_after_a_rewrite(checkpoint):
    """A server may yet carry out what it has answered with an error, and the rows would be there twice."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("0")))
    both = world.job(records("1", bucket="a"), records("2", bucket="b"))
    kill(world, "publish", planned(1), both)
    late, lost = world.ledger().head().record.committables.decode(CommittableCodec())
    world.store().discard(lost.staged.path)
    world.maintenance().recover(Lost.REWRITE, checkpoint)
    with pytest.raises(StagedDataLost):
        world.store().publish(late.staged, late.target)
    world.driver().run(planned(1), both)
    assert world.rows() == ["0", "1", "2"]


def test_the_slot_of_what_was_taken_back_is_not_used_again(checkpoint):
    """Its completion may be late: a record in that slot would be complete, and its files not visible."""
    world = World()
    two_files_one_lost(world)
    world.maintenance().recover(Lost.REWRITE, checkpoint)
    kill(world, "publish", planned(1), world.job(records("1", "2")))
    world.store().put_if_absent("_filesink/uid-u/000000000001.complete", b"")
    head = world.ledger().head()
    assert (head.record.slot, head.record.cause, head.complete) == (3, planned(1), False)
    assert world.driver().run(planned(1), world.job(records("1", "2"))).replayed
    assert world.rows() == ["0", "1", "2"]


def test_what_is_held_again_is_out_of_reach_of_late_calls():
    """Publication and removal of the epoch that was taken back know the old hidden name only."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("0", bucket="a"), records("9", bucket="b")))
    dies = Fault(moment=Moment.BEFORE, error=Killed())
    world.fault = lambda operation, _path: dies if operation == "publish" else None
    with pytest.raises(Killed):
        world.driver().finish()
    world.fault = lambda _operation, _path: None
    held, lost = world.ledger().head().record.committables.decode(CommittableCodec())
    world.store().discard(lost.staged.path)
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.retracted, report.lost_rows) == ((1,), 1)
    with pytest.raises(StagedDataLost):
        world.store().publish(held.staged, held.target)
    world.store().discard(held.staged.path)
    world.driver().finish()
    assert world.rows() == ["0"]
    assert world.hidden() == []


def dies_at(world, operation, ending, work):
    """``work`` is killed before its first call of a kind on a path that ends so."""
    dies = Fault(moment=Moment.BEFORE, error=Killed())
    world.fault = lambda asked, path: dies if asked == operation and path.endswith(ending) else None
    with pytest.raises(Killed):
        work()
    world.fault = lambda _operation, _path: None


def test_nothing_goes_before_it_is_decided(checkpoint):
    """The operator dies deciding, and the epoch's own completion comes late: then it is done after all."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("0")))
    both = world.job(records("1", bucket="a"), records("2", bucket="b"))
    dies_before_complete(world, 1, lambda: world.driver().run(planned(1), both))
    take_away(world, "b")
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, checkpoint)
    dies_at(world, "put_if_absent", "2.record", rewrite)
    assert world.rows() == ["0", "1"]
    world.ledger().complete(world.ledger().read(1))
    assert rewrite().retracted == ()
    assert world.driver().run(planned(1), both).replayed
    assert world.rows() == ["0", "1"]


@pytest.mark.parametrize("by", ["operator", "query"])
def test_an_epoch_that_is_being_taken_back_is_finished_by_whoever_comes(checkpoint, by):
    """Be it by the operator, called again, or by the query that starts."""
    world = World()
    two_files_one_lost(world)
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, checkpoint)
    dies_at(world, "delete", "", rewrite)
    if by == "operator":
        assert rewrite().retracted == (1,)
        assert world.rows() == ["0"]
    assert not world.driver().run(planned(1), world.job(records("1", "2"))).replayed
    assert world.rows() == ["0", "1", "2"]


def test_a_file_that_cannot_be_removed_now_is_taken_back_later(checkpoint):
    """Nothing counts as taken back before all of it is."""
    world = World()
    two_files_one_lost(world)
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, path: busy if operation == "delete" and path.startswith("a/") else None
    with pytest.raises(CommitFailedError):
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    world.fault = lambda _operation, _path: None
    assert not world.ledger().head().complete
    assert world.maintenance().recover(Lost.RAISE, None).retracted == (1,)
    assert world.rows() == ["0"]


def test_what_is_being_taken_back_is_not_swept():
    """A plan for a sweep, made between two calls, names nothing that the second one looks for."""
    world = World()
    two_files_one_lost(world, BatchWrite())
    dies_at(world, "discard", "", lambda: world.maintenance().recover(Lost.REWRITE, None))
    assert world.maintenance().plan_sweep(WEEK).files == ()


def old_part_is_published(world):
    """An epoch that publishes a part of an earlier one, and of whose own file nothing is left."""
    world.driver().run(micro_batch(0), world.job(records("0", bucket="old")))
    world.clock.now = 5000
    world.plan = plan_of(policy=keep_open(part_size=1))
    kill(world, "publish", planned(1), world.job([], records("1", bucket="new")))
    lose(world, b"1\n")


def test_accept_after_a_rewrite_that_died_loses_no_more(checkpoint):
    """What was held before the epoch has the name still under which the epoch publishes it."""
    world = World(plan=plan_of(policy=keep_open()))
    old_part_is_published(world)
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, checkpoint)
    dies_at(world, "put_if_absent", "2.record", rewrite)
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 1
    assert world.rows() == ["0"]


@pytest.mark.slow
def test_the_operator_may_die_anywhere(checkpoint):
    """What was held, and published by the epoch that is taken back, is there once in the end."""
    for moment in Moment:
        calls = 0
        for deadly in range(1, 1000):
            world = World(plan=plan_of(policy=keep_open()))
            old_part_is_published(world)
            calls = taken_back_until(deadly, moment, world, checkpoint)
            world.maintenance().recover(Lost.REWRITE, checkpoint)
            driver = world.driver()
            driver.run(planned(1), world.job([], records("1", bucket="new")))
            driver.finish()
            assert world.rows() == ["0", "1"], f"died at call {deadly}"
            assert world.hidden() == []
            if calls < deadly:
                break
        assert calls > 10, "each call was the last one once"


def test_a_refused_rewrite_leaves_no_copies(checkpoint):
    """Copies of what is held are made before it is known that one cannot be made."""
    world = World(plan=plan_of(policy=keep_open(part_size=5)))
    world.driver().run(micro_batch(0), world.job([records("0", bucket="x"), records("1", bucket="y")]))
    batch = world.job([records("2222", bucket="x"), records("3333", bucket="y")], records("4", bucket="z"))
    dies_at(world, "discard", "", lambda: world.driver().run(planned(1), batch))
    take_away(world, "y")
    (gone, left) = sorted(path for path in world.hidden() if parse_hidden(name_of(path)).slot == 0)
    world.store().discard(gone)
    before = world.hidden()
    with pytest.raises(IdentityError, match="begun to remove"):
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    assert world.hidden() == before
    assert left in before


def test_objects_that_are_held_again_are_copied():
    """A removal that the epoch's driver has asked for may come late, and knows the old object only."""
    bucket = FakeObjects()
    world = World(plan=plan_of(policy=keep_open()), open_store=lambda: store_of(bucket))
    world.driver().run(micro_batch(0), world.job(records("0", bucket="a"), records("9", bucket="b")))
    held = sorted(key for key in bucket.objects if "/." in key)
    dies_at(world, "discard", "", world.driver().finish)
    del bucket.objects[next(key for key in bucket.objects if key.startswith("b/part"))]
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (1,)
    for path in held:
        world.store().discard(path)
    world.driver().finish()
    visible = [data for key, (data, _) in sorted(bucket.objects.items()) if "/part" in key]
    assert visible == [b"0\n", b"9\n"]


def test_rewrite_keeps_the_rows_of_earlier_epochs(checkpoint):
    """A part of an earlier epoch that the lost one had published goes back to where it was held."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("0", bucket="old")))
    world.clock.now = 5000
    batch = world.job([], records("1", "2", bucket="new"))
    world.plan = plan_of(policy=keep_open(part_size=1))
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, path: busy if operation == "publish" and path < "old" else None
    with pytest.raises(CommitFailedError):
        world.driver().run(planned(1), batch)
    world.fault = lambda _operation, _path: None
    lose(world, b"1\n")
    with pytest.raises(StagedDataLost):
        world.maintenance().recover(Lost.RAISE, None)
    assert "0" in world.rows()
    world.maintenance().recover(Lost.REWRITE, checkpoint)
    assert world.rows() == []
    driver = world.driver()
    driver.run(planned(1), world.job([], records("1", "2", bucket="new")))
    driver.finish()
    assert world.rows() == ["0", "1", "2"]
    assert world.hidden() == []


def dies_before_complete(world, slot, work):
    """An epoch that has published and discarded everything, and whose driver dies before it is complete."""
    dies = Fault(moment=Moment.BEFORE, error=Killed())
    world.fault = lambda operation, path: (
        dies if operation == "put_if_absent" and path.endswith(f"{slot}.complete") else None
    )
    with pytest.raises(Killed):
        work()
    world.fault = lambda _operation, _path: None


def take_away(world, bucket):
    """Remove the visible files of a bucket, as somebody else would."""
    for path in world.visible():
        if path.startswith(f"{bucket}/"):
            del world.files.files[path]


@pytest.mark.parametrize("cause", ["micro-batch", "upkeep", "finish"])
def test_rewrite_spares_the_only_copy_of_earlier_rows(checkpoint, cause):
    """Rows of earlier epochs that were merged, and their segments removed, stay; accept loses no more."""
    world = World(plan=plan_of(policy=keep_open(part_size=5)))
    held = [records("0", bucket="x"), records("1", bucket="y")]
    world.driver().run(micro_batch(0), world.job(held))
    if cause == "micro-batch":
        batch = world.job([records("2222", bucket="x"), records("3333", bucket="y")])
        dies_before_complete(world, 1, lambda: world.driver().run(planned(1), batch))
        expected, lost_rows = ["0", "2222", "4"], 2
    else:
        world.plan = plan_of(policy=keep_open())
        world.driver().run(micro_batch(1), world.job([records("2", bucket="x"), records("3", bucket="y")]))
        world.clock.now = 5000
        dies_before_complete(world, 2, getattr(world.driver(), cause))
        expected, lost_rows = ["0", "2", "4"], 2
    take_away(world, "y")
    with pytest.raises(IdentityError, match="begun to remove what its files replace") as raised:
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    assert raised.value.code == "NO_REPLAY"
    assert world.rows() == expected[:2]
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == lost_rows
    driver = world.driver()
    driver.run(micro_batch(2), world.job(records("4")))
    driver.finish()
    assert world.rows() == expected


def test_rewrite_gets_back_what_can_be_had_where_nothing_is_left(checkpoint):
    """If the merged file itself is gone, taking back destroys nothing: the batch's own rows come again."""
    world = World(plan=plan_of(policy=keep_open(part_size=5)))
    world.driver().run(micro_batch(0), world.job(records("0")))
    dies_before_complete(world, 1, lambda: world.driver().run(planned(1), world.job(records("1111"))))
    for path in world.visible():
        del world.files.files[path]
    assert world.maintenance().recover(Lost.REWRITE, checkpoint).retracted == (1,)
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 1
    driver = world.driver()
    driver.run(planned(1), world.job(records("1111")))
    driver.finish()
    assert world.rows() == ["1111"]


def test_rewrite_of_an_epoch_that_spark_will_not_replay_is_refused(checkpoint, tmp_path):
    """If Spark has noted the batch as done, taking it back would lose it."""
    world = World()
    two_files_one_lost(world)
    (tmp_path / "commits" / "1").write_text("v1\n{}")
    with pytest.raises(IdentityError, match="will not replay it; use lost='accept'") as raised:
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    assert raised.value.code == "NO_REPLAY"
    assert world.driver().ledger.head().record.slot == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metadata", None),
        ("metadata", b"{"),
        ("metadata", b"[" * 100_000),
        ("metadata", b'{"id": "\xff"}'),
        ("metadata", b'{"id": "another"}'),
        ("offsets/1", None),
        ("offsets/1", b'v1\n{}\n{"logOffset": 9}'),
    ],
)
def test_rewrite_with_another_checkpoint_is_refused(checkpoint, tmp_path, name, content):
    """A checkpoint that did not plan the batch proves nothing about its replay; nothing is taken back."""
    world = World()
    two_files_one_lost(world)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(IdentityError) as raised:
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    assert raised.value.code == "WRONG_CHECKPOINT"
    assert world.driver().ledger.head().record.slot == 1
    assert "0" in world.rows()


def test_rewrite_needs_the_checkpoint():
    """Only the checkpoint tells whether the batch will come back."""
    world = World()
    two_files_one_lost(world)
    with pytest.raises(ConfigError, match="needs checkpoint_location") as raised:
        world.maintenance().recover(Lost.REWRITE, None)
    assert raised.value.code == "CHECKPOINT"


def test_accept_that_cannot_publish_says_so():
    """Files that are there and cannot be published now are not given up."""
    world = World()
    two_files_one_lost(world)
    busy = Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
    world.fault = lambda operation, path: busy if operation == "publish" and path.startswith("a/") else None
    with pytest.raises(StorageError):
        world.maintenance().recover(Lost.ACCEPT, None)
    assert not world.ledger().head().complete


def leftover(world, sink_id, slot, *, bucket="", age_ms=0):
    """A hidden file that an attempt of ``sink_id`` for ``slot`` has left."""
    name = HiddenName(target="part-0", tag=sink_tag(sink_id), slot=slot, attempt=world.ids.uuid())
    path = f"{bucket}/{name}" if bucket else str(name)
    world.files.make(path, b"x" * 10).mtime_ms = world.clock.now - age_ms
    return path


def test_sweep_removes_what_complete_slots_left():
    """A plan says what and why and touches nothing; sweeping removes just that."""
    world = World()
    for batch_id in range(3):
        world.driver().run(micro_batch(batch_id), world.job(records(str(batch_id))))
    dead = [leftover(world, "uid-u", slot, bucket="a/b") for slot in (0, 2)]
    alive = leftover(world, "uid-u", 3)
    plan = world.maintenance().plan_sweep(WEEK)
    assert sorted(file.path for file in plan.files) == sorted(dead)
    assert plan.bytes == 20
    assert "slot 2 is complete without it" in {file.reason for file in plan.files}
    assert set(world.hidden()) == {*dead, alive}
    world.maintenance().sweep(WEEK)
    assert world.hidden() == [alive]


def test_sweep_judges_stale_chains_by_age():
    """Only a sink that has not moved for long loses what was meant for its next slot."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    leftover(world, "uid-u", 1)
    world.clock.now = WEEK
    assert world.maintenance().sweep(WEEK).files == ()
    world.clock.now = WEEK + 1
    assert len(world.maintenance().sweep(WEEK).files) == 1


def test_sweep_spares_a_sink_that_works_again_after_a_long_time():
    """Files that are being written are young, however long the sink was idle before."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    world.clock.now = 10 * WEEK
    young = leftover(world, "uid-u", 1)
    assert world.maintenance().sweep(WEEK).files == ()
    assert world.hidden() == [young]


def test_sweep_spares_old_files_of_a_chain_that_moves():
    """A task may take longer than that, while upkeep of its sink goes on."""
    world = World()
    world.clock.now = 10 * WEEK
    world.driver().run(micro_batch(0), world.job(records("1")))
    old = leftover(world, "uid-u", 1, age_ms=2 * WEEK)
    assert world.maintenance().sweep(WEEK).files == ()
    assert world.hidden() == [old]


def test_sweep_spares_what_is_decided_while_it_looks():
    """A driver that decides when the search has begun keeps what its record names, be it old."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("1")))
    kill(world, "publish", micro_batch(1), world.job(records("2")))
    path = "_filesink/uid-u/000000000001.record"
    record = world.files.files.pop(path)
    world.clock.now = 10 * WEEK

    def decide(operation, directory):
        if (operation, directory) == ("list", ""):
            world.files.files[path] = record

    world.fault = decide
    assert world.maintenance().sweep(WEEK).files == ()
    world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == ["1", "2"]


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
@pytest.mark.parametrize("look", range(1, 7))
def test_sweep_spares_what_a_batch_write_decides_between_two_looks(look, mode):
    """Its files bear a tag of its own: the record that is found later tells nothing of an end."""
    world = World()

    def write(rows):
        sink_id, cause = batch_write(mode, world.uid, "", world.ids)
        return lambda: world.driver(sink_id).run(cause, world.job(records(rows)))

    write("1")()
    dies_at(world, "publish", "", write("2"))
    (path,) = (path for path in world.files.files if path.endswith("000000000001.record"))
    record = world.files.files.pop(path)
    looks = []

    def decide(operation, directory):
        looks.extend([directory] if (operation, directory) == ("list", path.rpartition("/")[0]) else [])
        if len(looks) == look:
            world.files.files.setdefault(path, record)

    world.fault = decide
    assert world.maintenance().sweep(WEEK).files == ()
    world.files.files.setdefault(path, record)
    world.fault = lambda _operation, _path: None
    world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == (["1", "2"] if mode is SaveMode.APPEND else ["2"])


@pytest.mark.parametrize("first_decide", ["never tried", "failed"])
def test_sweep_of_a_sink_that_never_decided(first_decide):
    """Without a record the file's own age is the judge, and what is left in its ledger goes too."""
    world = World()
    world.clock.now = 2 * WEEK
    young, old = leftover(world, "query-x", 0, age_ms=WEEK), leftover(world, "query-x", 0, age_ms=WEEK + 1)
    expected = [old]
    if first_decide == "failed":
        ages = {"1": WEEK, "2": WEEK + 1}
        for name, age_ms in ages.items():
            path = f"_filesink/query-x/.000000000000.record.put.{name}"
            world.files.make(path, b"half").mtime_ms = world.clock.now - age_ms
        expected.append("_filesink/query-x/.000000000000.record.put.2")
    assert [file.path for file in world.maintenance().plan_sweep(WEEK).files] == expected
    world.maintenance().sweep(WEEK)
    assert world.hidden() == [young]
    assert not set(expected) & set(world.files.files)


def test_sweep_spares_what_a_half_done_epoch_names():
    """Files that are still to be published are not garbage, however old."""
    world = World()
    kill(world, "publish", micro_batch(0), world.job(records("1")))
    world.clock.now = 10 * WEEK
    assert world.maintenance().sweep(WEEK).files == ()
    world.maintenance().recover(Lost.RAISE, None)
    assert world.rows() == ["1"]


def test_sweep_spares_open_parts_of_a_half_done_epoch():
    """A record that is still to be published carries on what was held before: these are rows, too."""
    world = World(plan=plan_of(policy=keep_open(part_size=4)))
    world.driver().run(micro_batch(0), world.job(records("1", bucket="a")))
    assert len(world.hidden()) == 1
    batch = world.job([records("22222", "3", bucket="b")])
    kill(world, "publish", micro_batch(1), batch)
    world.clock.now = 10 * WEEK
    assert world.maintenance().sweep(WEEK).files == ()
    world.maintenance().recover(Lost.RAISE, None)
    world.driver().finish()
    assert world.rows() == ["1", "22222", "3"]


def test_sweep_spares_what_a_half_done_merge_was_made_of():
    """If the merged file is lost, its inputs are all there is of their rows."""
    world = closing_dies("upkeep")
    assert world.maintenance().sweep(WEEK).files == ()
    lose(world, b"y0\ny1\n")
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 0
    world.driver().finish()
    assert world.rows() == ["x0", "x1", "y0", "y1", "z0"]


def test_sweep_spares_open_parts():
    """Held files that the last record names are rows, not garbage, also in a stale chain."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("1")))
    world.clock.now = 10 * WEEK
    assert world.maintenance().sweep(WEEK).files == ()
    world.driver().finish()
    assert world.rows() == ["1"]


def test_lost_bytes_of_an_open_part_have_a_way_out():
    """Held rows that are gone are named, given up only by the user's word, and the sink goes on."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("1"), records("2")))
    lose(world, b"1\n")
    with pytest.raises(StagedDataLost) as raised:
        world.driver().finish()
    assert raised.value.code != "NOT_SHARED"
    for lost in (Lost.RAISE, Lost.REWRITE):
        with pytest.raises(StagedDataLost, match="1 held files of 1 rows are gone") as raised:
            world.maintenance().recover(lost, None)
        assert raised.value.code == "HELD_LOST"
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 1
    driver = world.driver()
    assert driver.run(micro_batch(0), world.job(records("1", "2"))).replayed
    driver.run(micro_batch(1), world.job(records("3")))
    driver.finish()
    assert world.rows() == ["2", "3"]
    assert world.hidden() == []


@pytest.mark.parametrize(("lost", "left", "lost_rows"), [(0, ["8", "9"], 3), (1, ["0", "2", "8", "9"], 1)])
def test_a_part_without_its_header_is_lost_as_a_whole(lost, left, lost_rows):
    """Segments behind a header that is gone are unreadable and counted; those without one are lost alone."""
    form = Encoder.csv(header=True)
    world = World(plan=plan_of(form, keep_open()))
    for batch_id in range(3):
        world.driver().run(micro_batch(batch_id), world.job(records(str(batch_id), bucket="x")))
    del world.files.files[sorted(world.hidden(), key=lambda path: world.files.files[path].inode)[lost]]
    world.driver().run(micro_batch(3), world.job(records("8", bucket="y")))
    with pytest.raises(StagedDataLost, match=f"{lost_rows} held files of {lost_rows} rows"):
        world.maintenance().recover(Lost.RAISE, None)
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == lost_rows
    driver = world.driver()
    driver.run(micro_batch(4), world.job(records("9", bucket="y")))
    driver.finish()
    files = [data.decode().splitlines() for data in world.visible().values()]
    assert {lines[0] for lines in files} == {"value"}
    assert sorted(row for lines in files for row in lines[1:]) == left
    assert world.hidden() == []


def closing_dies(cause):
    """Two buckets of two segments, and one of a single one; their closing is decided, x is published."""
    world = World(plan=plan_of(policy=keep_open()))
    for batch_id, buckets in enumerate(("xyz", "xy")):
        parts = [records(f"{bucket}{batch_id}", bucket=bucket) for bucket in buckets]
        world.driver().run(micro_batch(batch_id), world.job(parts))
    world.clock.now = 5000

    def fault(operation, path):
        dies = operation == "publish" and path.startswith(("y/", "z/"))
        return Fault(moment=Moment.BEFORE, error=Killed()) if dies else None

    world.fault = fault
    with pytest.raises(Killed):
        getattr(world.driver(), cause)()
    world.fault = lambda _operation, _path: None
    return world


@pytest.mark.parametrize("cause", ["upkeep", "finish"])
def test_accept_takes_back_what_had_no_input(cause):
    """A merged file is gone, what it was made of is not: it is made again, and no row is lost."""
    world = closing_dies(cause)
    lose(world, b"y0\ny1\n")
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.retracted, report.published, report.lost_rows) == ((2,), (), 0)
    driver = world.driver()
    driver.run(micro_batch(2), world.job(records("x2", bucket="x")))
    driver.finish()
    assert world.rows() == ["x0", "x1", "x2", "y0", "y1", "z0"]
    assert world.hidden() == []


@pytest.mark.parametrize("cause", ["upkeep", "finish"])
def test_accept_gives_up_what_is_gone_of_an_epoch_without_input(cause):
    """One call takes it back and gives up the held rows that are nowhere; the query goes on at once."""
    world = closing_dies(cause)
    lose(world, b"y0\ny1\n")
    lose(world, b"z0\n")
    report = world.maintenance().recover(Lost.ACCEPT, None)
    assert (report.retracted, report.lost_rows) == ((2,), 1)
    driver = world.driver()
    driver.run(micro_batch(2), world.job(records("x2", bucket="x")))
    driver.finish()
    assert world.rows() == ["x0", "x1", "x2", "y0", "y1"]
    assert world.hidden() == []


def test_accept_of_a_batch_gives_up_all_rows_of_a_merged_file(checkpoint):
    """Its own rows would be missing from an epoch that is done: so rewrite is the way while it replays."""
    for lost, rows in ((Lost.ACCEPT, ["3333", "4"]), (Lost.REWRITE, ["0", "2222", "3333", "4"])):
        world = World(plan=plan_of(policy=keep_open(part_size=5)))
        world.driver().run(micro_batch(0), world.job(records("0", bucket="x")))
        batch = [records("2222", bucket="x"), records("3333", bucket="y")]
        kill(world, "publish", planned(1), world.job(batch))
        lose(world, b"0\n2222\n")
        assert world.maintenance().recover(lost, checkpoint).lost_rows == 2 * (lost is Lost.ACCEPT)
        driver = world.driver()
        driver.run(planned(1), world.job(batch))
        driver.run(micro_batch(2), world.job(records("4")))
        driver.finish()
        assert world.rows() == rows


def test_accept_gives_way_to_a_query_that_is_running():
    """Whose epoch is decided meanwhile is not called complete: its files are not visible yet."""
    world = World(plan=plan_of(policy=keep_open()))
    world.driver().run(micro_batch(0), world.job(records("1"), records("2")))
    lose(world, b"1\n")
    rival = replace(world.ledger().head().record, slot=1, nonce="rival")

    def decide(operation, path):
        if operation == "put_if_absent" and path.endswith("1.record"):
            world.fault = lambda _operation, _path: None
            world.ledger().decide(rival)

    world.fault = decide
    with pytest.raises(ConcurrentDriverError):
        world.maintenance().recover(Lost.ACCEPT, None)
    head = world.ledger().head()
    assert (head.record.nonce, head.complete) == ("rival", False)


def test_a_write_that_is_taken_back_may_be_repeated():
    """Its txn_id is forgotten with it, though it was remembered before the driver died."""
    world = World()
    sink_id, cause = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)
    dies = Fault(moment=Moment.BEFORE, error=Killed())
    world.fault = lambda operation, path: (
        dies if operation == "put_if_absent" and path.endswith("exclusive/000000000000.complete") else None
    )
    with pytest.raises(Killed):
        world.driver(sink_id).run(cause, world.job(records("1")))
    world.fault = lambda _operation, _path: None
    for path in world.visible():
        del world.files.files[path]
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (0,)
    assert not world.driver(sink_id).run(cause, world.job(records("1"))).replayed
    assert world.rows() == ["1"]
    assert world.driver(sink_id).run(cause, world.job(records("1"))).replayed


def test_a_claim_that_comes_late_finds_its_place_taken():
    """The driver dies claiming a txn_id: its write is taken back, and would be found again for ever."""
    world = World()
    sink_id, cause = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)
    claims = world.ledger().claims(cause.remembered_in)

    def write():
        again = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)[1]
        return world.driver(sink_id).run(again, world.job(records("1")))

    dies_at(world, "put_if_absent", ".claim", write)
    record = world.ledger(sink_id).head().record
    for path in world.hidden():
        del world.files.files[path]
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (0,)
    assert not claims.claim(record), "late, by the driver that was slow"
    assert not write().replayed
    assert not claims.claim(record)
    assert world.rows() == ["1"]
    assert write().replayed


def test_a_named_append_is_taken_back_to_the_end_by_a_sink_with_uid():
    """Whoever is called again finishes it, and the slot of what is void counts as done with."""
    world = World()
    sink_id, cause = batch_write(SaveMode.APPEND, world.uid, "a", world.ids)
    files = records("1", bucket="a"), records("2", bucket="b")
    kill(world, "publish", cause, world.job(*files), sink_id=sink_id, below="b/")
    lose(world, b"2\n")
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, None)
    dies_at(world, "put_if_absent", "1.complete", rewrite)
    assert rewrite().retracted == (0,)
    assert world.rows() == []
    assert world.ledger(sink_id).history.unfinished() == []
    assert world.ledger(sink_id).directory.listing().unfinished() == ()
    assert not world.driver(sink_id).run(cause, world.job(*files)).replayed
    assert world.rows() == ["1", "2"]


def named_write_is_lost():
    """An overwrite with a txn_id that is remembered and not complete, and whose files are gone."""
    world = World()
    sink_id, cause = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)

    def write():
        return world.driver(sink_id).run(cause, world.job(records("1")))

    dies_before_complete(world, "exclusive/000000000000", write)
    for path in world.visible():
        del world.files.files[path]
    return world, write


def taken_back_until(deadly, moment, world, checkpoint):
    """``recover(lost="rewrite")`` dies at the n-th call; returns how many calls there were."""
    calls = 0

    def dies(_operation, _path):
        nonlocal calls
        calls += 1
        return Fault(moment=moment, error=Killed()) if calls == deadly else None

    world.fault = dies
    with suppress(Killed):
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    world.fault = lambda _operation, _path: None
    return calls


@pytest.mark.parametrize("moment", list(Moment))
def test_an_operator_who_dies_while_taking_back_a_named_write_begins_again(moment):
    """Wherever he dies, its txn_id never says that it is written while its rows are nowhere."""
    calls = 0
    for deadly in range(1, 1000):
        world, write = named_write_is_lost()
        calls = taken_back_until(deadly, moment, world, None)
        with suppress(StagedDataLost):  # there is something left to be done, and the writer is told
            write()
            assert world.rows() == ["1"], f"died at call {deadly}"
        world.maintenance().recover(Lost.REWRITE, None)
        write()
        assert world.rows() == ["1"], f"died at call {deadly}"
        if calls < deadly:
            break
    assert calls > 10, "each call was the last one once"


def test_a_named_write_is_remembered_before_it_counts_as_accepted():
    """An operator who dies when it is complete leaves no txn_id that would be written a second time."""
    world = World()
    sink_id, cause = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)
    files = records("1", bucket="a"), records("2", bucket="b")
    kill(world, "publish", cause, world.job(*files), sink_id=sink_id, below="b/")
    lose(world, b"2\n")
    world.fault = lambda operation, path: (
        Fault(moment=Moment.AFTER, error=Killed())
        if operation == "put_if_absent" and path.endswith("exclusive/000000000000.complete")
        else None
    )
    with pytest.raises(Killed):
        world.maintenance().recover(Lost.ACCEPT, None)
    world.fault = lambda _operation, _path: None
    assert world.driver(sink_id).run(cause, world.job(*files)).replayed
    assert world.rows() == ["1"]


def test_giving_up_held_rows_publishes_and_announces_nothing():
    """Its epoch has no files, so a driver that carries it through finds none, and tells nobody."""
    heard = []
    world = World(
        plan=plan_of(policy=keep_open(part_size=4)),
        partition_commit=PartitionCommit(policies=[ListenerPolicy(heard.append)]),
    )
    world.driver().run(
        micro_batch(0), world.job([records("1", bucket="a"), records("22222", "3", bucket="b")])
    )
    lose(world, b"1\n")
    dies_before_complete(world, 1, lambda: world.maintenance().recover(Lost.ACCEPT, None))
    for path in world.visible():  # merged by others since, say
        del world.files.files[path]
    heard.clear()
    outcome = world.driver().recover()
    assert (outcome.slot, outcome.rows, list(outcome.committables), heard) == (1, 0, [], [])


def test_partitions_of_an_accepted_epoch_are_announced():
    """What is left of it is visible, so it is announced, as one that may have been before."""
    heard = []
    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(heard.append)]))
    two_files_one_lost(world)
    heard.clear()
    world.maintenance().recover(Lost.ACCEPT, None)
    assert [(event.bucket, event.may_be_repeated) for event in heard if event.bucket == "a"] == [("a", True)]


def test_accepting_a_loss_does_not_give_up_what_cannot_be_published_now():
    """The epoch stays as it is decided, and the next call carries it through."""
    world = World()
    two_files_one_lost(world)
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=StorageError("busy", code="BUSY"))
        if operation == "publish"
        else None
    )
    with pytest.raises(StorageError) as raised:
        world.maintenance().recover(Lost.ACCEPT, None)
    assert raised.value.code == "RETRY"
    world.fault = lambda _operation, _path: None
    assert world.maintenance().recover(Lost.ACCEPT, None).lost_rows == 1


def test_policies_are_closed_when_an_epoch_was_accepted(monkeypatch):
    """An operator's call leaves no connection to a metastore behind."""
    closed = []
    monkeypatch.setattr(ListenerPolicy, "close", lambda _policy: closed.append("closed"))
    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(print)]))
    two_files_one_lost(world)
    before = len(closed)
    world.maintenance().recover(Lost.ACCEPT, None)
    assert len(closed) == before + 2, "by the loop that found the loss, and by who accepts it"


@pytest.mark.parametrize("moment", list(Moment))
def test_an_operator_who_dies_while_taking_back_begins_again(checkpoint, moment):
    """At whichever call of the store, before or after it: the replayed batch is there once."""
    calls = 0
    for deadly in range(1, 1000):
        world = World()
        two_files_one_lost(world)
        calls = taken_back_until(deadly, moment, world, checkpoint)
        world.maintenance().recover(Lost.REWRITE, checkpoint)
        world.driver().run(planned(1), world.job(records("1", "2")))
        assert world.rows() == ["0", "1", "2"], f"died at call {deadly}"
        if calls < deadly:
            break
    assert calls > 10, "each call was the last one once"


# --- what was found by reading how an epoch is taken back


def being_taken_back(world, checkpoint):
    """An operator decides that an epoch is void, and dies before anything of it is gone."""
    world.driver().run(micro_batch(0), world.job(records("0", bucket="a")))
    files = records("1", bucket="a"), records("2", bucket="b")
    kill(world, "publish", planned(1), world.job(*files), below="b/")
    lose(world, b"2\n")
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, checkpoint)
    dies_at(world, "discard", "", rewrite)
    return rewrite


def test_files_that_are_being_taken_back_are_not_merged(checkpoint):
    """The merged file would keep rows that come again."""
    world = World()
    rewrite = being_taken_back(world, checkpoint)
    assert compact(world, 0) is None
    assert rewrite().retracted == (1,)
    world.driver().run(planned(1), world.job(records("1", bucket="a"), records("2", bucket="b")))
    assert world.rows() == ["0", "1", "2"]


def test_readers_know_what_a_merge_that_is_being_taken_back_has_superseded():
    """Merged files and their inputs stand beside each other until it is done."""
    world = World()
    for number, (value, bucket) in enumerate([("0", "a"), ("1", "b"), ("2", "a"), ("3", "b")]):
        world.driver().run(micro_batch(number), world.job(records(value, bucket=bucket)))
    dies = Fault(moment=Moment.BEFORE, error=Killed())
    world.fault = lambda operation, path: dies if operation == "publish" and path.startswith("b/") else None
    with pytest.raises(Killed):
        compact(world, 1000)
    world.fault = lambda _operation, _path: None
    world.store().discard(next(path for path in world.hidden() if path.startswith("b/")))
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, None)
    dies_at(world, "discard", "", rewrite)
    assert rows_once(world) == ["0", "1", "2", "3"]
    rewrite()
    assert rows_once(world) == world.rows() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("bucket", ["b", "b/c"])
def test_an_epoch_whose_directory_is_gone_is_taken_back(checkpoint, tmp_path, bucket):
    """Who removed the file removed the bucket with it: there is nothing left in it to make durable."""
    base = tmp_path / "base"
    base.mkdir()
    world = World(open_store=StoreAddress(base_path=str(base)))
    world.driver().run(micro_batch(0), world.job(records("0")))
    files = records("1", bucket="a"), records("2", bucket=bucket)
    kill(world, "publish", planned(1), world.job(*files), below="b/")
    shutil.rmtree(base / "b")
    assert world.maintenance().recover(Lost.REWRITE, checkpoint).retracted == (1,)
    assert not world.driver().run(planned(1), world.job(*files)).replayed
    left = [path for path in base.rglob("*/*") if "_filesink" not in path.parts and path.is_file()]
    assert sorted(path.read_bytes() for path in left) == [b"1\n", b"2\n"]


def test_an_epoch_that_is_completed_meanwhile_is_not_taken_back(checkpoint):
    """Files come back while the operator copies, a query publishes them, and Spark will not replay."""
    world = World(plan=plan_of(policy=keep_open()))
    old_part_is_published(world)

    def completed(operation, _path):
        if operation == "concat":
            world.fault = lambda _operation, _path: None
            world.ledger().complete(world.ledger().read(1))

    world.fault = completed
    with pytest.raises(ConcurrentDriverError, match="completed meanwhile"):
        world.maintenance().recover(Lost.REWRITE, checkpoint)
    assert world.ledger().head().record.slot == 1


def test_what_was_held_and_is_lost_may_be_put_back(checkpoint):
    """Its rows came with an earlier epoch: no call removes the name that the state has for it."""
    world = World(plan=plan_of(policy=keep_open()))
    old_part_is_published(world)
    path = next(path for path in world.hidden() if path.startswith("old/"))
    saved = world.files.files.pop(path)
    rewrite = partial(world.maintenance().recover, Lost.REWRITE, checkpoint)
    dies_at(world, "sync_directories", "", rewrite)
    world.files.files[path] = saved
    assert rewrite().retracted == (1,)
    driver = world.driver()
    driver.run(planned(1), world.job([], records("1", bucket="new")))
    driver.finish()
    assert world.rows() == ["0", "1"]


def test_a_txn_id_that_was_taken_back_names_nothing():
    """What stands in its place has neither files nor columns, and is not found."""
    world = World()
    overwrite, cause = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)
    world.driver(EXCLUSIVE).run(BatchWrite(mode=SaveMode.OVERWRITE), world.job(records("0")))
    kill(world, "publish", cause, world.job(records("1")), sink_id=overwrite)
    lose(world, b"1\n")
    assert world.maintenance().recover(Lost.REWRITE, None).retracted == (1,)
    assert find_write(cause, world.ledger(overwrite)) is None


def test_a_txn_id_that_an_append_has_claimed_meanwhile_is_not_taken_from_it():
    """A slow driver of an overwrite is void; its files are discarded, and nothing is replaced."""
    world = World()
    world.driver().run(micro_batch(0), world.job(records("0")))
    sink_id, cause = batch_write(SaveMode.OVERWRITE, world.uid, "t", world.ids)
    dies_at(
        world, "put_if_absent", ".claim", lambda: world.driver(sink_id).run(cause, world.job(records("1")))
    )
    append, other = batch_write(SaveMode.APPEND, world.uid, "t", world.ids)
    world.driver(append).run(other, world.job(records("1")))
    assert world.maintenance().recover(Lost.RAISE, None).published == ()
    assert world.rows() == ["0", "1"]
    assert world.hidden() == []
    assert world.ledger(EXCLUSIVE).head().complete


@pytest.mark.parametrize("ahead", [2 * WEEK, 0, -2 * WEEK])
@pytest.mark.parametrize("sink_id", ["uid-u", "query-new"])
def test_sweep_goes_by_the_clock_of_the_store(sink_id, ahead):
    """A host whose clock is wrong takes no file away that is being written, and leaves none that is old."""
    world = World()
    world.clock.now = 10 * WEEK
    if sink_id == "uid-u":
        world.driver().run(micro_batch(0), world.job(records("1")))
    else:
        world.store().prepare()
    young = leftover(world, sink_id, 1)
    operators = World(clock=SettableClock(now=world.clock.now + ahead))
    operators.files = world.files
    assert operators.maintenance().sweep(WEEK).files == ()
    assert world.hidden() == [young]
    world.clock.now += WEEK + 1
    operators.clock.now += WEEK + 1
    assert [file.path for file in operators.maintenance().sweep(WEEK).files] == [young]
    assert world.files.files.keys() == {path for path in world.files.files if ".probe." not in path}


def test_sweep_spares_a_chain_that_moves_by_a_clock_that_is_slow():
    """Whether a sink has moved is known by the store, too, whatever its driver takes for the time."""
    world = World()
    world.clock.now = 10 * WEEK
    world.driver().run(micro_batch(0), world.job(records("1")))
    world.files.now_ms = lambda: 20 * WEEK
    world.driver().run(micro_batch(1), world.job(records("2")))
    old = leftover(world, "uid-u", 2, age_ms=2 * WEEK)
    assert world.maintenance().sweep(WEEK).files == ()
    assert world.hidden() == [old]


def test_a_sweep_of_nothing_makes_nothing():
    """Where no sink has ever been, not even the time is asked for."""
    world = World()
    world.maintenance().sweep(WEEK)
    assert world.files.files == {}


def test_a_chain_that_was_longer_is_not_swept():
    """Newest records and their marks are lost, as from an old backup: a hidden file bears witness."""
    world = World(plan=plan_of(policy=keep_open()))
    for batch in range(4):
        world.driver().run(micro_batch(batch), world.job(records(f"{batch}")))
    for slot in (1, 2, 3):
        for kind in ("record", "complete"):
            del world.files.files[f"_filesink/uid-u/{slot:012d}.{kind}"]
    held = world.hidden()
    for call in (lambda: world.maintenance().recover(Lost.RAISE, None), lambda: world.maintenance().sweep(1)):
        with pytest.raises(StateCorruptError, match="its ledger ends with epoch 0") as raised:
            call()
        assert raised.value.code == "LOST_TAIL"
    assert world.hidden() == held


def test_a_sink_that_was_begun_anew_beside_old_data_is_told_of_them(caplog):
    """Visible files of a longer chain are a hint, and no more."""
    world = World()
    for batch in range(3):
        world.driver().run(micro_batch(batch), world.job(records(f"{batch}")))
    for path in [path for path in world.files.files if path.startswith("_filesink/")]:
        del world.files.files[path]
    world.driver().run(micro_batch(0), world.job(records("new")))
    world.maintenance().recover(Lost.RAISE, None)
    assert "its newest records may be lost" in caplog.text
    assert world.rows() == ["0", "1", "2", "new"]


def test_listeners_hear_of_what_is_recovered():
    """As of any epoch that a later driver completes."""
    told = []
    audience = Listeners("/base", [told.append])
    world = World()
    world.fault = lambda operation, _path: (
        Fault(moment=Moment.BEFORE, error=KeyboardInterrupt()) if operation == "publish" else None
    )
    with pytest.raises(KeyboardInterrupt):
        world.driver().run(micro_batch(0), world.job(records("a")))
    world.fault = lambda _operation, _path: None
    Maintenance(world.tiers(), clock=world.clock, ids=world.ids, audience=audience).recover(Lost.RAISE, None)
    assert [(type(event).__name__, event.recovered) for event in told] == [
        ("EpochVisible", True),
        ("EpochComplete", True),
    ]
