"""Whose ledger an epoch belongs to: never silent duplicates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.commit.replay import OnGap
from filesink.errors import ConfigError, IdentityError
from filesink.ledger.identity import EXCLUSIVE, OnNewQuery, batch_write, check_uid, stream_sink_id, txn_name
from filesink.ledger.record import BatchWrite
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import ListenerPolicy
from filesink.save_mode import SaveMode
from tests.fakes import QUERY, CountingIds, World, keep_open, micro_batch, plan_of, records


def run(world, cause, value, *, sink_id=None, **options):
    """One epoch of one row by a driver that has just started."""
    return world.driver(sink_id, **options).run(cause, world.job(records(value)))


@pytest.mark.parametrize("uid", ["a", "A-b_c.1", "0", "x" * 100])
def test_usable_uids(uid):
    """Letters, digits and three marks name a directory everywhere."""
    assert check_uid(uid) == uid


@pytest.mark.parametrize(
    "uid", ["", ".a", "-a", "_a", "a/b", "a b", "é", "x" * 101, "a\n", "..", None, 7, b"a"]
)
def test_unusable_uids(uid):
    """Anything else is refused when the sink is built."""
    with pytest.raises(ConfigError) as raised:
        check_uid(uid)
    assert raised.value.code == "BAD_VALUE"


def test_ids_of_streams():
    """With a uid one chain for all checkpoints, else one per query."""
    assert stream_sink_id("u", "q") == "uid-u"
    assert stream_sink_id(None, "q") == "query-q"


def test_ids_of_batch_writes():
    """Writes that append share a chain beside that of a stream of the same uid; others exclude each other."""
    ids = CountingIds()
    assert batch_write(SaveMode.APPEND, "u", "", ids)[0] == "appends-u"
    assert batch_write(SaveMode.APPEND, None, "", ids)[0] == "appends"
    assert batch_write(SaveMode.OVERWRITE, "u", "", ids)[0] == EXCLUSIVE
    writers = {batch_write(SaveMode.APPEND, "u", "a", ids)[1].writer for _ in range(3)}
    assert len(writers) == 3, "files of two writes must never bear the same tag"
    names = {txn_name(*pair) for pair in ((None, "a"), ("u", "a"), ("v", "a"), (None, "ua"))}
    assert len(names) == 4
    assert txn_name("u", "a") == batch_write(SaveMode.OVERWRITE, "u", "a", ids)[1].remembered_in


@pytest.mark.parametrize(
    ("uid", "name"),
    [("u", "txn-904bafcdae50bf4e81958b67615972d5"), (None, "txn-022a6979e6dab7aa5ae4c3e5e45f7e97")],
)
def test_a_txn_id_is_found_by_every_release(uid, name):
    """Under another name it would not be known any more, and its rows would be written again."""
    assert txn_name(uid, "a") == name


def test_a_txn_id_cannot_name_a_path():
    """Whatever the user's text, the ledger's name is a hash of it."""
    assert txn_name(None, "../../etc").removeprefix("txn-").isalnum()


def test_a_known_uid_with_a_new_checkpoint_is_refused():
    """A query that starts over would write its source again."""
    world = World()
    run(world, micro_batch(0), "1")
    with pytest.raises(IdentityError, match="Only if its rows are others") as raised:
        run(world, micro_batch(0, query_id="new"), "1")
    assert raised.value.code == "NEW_QUERY_OLD_DATA"
    assert world.rows() == ["1"]


def test_a_known_uid_with_a_new_checkpoint_may_append():
    """With the user's word the new query writes, and its replays are known from then on."""
    world = World()
    run(world, micro_batch(0), "1")
    allowed = {"on_new_query": OnNewQuery.APPEND}
    new = micro_batch(0, query_id="new")
    assert not run(world, new, "2", **allowed).replayed
    assert run(world, new, "2", **allowed).replayed
    assert run(world, new, "2").replayed
    assert world.rows() == ["1", "2"]


