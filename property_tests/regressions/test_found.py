"""What the simulation has found once, asked again directly: seeds drift when the product changes."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from filesink.errors import CommitStateUnknown, FilesinkError, StateCorruptError
from filesink.ledger.head import Head
from filesink.ledger.identity import queries_of
from filesink.ledger.ledger import Ledger
from filesink.ledger.open_chain import append
from filesink.ledger.record import BatchWrite, EpochRecord, MicroBatch, Section, Upkeep
from filesink.ledger.transactions import find_write, is_valid
from filesink.ports import SerialRunner
from filesink.storage.local.store import LocalStore
from filesink.system import SystemIds
from property_tests.simulation.world.clock import SimIds
from property_tests.simulation.world.disk import Cut
from property_tests.simulation.world.faults import CRASHES, Fault, Mode, place
from property_tests.simulation.world.listing import all_files
from property_tests.simulation.world.nodes import Directory
from property_tests.simulation.world.sim_fs import SimFs
from property_tests.simulation.world.world import Killed, Plan, Process, World

DIRECTORY = "_filesink/uid-s"


class At(Plan):
    """One fault at the first call of one kind after another kind was seen."""

    def __init__(self, after: tuple[str, str], strike: tuple[str, str], fault: Fault) -> None:
        self._after, self._strike, self._fault = after, strike, fault
        self._armed = self._done = False

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        del number
        point = (operation, place(path))
        if self._armed and not self._done and point == self._strike:
            self._done = True
            return self._fault
        self._armed = self._armed or point == self._after
        return None


class SlowServer(Plan):
    """Names are linked and removed, but only after the caller has been told that it timed out."""

    def fault(self, operation: str, path: str, number: int) -> Fault | None:
        del path, number
        return Fault(Mode.LATE, errno.ETIMEDOUT) if operation in {"link", "unlink"} else None


def machine(plan: Plan, seed: int = 1) -> tuple[World, LocalStore]:
    world = World(Random(seed), plan, pace=0)
    fs = SimFs(world, Process("driver"), world.disk)
    return world, LocalStore(fs, runner=SerialRunner(), ids=SimIds())


def record(slot: int) -> EpochRecord:
    return EpochRecord(
        slot=slot,
        nonce=f"n{slot}",
        sink_id="uid-s",
        cause=Upkeep(),
        last_batch=None,
        decided_ms=0,
        rows=0,
        committables=Section(1, b"[]"),
    )


def ledger_directory(world: World) -> Directory:
    return world.disk.directory(DIRECTORY)


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
def test_no_record_is_decided_whose_name_may_vanish(code: int) -> None:
    """After a failed sync of its name a record is either durable, or said to be unknown."""
    point = ("fsync_directory", "ledger directory")
    world, store = machine(At(("link", "ledger record"), point, Fault(Mode.ERROR, code)))
    try:
        Ledger(store, "uid-s").decide(record(0))
    except CommitStateUnknown:
        return
    assert "000000000000.record" in ledger_directory(world).synced


def test_nothing_is_removed_below_a_mark_that_may_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark that somebody else has just made is made durable before records below it are removed."""
    monkeypatch.setattr("filesink.ledger.folding._FOLD_EVERY", 1)
    world, store = machine(Plan())
    ledger = Ledger(store, "uid-s")
    for slot in range(5):
        ledger.decide(record(slot))
        ledger.complete(record(slot))
    world.disk.close(world.disk.create(f"{DIRECTORY}/000000000003.mark", None, 1))  # its maker died here
    ledger.folding.fold(newest=4, keep=100)
    assert "000000000001.record" not in ledger_directory(world).entries
    assert "000000000003.mark" in ledger_directory(world).synced


@pytest.mark.parametrize("kind", ["record", "complete"])
def test_whoever_goes_on_because_of_a_name_finds_it_after_a_power_cut(kind: str) -> None:
    """A record, or its completion, whose maker died before the name was durable, stays once it was seen."""
    world, store = machine(Plan())
    ledger = Ledger(store, "uid-s")
    ledger.decide(record(0))
    ledger.complete(record(0))
    directory = ledger_directory(world)
    directory.synced.pop(f"000000000000.{kind}")
    head = Ledger(store, "uid-s").head()
    world.disk.cut(Cut.WEAK, Random(1))
    assert head is not None
    assert Ledger(store, "uid-s").head() == head


@pytest.mark.parametrize("mode", list(Cut))
def test_what_was_taken_back_does_not_come_back(mode: Cut) -> None:
    """Neither a record nor its completion stands again after a power cut, once its files are gone."""
    world, store = machine(Plan())
    ledger = Ledger(store, "uid-s")
    ledger.decide(record(0))
    ledger.complete(record(0))
    ledger.folding.retract(0)
    world.disk.cut(mode, Random(1))
    assert Ledger(store, "uid-s").head() is None


LEFT = "_filesink/txn-1/.000000000000.record.put.0"
CLAIMS = "_filesink/_txns/txn-1"
CLAIM_LEFT = f"{CLAIMS}/.000000.claim.put.0"


def leave(world: World, path: str = LEFT) -> None:
    """A writer of a record dies before it has a name."""
    world.disk.close(world.disk.create(path, None, 1))
    world.disk.fsync_directory(path.rpartition("/")[0])


def test_what_is_swept_from_a_ledger_does_not_come_back() -> None:
    """A power cut does not give back the hidden file of a record that was swept."""
    world, store = machine(Plan())
    ledger = Ledger(store, "txn-1")
    ledger.decide(record(0))
    leave(world)
    ledger.folding.sweep(0)
    world.disk.cut(Cut.ORDERED, Random(1))
    assert world.disk.find(LEFT) is None


def claiming(cause: BatchWrite) -> EpochRecord:
    return replace(record(0), sink_id="exclusive", cause=cause)


