"""The ledger: one chain, whatever two drivers, lost replies and old age do to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from filesink.errors import StateCorruptError, StateError, StorageError
from filesink.ledger.directory import COMPACTION
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite, EpochRecord, OfflineCompaction, Section, Upkeep
from filesink.ledger.transactions import remember
from filesink.storage.faulty import Fault, FaultyStore, Moment
from filesink.storage.memory import MemoryFile, MemoryFiles, MemoryStore
from filesink.storage.open import open_store
from tests.fakes import micro_batch

RECORD_0 = "_filesink/uid-u/000000000000.record"


@pytest.fixture
def files():
    """What lies in the store."""
    return MemoryFiles()


@pytest.fixture
def ledger(files):
    """A new chain."""
    return Ledger(MemoryStore(files), "uid-u")


def record(slot, cause=None, *, nonce="n", sink_id="uid-u"):
    """A record without files; by default that of the micro-batch with the slot's number."""
    cause = cause or micro_batch(slot)
    return EpochRecord(
        slot=slot,
        nonce=nonce,
        sink_id=sink_id,
        cause=cause,
        last_batch=cause if isinstance(cause, type(micro_batch(0))) else None,
        decided_ms=0,
        rows=0,
        committables=Section(1, b"[]"),
    )


def run(ledger, slots, cause_of=lambda _slot: None, *, keep=100):
    """Whole epochs, one after the other."""
    for slot in slots:
        ledger.decide(record(slot, cause_of(slot)))
        ledger.complete(ledger.read(slot))
        ledger.folding.fold(newest=slot, keep=keep)


def test_a_new_chain_has_no_head(ledger):
    """Nothing was decided, nothing is found, and no file was made by asking."""
    assert ledger.head() is None
    assert ledger.read(0) is None
    assert not ledger.history.has_folded(0)
    assert ledger.directory.neighbours() == []


def test_the_head_is_the_newest_record(ledger):
    """A head knows whether its epoch is complete."""
    ledger.decide(record(0))
    assert not ledger.head().complete
    ledger.complete(ledger.read(0))
    assert ledger.head().complete
    ledger.decide(record(1))
    assert (ledger.head().record, ledger.head().complete) == (record(1), False)


def test_a_slot_is_decided_once(ledger):
    """Who comes second gets what stands there, and nothing is replaced."""
    first, second = record(0, nonce="first"), record(0, nonce="second")
    assert ledger.decide(first) == first
    assert ledger.decide(second) == first
    assert ledger.read(0) == first


@pytest.mark.parametrize("moment", Moment)
def test_a_failed_reply_is_resolved_by_reading(files, moment):
    """If the answer of the store got lost, the slot itself tells whether the record stands."""
    fault = Fault(moment=moment, error=StorageError("timed out", code="TIMEOUT"))
    store = FaultyStore(
        MemoryStore(files), lambda operation, _path: fault if operation == "put_if_absent" else None
    )
    if moment is Moment.AFTER:
        assert Ledger(store, "uid-u").decide(record(0)).nonce == "n"
    else:
        with pytest.raises(StorageError, match="timed out"):
            Ledger(store, "uid-u").decide(record(0))
    assert (RECORD_0 in files.files) == (moment is Moment.AFTER)


def test_a_lost_reply_does_not_steal_a_slot(files, ledger):
    """If the slot was taken by another driver, a failed answer brings that driver's record."""
    ledger.decide(record(0, nonce="theirs"))
    fault = Fault(moment=Moment.AFTER, error=StorageError("timed out", code="TIMEOUT"))
    store = FaultyStore(
        MemoryStore(files), lambda operation, _path: fault if operation == "put_if_absent" else None
    )
    assert Ledger(store, "uid-u").decide(record(0, nonce="ours")).nonce == "theirs"


def test_an_unreadable_record_is_not_an_absent_one(files, ledger):
    """A flip of any byte of a record stops the sink, and nothing is written."""
    ledger.decide(record(0))
    good = files.files[RECORD_0].content
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 0x01
        files.files[RECORD_0] = MemoryFile(inode=9, mtime_ms=0, content=bytes(damaged))
        with pytest.raises(StateError, match=RECORD_0):
            ledger.head()
        with pytest.raises(StateError):
            ledger.decide(record(0, nonce="other"))
        assert list(files.files) == [RECORD_0]
        assert files.files[RECORD_0].content == bytes(damaged)


def test_a_record_of_another_sink_is_refused(ledger):
    """A record that was copied here belongs to another chain."""
    ledger.decide(record(0, sink_id="uid-other"))
    with pytest.raises(StateCorruptError, match="sink 'uid-other'; it was copied here") as raised:
        ledger.read(0)
    assert raised.value.code == "FOREIGN"