def test_two_queries_that_take_turns_know_their_batches():
    """With append, each of two queries of one uid replays its own batches."""
    world = World()
    allowed = {"on_new_query": OnNewQuery.APPEND}
    for batch_id in range(3):
        for query in "ab":
            cause = micro_batch(batch_id, query_id=query)
            assert not run(world, cause, f"{query}{batch_id}", **allowed).replayed
    for query in "ab":
        assert run(world, micro_batch(2, query_id=query), f"{query}2", **allowed).replayed
    assert len(world.rows()) == 6


def test_a_stream_without_uid_beside_another_is_refused():
    """A deleted checkpoint makes a new query id; its rows are there already."""
    world = World(uid=None)
    run(world, micro_batch(0), "1", sink_id="query-a")
    with pytest.raises(IdentityError, match="the ledger of another stream, 'query-a'") as raised:
        run(world, micro_batch(0, query_id="b"), "1", sink_id="query-b")
    assert raised.value.code == "NEW_QUERY_OLD_DATA"
    run(world, micro_batch(0, query_id="b"), "2", sink_id="query-b", on_new_query=OnNewQuery.APPEND)
    run(world, micro_batch(1, query_id="b"), "3", sink_id="query-b")
    assert world.rows() == ["1", "2", "3"]


def test_a_stream_without_uid_may_follow_a_batch_write_with_one():
    """A batch write has read no source that the stream would read again."""
    world = World()
    run(world, BatchWrite(), "b", sink_id="uid-backfill")
    run(world, micro_batch(0), "s", sink_id=f"query-{QUERY}")
    assert world.rows() == ["b", "s"]


def test_a_stream_without_uid_beside_one_with_a_uid_is_refused():
    """Who leaves out the uid that wrote here, and the checkpoint too, would write the source again."""
    world = World()
    run(world, micro_batch(0), "1", sink_id="uid-u")
    before = world.files.files.copy()
    with pytest.raises(IdentityError, match="the ledger of another stream, 'uid-u'") as raised:
        run(world, micro_batch(0, query_id="b"), "1", sink_id="query-b")
    assert raised.value.code == "NEW_QUERY_OLD_DATA"
    assert world.files.files == before
    run(world, micro_batch(0, query_id="b"), "2", sink_id="query-b", on_new_query=OnNewQuery.APPEND)
    assert world.rows() == ["1", "2"]


def test_batch_writes_do_not_stand_in_the_way_of_a_stream():
    """A stream may start on a base that only batch writes have used."""
    world = World(uid=None)
    for row, txn_id in (("1", ""), ("2", "t")):
        sink_id, cause = batch_write(SaveMode.APPEND, None, txn_id, world.ids)
        run(world, cause, row, sink_id=sink_id)
    run(world, micro_batch(0), "3", sink_id="query-a")
    assert world.rows() == ["1", "2", "3"]


def test_streams_with_uids_do_not_disturb_each_other():
    """Two sinks with uids share a base."""
    world = World()
    run(world, micro_batch(0, query_id="a"), "1", sink_id="uid-a")
    run(world, micro_batch(0, query_id="b"), "2", sink_id="uid-b")
    assert world.rows() == ["1", "2"]


@pytest.mark.parametrize("sink_id", ["uid-u", "query-q"])
def test_a_query_without_its_ledger_is_refused(sink_id):
    """A query that is at batch 5 and has written nothing here went elsewhere, or the mount is gone."""
    world = World()
    with pytest.raises(IdentityError, match="arrives with batch 5 but has no ledger") as raised:
        run(world, micro_batch(5), "1", sink_id=sink_id)
    assert raised.value.code == "NO_LEDGER"
    assert world.contents() == {}
    run(world, micro_batch(5), "1", sink_id=sink_id, on_new_query=OnNewQuery.APPEND)


def test_batch_writes_of_a_uid_are_no_ledger_of_a_stream():
    """A chain that only batch writes have used does not vouch for a stream that is at batch 5."""
    world = World()
    run(world, BatchWrite(), "1")
    with pytest.raises(IdentityError) as raised:
        run(world, micro_batch(5), "2")
    assert raised.value.code == "NO_LEDGER"
    run(world, micro_batch(0), "2")
    run(world, BatchWrite(), "3")
    assert run(world, micro_batch(0), "2").replayed
    assert world.rows() == ["1", "2", "3"]