def test_the_claims_of_a_txn_id_are_swept_by_both_who_write_and_who_ask() -> None:
    """No epoch of its own will; and who comes late may die beside a record that stands."""
    world, store = machine(Plan())
    ledger = Ledger(store, "exclusive")
    cause = BatchWrite(txn_id="t", remembered_in="txn-1", writer="batch-1")
    store.put_if_absent(f"{CLAIMS}/other", b"")  # the directory is there
    leave(world, CLAIM_LEFT)
    assert is_valid(claiming(cause), ledger)
    assert world.disk.find(CLAIM_LEFT) is None
    leave(world, CLAIM_LEFT)
    assert find_write(cause, ledger) is not None
    assert world.disk.find(CLAIM_LEFT) is None


@pytest.mark.parametrize("ask", [find_write, lambda cause, ledger: is_valid(claiming(cause), ledger)])
def test_whoever_goes_on_because_of_a_claim_finds_it_after_a_power_cut(
    ask: Callable[[BatchWrite, Ledger], object],
) -> None:
    """A claim whose maker died before its name was durable stays once it was seen, or it is written again."""
    world, store = machine(Plan())
    ledger = Ledger(store, "exclusive")
    cause = BatchWrite(txn_id="t", remembered_in="txn-1", writer="batch-1")
    assert is_valid(claiming(cause), ledger)
    world.disk.directory(CLAIMS).synced.pop("000000.claim")
    assert ask(cause, ledger)
    world.disk.cut(Cut.WEAK, Random(1))
    assert find_write(cause, ledger) is not None


@pytest.mark.parametrize("mode", CRASHES)
@pytest.mark.parametrize("call", ["create_exclusive", "link"])
def test_a_start_that_dies_leaves_no_probe_for_ever(mode: Mode, call: str) -> None:
    """What a probe has left is removed by a start a day later."""
    world, store = machine(At(("make_base", "base"), (call, "probe"), Fault(mode)))
    with pytest.raises(Killed):
        store.prepare()
    world.now_ms += 25 * 3600 * 1000
    fs = SimFs(world, Process("next driver"), world.disk)
    LocalStore(fs, runner=SerialRunner(), ids=SystemIds()).prepare()
    assert not all_files(world.disk.root)


def test_a_power_cut_after_the_failed_sync_takes_record_and_files_together() -> None:
    """The record that stood but was not durable is gone after the cut, and so is nobody's belief in it."""
    point = ("fsync_directory", "ledger directory")
    world, store = machine(At(("link", "ledger record"), point, Fault(Mode.ERROR, errno.EIO)))
    ledger, believed = Ledger(store, "uid-s"), False
    try:
        ledger.decide(record(0))
        believed = True
    except FilesinkError:
        pass
    world.disk.cut(Cut.WEAK, Random(3))
    found = world.disk.find(f"{DIRECTORY}/000000000000.record")
    assert found is not None or not believed


@pytest.mark.parametrize("seed", range(20))
def test_a_record_that_may_still_appear_is_not_said_to_be_undecided(seed: int) -> None:
    """A link that was given up may be made later, unless the hidden name is gone for sure by then."""
    world, store = machine(SlowServer(), seed)
    believed = False
    try:
        Ledger(store, "uid-s").decide(record(0))
        believed = True
    except CommitStateUnknown:
        return
    except FilesinkError:
        pass
    for late in world.late.due(10**9):
        world.carry_out(late)
    assert ("000000000000.record" in ledger_directory(world).entries) is believed


def test_a_claim_that_is_missing_or_of_another_txn_id_stops_whoever_asks() -> None:
    """Believed, the one would have rows written twice, and the other not at all."""
    world, store = machine(Plan())
    ledger = Ledger(store, "exclusive")
    cause = BatchWrite(txn_id="t", remembered_in="txn-1", writer="batch-1")
    assert is_valid(claiming(cause), ledger)
    data = bytes(world.disk.file(f"{CLAIMS}/000000.claim").data)
    for path, code in ((f"{CLAIMS}/000002.claim", "GAP"), ("_filesink/_txns/txn-2/000000.claim", "FOREIGN")):
        store.put_if_absent(path, data)
        name = path.split("/")[2]
        with pytest.raises(StateCorruptError) as caught:
            find_write(replace(cause, remembered_in=name), ledger)
        assert caught.value.code == code


def test_an_open_chain_keeps_and_carries_through_all_that_is_half_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two drivers have died: neither folding nor a newer epoch takes away what they have decided."""
    monkeypatch.setattr("filesink.ledger.folding._FOLD_EVERY", 1)
    world, store = machine(Plan())
    ledger = Ledger(store, "appends")
    write = replace(record(0), sink_id="appends", cause=BatchWrite(writer="batch-1"))
    records = [append(replace(write, nonce=f"n{n}"), ledger) for n in range(6)]
    for done in (0, 2, 3, 5):
        ledger.complete(records[done])
    leave(world, "_filesink/appends/.000000000001.record.put.0")
    ledger.folding.fold(newest=5, keep=1)
    ledger.folding.sweep(5)
    assert [one.slot for one in ledger.history.unfinished()] == [1, 4]
    assert world.disk.find("_filesink/appends/.000000000001.record.put.0") is not None


def test_no_query_is_forgotten_however_many_follow() -> None:
    """The third one's record names the first and the second."""
    _, store = machine(Plan())
    ledger = Ledger(store, "uid-s")
    batches = [MicroBatch(query_id=f"q{n}", batch_id=n, fingerprint="") for n in range(3)]
    second = replace(record(1), cause=batches[1], last_batch=batches[1], queries={"q0": 0})
    assert queries_of(batches[2], Head(record=second, complete=True), ledger) == {"q0": 0, "q1": 1}