def test_a_copy_of_a_ledger_is_named(files, ledger):
    """Its name may be that of a sink, so it is not passed over; the error says which directory is to go."""
    run(ledger, [0])
    for path, file in list(files.files.items()):
        files.files[path.replace("/uid-u/", "/uid-u.bak/")] = file
    with pytest.raises(StateCorruptError, match=r"If '_filesink/uid-u\.bak' is a copy") as raised:
        ledger.beside("uid-u.bak").head()
    assert raised.value.code == "FOREIGN"


def test_a_record_of_another_slot_is_refused(files, ledger):
    """A record under another number would be carried out twice."""
    ledger.decide(record(0))
    files.files["_filesink/uid-u/000000000001.record"] = files.files[RECORD_0]
    with pytest.raises(StateCorruptError, match="is the record of slot 0"):
        ledger.head()


def test_micro_batches_are_found(ledger):
    """A record is found by query and batch, whatever lies between."""
    run(ledger, range(5), lambda slot: Upkeep() if slot % 2 else micro_batch(slot))
    assert ledger.history.find(micro_batch(2).query_id, 2) == record(2)
    assert ledger.history.find(micro_batch(2).query_id, 3) is None
    assert ledger.history.find("another query", 2) is None


def test_the_last_batch_of_each_query_is_found(ledger):
    """Two queries in one chain are told apart."""
    run(ledger, range(6), lambda slot: micro_batch(slot, query_id="ab"[slot % 2]))
    assert ledger.history.last_batch_of("a").batch_id == 4
    assert ledger.history.last_batch_of("b").batch_id == 5
    assert ledger.history.last_batch_of("c") is None


def test_neighbours_are_the_other_sinks(files, ledger):
    """Files, hidden directories and names that no sink has are none, and nobody is a neighbour of itself."""
    run(ledger, [0])
    store = MemoryStore(files)
    strange = ("lost+found/x", "uid-u (copy)/000000000000.record", "uid-u~/x", "é/x")
    for path in ("query-q/000000000000.record", ".tmp/x", "_x/x", "note", *strange):
        store.put_if_absent(f"_filesink/{path}", b"")
    assert ledger.directory.neighbours() == ["query-q"]


def test_two_thousand_epochs_leave_a_bounded_number_of_files(files, ledger):
    """A long life costs no more space, and the last hundred micro-batches are always there."""
    most = 0
    for slot in range(2000):
        run(ledger, [slot])
        most = max(most, len(files.files))
        kept = sum(path.endswith(".record") for path in files.files)
        assert kept >= min(slot + 1, 100)
    assert most <= 2 * (100 + 2 * 25) + 1
    assert ledger.history.find(micro_batch(0).query_id, 1900) is not None
    assert ledger.history.find(micro_batch(0).query_id, 1800) is None