RENAMED = [(f"query-{QUERY}", "uid-u"), ("uid-old", "uid-u"), ("uid-old", f"query-{QUERY}")]


@pytest.mark.parametrize(("old", "new"), RENAMED)
def test_a_decided_batch_under_another_name_is_refused(old, new):
    """The uid is added, changed or dropped before Spark has noted batch 0: its rows are there once."""
    world = World()
    run(world, micro_batch(0), "1", sink_id=old)
    before = world.files.files.copy()
    with pytest.raises(IdentityError, match=rf"has written here as '{old}' up to batch 0") as raised:
        run(world, micro_batch(0), "1", sink_id=new)
    assert raised.value.code == "UID_CHANGED"
    assert world.files.files == before
    assert run(world, micro_batch(0), "1", sink_id=old).replayed
    assert world.rows() == ["1"]


@pytest.mark.parametrize(("old", "new"), RENAMED)
def test_a_query_that_returns_to_an_old_name_is_refused(old, new):
    """What it has decided under the name in between is known there only: its rows would be there twice."""
    world = World()
    run(world, micro_batch(0), "0", sink_id=old)
    run(world, micro_batch(1), "1", sink_id=new, on_new_query=OnNewQuery.APPEND)
    with pytest.raises(IdentityError) as raised:
        run(world, micro_batch(1), "1", sink_id=old, on_gap=OnGap.REFUSE)
    assert raised.value.code == "UID_CHANGED"
    assert world.rows() == ["0", "1"]
    run(world, micro_batch(2), "2", sink_id=old)
    assert world.rows() == ["0", "1", "2"]


def test_a_run_that_begins_after_its_upkeep_is_looked_at_as_any_other():
    """The timer may come before the first batch, or a run before it: then the chain is known, not the run."""
    world = World()
    run(world, micro_batch(0), "0", sink_id="uid-old")
    old = world.driver("uid-old")
    old.upkeep()
    run(world, micro_batch(1), "1", sink_id="uid-new", on_new_query=OnNewQuery.APPEND)
    for run_id in ("run-1", "run-2"):
        with pytest.raises(IdentityError) as raised:
            old.run(micro_batch(1), replace(world.job(records("1")), run_id=run_id))
        assert raised.value.code == "UID_CHANGED"
        old.upkeep()
    assert world.rows() == ["0", "1"]


def test_two_sinks_of_one_query_do_not_mind_each_other():
    """One of them is always a batch ahead, also when a driver dies between them."""
    world = World()
    allowed = {"on_new_query": OnNewQuery.APPEND}
    for batch_id in range(3):
        for uid in "ab":
            run(world, micro_batch(batch_id), f"{uid}{batch_id}", sink_id=f"uid-{uid}", **allowed)
            allowed = allowed if batch_id == 0 else {}
    assert len(world.rows()) == 6


@pytest.mark.parametrize(("old", "new"), RENAMED)
@pytest.mark.parametrize("action", OnNewQuery)
def test_open_parts_under_another_name_are_not_left_behind(old, new, action):
    """Whatever was allowed: the old chain is finished first, then the new one may go on."""
    world = World(plan=plan_of(policy=keep_open()))
    run(world, micro_batch(0), "1", sink_id=old)
    with pytest.raises(IdentityError, match="but open parts") as raised:
        run(world, micro_batch(1), "2", sink_id=new, on_new_query=action)
    assert raised.value.code == "UID_CHANGED"
    world.driver(old).finish()
    run(world, micro_batch(1), "2", sink_id=new, on_new_query=OnNewQuery.APPEND)
    world.driver(new).finish()
    assert world.rows() == ["1", "2"]
    assert world.hidden() == []


def test_an_unfinished_epoch_under_another_name_is_not_left_behind():
    """What is decided and not published would stay hidden for ever."""
    world = World()
    run(world, micro_batch(0), "1", sink_id="uid-old")
    del world.files.files["_filesink/uid-old/000000000000.complete"]
    allowed = {"sink_id": "uid-new", "on_new_query": OnNewQuery.APPEND}
    with pytest.raises(IdentityError, match="an unfinished epoch of it") as raised:
        run(world, micro_batch(1), "2", **allowed)
    assert raised.value.code == "UID_CHANGED"
    world.driver("uid-old").recover()
    run(world, micro_batch(1), "2", **allowed)
    assert world.rows() == ["1", "2"]