def test_folding_counts_micro_batches_only(ledger):
    """Epochs of upkeep do not push out records that a replay may need."""
    run(ledger, range(1000), lambda slot: Upkeep() if slot % 4 else micro_batch(slot // 4))
    kept = [one.cause.batch_id for one in ledger.history.newest_first() if not isinstance(one.cause, Upkeep)]
    assert kept[:100] == list(range(249, 149, -1))
    assert len(kept) < 140


def test_folding_reads_no_record_twice(files, monkeypatch):
    """The driver that wrote them needs none; one that came later reads each once, not at every fold."""
    reads = []
    read = MemoryStore.read
    monkeypatch.setattr(MemoryStore, "read", lambda store, path: reads.append(path) or read(store, path))
    run(Ledger(MemoryStore(files), "uid-u"), range(300), keep=20)
    assert len(reads) == 300, "of each only what the test itself reads to complete it"
    del reads[:]
    run(Ledger(MemoryStore(files), "uid-u"), range(300, 600), keep=20)
    assert len(reads) - 300 == len(
        set(reads) - {f"_filesink/uid-u/{slot:012d}.record" for slot in range(300, 600)}
    )
    assert len(reads) < 350


def test_batch_writes_are_folded_where_no_stream_is(files, ledger):
    """A sink that only batch writes use stays small as well."""
    run(ledger, range(400), lambda _slot: BatchWrite())
    assert len(files.files) < 320


def test_batch_writes_push_out_no_stream_of_the_same_uid(ledger):
    """Its query may replay a micro-batch however many writes came since."""
    run(ledger, range(30))
    for slot in range(30, 100):
        ledger.decide(replace(record(slot, BatchWrite()), last_batch=micro_batch(29)))
        ledger.complete(ledger.read(slot))
        ledger.folding.fold(newest=slot, keep=20)
    assert ledger.history.find(micro_batch(0).query_id, 10) is not None


def test_what_is_folded_is_void(files, ledger):
    """A slot at or below the mark is void, also if a record is written there again."""
    run(ledger, range(201))
    mark = max(ledger.directory.listing().marks)
    assert mark > 0
    assert ledger.read(mark) is None
    zombie = record(mark, nonce="zombie")
    assert ledger.decide(zombie) == zombie
    assert ledger.history.has_folded(mark)
    assert not ledger.history.has_folded(mark + 1)
    assert ledger.head().record.slot == 200
    run(ledger, range(201, 301))
    assert not any(path.endswith(f"{mark:012d}.record") for path in files.files)


def test_what_is_folded_was_complete(ledger):
    """A driver so slow that its record is gone learns that another has done all of it."""
    run(ledger, range(201))
    assert ledger.read(0) is None
    assert ledger.history.is_complete(record(0))
    assert ledger.history.is_complete(ledger.read(200))
    ledger.decide(record(201))
    assert not ledger.history.is_complete(record(201))


def test_a_fold_that_was_cut_short_is_finished_later(files, ledger):
    """A mark without deletions already voids; the next fold removes what it left."""
    run(ledger, range(200))
    stop = Fault(moment=Moment.BEFORE, error=StorageError("no", code="PERMISSION"))
    store = FaultyStore(MemoryStore(files), lambda operation, _path: stop if operation == "delete" else None)
    run(ledger, [200], keep=1000)
    with pytest.raises(StorageError):
        Ledger(store, "uid-u").folding.fold(newest=200, keep=20)
    assert ledger.history.find(micro_batch(0).query_id, 150) is None
    assert ledger.head().record.slot == 200
    ledger.folding.fold(newest=200, keep=20)
    assert not [path for path in files.files if path < "_filesink/uid-u/000000000179.mark"]


def test_a_chain_without_its_newest_record_stops(files, ledger):
    """If marks are there and no record is, something was removed by hand."""
    run(ledger, range(201))
    for path in [path for path in files.files if path.endswith(".record")]:
        del files.files[path]
    with pytest.raises(StateCorruptError, match=r"complete says that an epoch is done") as raised:
        ledger.head()
    assert raised.value.code == "NO_RECORD"
    for path in [path for path in files.files if path.endswith(".complete")]:
        del files.files[path]
    with pytest.raises(StateCorruptError, match="newest is missing; restore") as raised:
        ledger.head()
    assert raised.value.code == "NO_HEAD"


@pytest.mark.parametrize("gone", [0, 1])
def test_a_chain_with_a_gap_stops(files, ledger, gone):
    """Nobody goes on from an older copy into which a driver has written its next record."""
    run(ledger, range(3))
    del files.files[f"_filesink/uid-u/{gone:012d}.record"]
    with pytest.raises(StateCorruptError, match=f"{gone:012d}.complete says") as raised:
        ledger.head()
    assert raised.value.code == "NO_RECORD"
    del files.files[f"_filesink/uid-u/{gone:012d}.complete"]
    for look in (ledger.head, lambda: ledger.counts(2)):
        with pytest.raises(
            StateCorruptError, match=f"slot 2, but not that of slot {gone}: the base path"
        ) as raised:
            look()
        assert raised.value.code == "GAP"
        assert "remove" not in raised.value.message, "its rows are visible, and would be written again"
    del files.files["_filesink/uid-u/000000000002.complete"]
    with pytest.raises(StateCorruptError, match=r"or remove 000000000002\.record"):
        ledger.head()


def test_a_gap_that_a_fold_has_made_is_none(files, ledger):
    """Records go while somebody lists them, and their mark is seen only the next time."""
    run(ledger, range(3))
    del files.files[RECORD_0]
    del files.files[RECORD_0.replace("record", "complete")]
    seen = [ledger.directory.listing()]
    files.files["_filesink/uid-u/000000000000.mark"] = MemoryFile(inode=8, mtime_ms=0, content=b"")
    look, ledger.directory.listing = ledger.directory.listing, lambda: seen.pop() if seen else look()
    assert ledger.head().record.slot == 2


def test_a_record_that_vanishes_is_no_new_chain(files, ledger):
    """A listed record that cannot be read back stops the sink."""
    ledger.decide(record(0))
    gone = ledger.directory.listing()
    del files.files[RECORD_0]
    ledger.directory.listing = lambda: gone
    with pytest.raises(StateCorruptError, match="vanished") as raised:
        ledger.head()
    assert raised.value.code == "VANISHED"


def test_a_record_can_be_taken_back(ledger):
    """After a retraction the slot is free and the one before is the head."""
    run(ledger, [0])
    ledger.decide(record(1))
    ledger.folding.retract(1)
    assert ledger.head().record.slot == 0
    assert ledger.decide(record(1, nonce="again")).nonce == "again"


def test_copies_of_compactions_are_folded_whatever_their_slots(files, ledger):
    """Others take slots of the same chain, so copies may get none of those at which a chain is folded."""
    for slot in range(1, 2000, 5):
        remember(record(slot, OfflineCompaction()), ledger)
    copies = [path for path in files.files if path.startswith("_filesink/compaction/")]
    assert len(copies) < 80
    head = ledger.beside(COMPACTION).head()
    assert (head.record.slot, head.complete) == (1996, True)


def test_a_record_that_is_taken_back_leaves_no_completion(files, ledger):
    """A copy of a record may be complete; the next record of its slot is not."""
    run(ledger, [0])
    ledger.folding.retract(0)
    assert files.files == {}
    ledger.decide(record(0, nonce="again"))
    assert not ledger.head().complete


def test_who_dies_while_taking_back_leaves_no_completion_alone(files, ledger):
    """The record is there as long as anything of it is, or the next of its slot would be complete at once."""
    run(ledger, [0])
    deleted = []
    stop = Fault(moment=Moment.BEFORE, error=StorageError("no", code="PERMISSION"))

    def second(operation, path):
        deleted.extend([path] if operation == "delete" else [])
        return stop if len(deleted) == 2 else None

    with pytest.raises(StorageError):
        Ledger(FaultyStore(MemoryStore(files), second), "uid-u").folding.retract(0)
    assert (ledger.head().record, ledger.head().complete) == (record(0), False)


@pytest.mark.parametrize("kind", ["record", "complete", "mark"])
def test_of_what_was_being_put_only_old_slots_are_swept(files, ledger, kind):
    """Another driver may be putting its record for the next slot right now, or die in any kind of put."""
    run(ledger, [0, 1])
    left = [f"_filesink/uid-u/.{slot:012d}.{kind}.put.x" for slot in range(3)]
    for path in left:
        files.make(path, b"half")
    ledger.folding.sweep(1)
    assert [path for path in left if path in files.files] == left[2:]


def test_a_record_of_upkeep_counts_for_nothing_however_it_came_to_be(files, ledger):
    """A driver whose batches lost every slot to upkeep does not fold away the batches before."""
    slow = Ledger(MemoryStore(files), "uid-u")
    run(slow, range(30))
    for slot in range(30, 70):
        ledger.decide(record(slot, Upkeep(), nonce="theirs"))
        ledger.complete(ledger.read(slot))
        assert slow.decide(record(slot)).nonce == "theirs"
    slow.folding.fold(newest=0, keep=20)
    assert ledger.history.find(micro_batch(0).query_id, 10) is not None


def test_a_record_of_no_chain_is_taken_back(tmp_path):
    """The copy of an epoch may never have been made, and so there is no directory either."""
    store = open_store(tmp_path, {})
    Ledger(store, "uid-u").folding.retract(0)
    assert list(tmp_path.iterdir()) == []


def test_what_is_removed_does_not_come_back(files, ledger):
    """Nobody would look there again; and no record goes before the mark that voids it is sure to stay."""
    run(ledger, range(201), keep=1000)
    files.make("_filesink/uid-u/.000000000000.record.put.x", b"half")
    calls = []
    noting = FaultyStore(MemoryStore(files), lambda operation, _path: calls.append(operation))
    watched = Ledger(noting, "uid-u")

    def changes(step):
        calls.clear()
        step()
        return [operation for operation in calls if operation not in {"list", "read"}]

    assert changes(lambda: watched.folding.sweep(200)) == ["discard", "sync_directories"]
    assert changes(lambda: watched.folding.retract(200)) == ["delete", "delete", "sync_directories"]
    folding = changes(lambda: watched.folding.fold(newest=0, keep=20))
    assert folding[:3] == ["put_if_absent", "sync_directories", "delete"]


def test_a_chain_on_a_disk(tmp_path):
    """The same on a local disk, read by another process's store."""
    run(Ledger(open_store(tmp_path, {}), "uid-u"), range(130), keep=20)
    ledger = Ledger(open_store(tmp_path, {}), "uid-u")
    assert ledger.head().record == record(129)
    assert replace(ledger.head(), record=record(129)).complete
    assert len(list((tmp_path / "_filesink" / "uid-u").iterdir())) < 150