def test_waiting_partitions_under_another_name_are_not_left_behind():
    """Nobody would ever announce them: the end of the old chain does, and then the new one may go on."""
    told = []
    world = World(partition_commit=PartitionCommit(policies=[ListenerPolicy(told.append)], delay="1 h"))
    allowed = {"sink_id": "uid-new", "on_new_query": OnNewQuery.APPEND}
    run(world, micro_batch(0), "1", sink_id="uid-old")
    with pytest.raises(IdentityError, match="partitions that wait to be announced of it") as raised:
        run(world, micro_batch(1), "2", **allowed)
    assert raised.value.code == "UID_CHANGED"
    world.driver("uid-old").finish()
    assert [event.rows for event in told] == [1]
    run(world, micro_batch(1), "2", **allowed)
    assert world.rows() == ["1", "2"]


def test_a_query_that_has_left_nothing_under_its_old_name_takes_the_users_word():
    """It asks as any query does whose ledger is not here, and goes on once that is allowed."""
    world = World()
    run(world, micro_batch(0), "1", sink_id="uid-old")
    with pytest.raises(IdentityError) as raised:
        run(world, micro_batch(1), "2", sink_id="uid-new")
    assert raised.value.code == "NO_LEDGER"
    run(world, micro_batch(1), "2", sink_id="uid-new", on_new_query=OnNewQuery.APPEND)
    assert world.rows() == ["1", "2"]


def test_a_uid_that_another_query_has_used_is_checked_as_well():
    """A change to a uid that is taken leaves no more behind than one to a new uid."""
    world = World(plan=plan_of(policy=keep_open()))
    run(world, micro_batch(0, query_id="b"), "b", sink_id="uid-u")
    run(world, micro_batch(0), "1", sink_id="uid-old")
    with pytest.raises(IdentityError) as raised:
        run(world, micro_batch(1), "2", sink_id="uid-u", on_new_query=OnNewQuery.APPEND)
    assert raised.value.code == "UID_CHANGED"


def test_two_sinks_of_one_query_share_a_base_if_that_is_allowed():
    """The second cannot be told from a changed uid when it begins; from then on each knows its batches."""
    world = World(plan=plan_of(policy=keep_open()))
    run(world, micro_batch(0), "a0", sink_id="uid-a")
    with pytest.raises(IdentityError, match="a second sink of the same query is allowed") as raised:
        run(world, micro_batch(0), "b0", sink_id="uid-b")
    assert raised.value.code == "UID_CHANGED"
    run(world, micro_batch(0), "b0", sink_id="uid-b", on_new_query=OnNewQuery.APPEND)
    for name in "ab":
        run(world, micro_batch(1), f"{name}1", sink_id=f"uid-{name}")
        world.driver(f"uid-{name}").finish()
    assert world.rows() == ["a0", "a1", "b0", "b1"]


def test_damage_of_another_chain_stands_in_nobodys_way():
    """A query may begin, and start again, beside a stream that has lost a record."""
    world = World()
    for batch_id in range(2):
        run(world, micro_batch(batch_id, query_id="b"), f"b{batch_id}", sink_id="uid-old")
    del world.files.files["_filesink/uid-old/000000000000.record"]
    for batch_id in range(2):
        run(world, micro_batch(batch_id), f"{batch_id}")
    assert world.rows() == ["0", "1", "b0", "b1"]


def test_a_query_is_looked_for_elsewhere_once_per_start():
    """Other chains cost nothing once a driver has written to its own."""
    read = []
    world = World()
    for name in "ab":
        run(world, micro_batch(0, query_id=name), name, sink_id=f"uid-{name}")
    driver = world.driver("uid-a")
    driver.run(micro_batch(1, query_id="a"), world.job(records("a1")))
    world.fault = lambda operation, path: read.append((operation, path))
    driver.run(micro_batch(2, query_id="a"), world.job(records("a2")))
    assert read
    assert not [path for _, path in read if "uid-b" in path]
