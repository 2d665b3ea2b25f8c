"""A path that was written without an inventory gets one, whatever happens there meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from filesink.errors import StateCorruptError, StateError
from filesink.inventory.adoption.adopt import Adoption
from filesink.inventory.adoption.footers import rows_of
from filesink.inventory.appending import Inventory
from filesink.inventory.drafts import draft_of
from filesink.inventory.mark import MarkKind
from filesink.inventory.names import DIRECTORY, Listing, entry_path, mark_path
from filesink.inventory.reading import Reader
from filesink.inventory.snapshots import Snapshots
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import BatchWrite, EpochRecord
from filesink.parts.committables import ReplacedFile
from filesink.save_mode import SaveMode
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFile, MemoryFiles, MemoryStore
from tests.fakes import World, micro_batch, records


class Killed(BaseException):
    """The process that adopts is gone."""


@pytest.fixture
def world() -> World:
    """A path that was written before: five micro-batches into two buckets."""
    made = World()
    for number in range(5):
        made.driver().run(micro_batch(number), made.job(records("1", "2", bucket=f"k={number % 2}")))
    made.forget_inventory()
    return made


def adopt(world: World) -> int:
    """The version of the adoption."""
    return Adoption(world.store(), clock=world.clock, ids=world.ids).run()


def snapshots(world: World) -> Snapshots:
    """What readers are told."""
    return Snapshots(Reader(MemoryStore(world.files), world.clock), "/base")


def live(world: World, version: int | None = None) -> set[str]:
    """The files of a version."""
    return set(snapshots(world).files_at(version).rows["path"].to_pylist())


def inventory(world: World) -> Inventory:
    """That of a driver which has just started."""
    return Inventory(world.store(), clock=world.clock, ids=world.ids)


def newest(world: World, sink_id: str = "uid-u") -> EpochRecord:
    """The record of the last epoch."""
    head = world.ledger(sink_id).head()
    assert head is not None
    return head.record


def append(world: World, record: EpochRecord, inventory_: Inventory | None = None) -> int | None:
    """What a driver does with an epoch before it is complete."""
    files = record.committables.decode(world.tiers().committable_codec)
    return (inventory_ or inventory(world)).append(
        draft_of(record, files, visible_ms=world.clock.now), floor=0
    )


def reopened(world: World, sink_id: str = "uid-u") -> Callable[[], None]:
    """The newest epoch as if it were not complete yet; the result completes it."""
    record = newest(world, sink_id)
    path = Ledger(MemoryStore(world.files), sink_id).directory.path_of(record.slot, "complete")
    kept = world.files.files.pop(path)

    def complete() -> None:
        world.files.files[path] = kept

    return complete


def test_what_is_there_is_adopted(world: World) -> None:
    """Each file of a complete epoch, with rows as the records tell, at a version of the adoption's own."""
    assert adopt(world) == 1
    found = snapshots(world).files_at(None)
    assert set(found.rows["path"].to_pylist()) == set(world.visible())
    assert set(found.rows["added"].to_pylist()) == {1}
    assert set(found.rows["sink"].to_pylist()) == {"uid-u"}
    assert found.rows["rows"].to_pylist() == [2] * 5
    assert sorted(found.rows["slot"].to_pylist()) == [0, 1, 2, 3, 4]
    (epoch,) = snapshots(world).epochs(None).to_pylist()
    assert (epoch["kind"], epoch["files"], epoch["rows"], epoch["version"]) == ("adopted", 5, 10, 1)
    assert epoch["size"] == sum(map(len, world.visible().values()))


def test_nobody_can_ask_for_what_was_before(world: World) -> None:
    """The history begins with the adoption."""
    adopt(world)
    with pytest.raises(StateError, match="not remembered") as caught:
        snapshots(world).files_at(0)
    assert caught.value.code == "HISTORY_EXPIRED"


def test_epochs_go_on_after_the_adoption(world: World) -> None:
    """With the versions that follow."""
    driver = inventory(world)
    assert append(world, newest(world), driver) is None
    adopt(world)
    world.driver().run(micro_batch(5), world.job(records("3")))
    assert append(world, newest(world), driver) == 2
    assert live(world) == set(world.visible())


def test_files_that_are_not_ours_are_not_adopted(world: World) -> None:
    """Those of strangers, of another base path inside this one, and dead letters."""
    store = MemoryStore(world.files)
    for path in ("a.txt", "inner/_filesink/uid-u/000000000000.record", "_dead_letters/x"):
        store.put_if_absent(path, b"x")
    part = next(iter(world.visible()))
    name = part.rpartition("/")[2]
    store.put_if_absent(f"inner/{name}", b"x")
    store.put_if_absent(f"_dead_letters/{name}", b"x")
    adopt(world)
    assert live(world) == {path for path in world.visible() if path.startswith("k=")}


def test_batch_writes_are_adopted(world: World) -> None:
    """Their files bear tags of no chain; what they have replaced is not there."""
    world.driver("appends-u").run(BatchWrite(writer="batch-1"), world.job(records("7")))
    world.driver("exclusive").run(
        BatchWrite(writer="batch-2", mode=SaveMode.OVERWRITE_PARTITIONS),
        world.job(records("8", bucket="k=1")),
    )
    adopt(world)
    assert live(world) == set(world.visible())
    assert len(live(world)) == 3 + 1 + 1


def test_an_epoch_that_is_half_done_is_waited_for(world: World) -> None:
    """It may have looked for an inventory before there was one, and never look again."""
    complete = reopened(world)

    def later(seconds: float) -> None:
        world.clock.slept.append(seconds)
        if len(world.clock.slept) == 3:
            complete()

    world.clock.sleep = later
    assert adopt(world) == 1
    assert live(world) == set(world.visible())


def test_an_epoch_whose_driver_has_died_is_named(world: World) -> None:
    """Its rows are neither adopted by halves nor forgotten; readers are told to call again."""
    complete = reopened(world)
    with pytest.raises(StateError, match="epoch 4 of 'uid-u' is decided and not complete") as caught:
        adopt(world)
    assert caught.value.code == "AT_WORK"
    with pytest.raises(StateError, match="being adopted") as caught:
        live(world)
    assert caught.value.code == "ADOPTING"
    complete()
    adopt(world)
    assert live(world) == set(world.visible())


def test_an_epoch_that_gets_its_version_meanwhile_is_not_waited_for(world: World) -> None:
    """Its entry is folded with the adoption; its driver may die then, and be followed."""
    reopened(world)
    with pytest.raises(StateError):
        adopt(world)
    record = newest(world)
    assert append(world, record) == 1
    assert adopt(world) == 2
    assert live(world) == set(world.visible())
    assert append(world, record) == 1
    assert {row["added"] for row in snapshots(world).files_at(None).rows.to_pylist()} == {1, 2}


def test_a_removal_during_the_adoption_is_not_forgotten(world: World) -> None:
    """Between the listing and the mark an overwrite gets its version; its files may still stand there."""
    victim = next(iter(world.visible()))

    def overwrite(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and path == entry_path(1):
            world.fault = lambda _operation, _path: None
            removed = ReplacedFile(path=victim, size=1, version="1")
            record = replace(newest(world), nonce="overwrite", sink_id="exclusive", slot=0)
            driver = inventory(world)
            assert driver.append(draft_of(record, [removed], visible_ms=0), floor=0) == 1
        return None

    world.fault = overwrite
    assert adopt(world) == 2
    assert live(world) == set(world.visible()) - {victim}


def test_files_that_others_make_visible_meanwhile_are_theirs(world: World) -> None:
    """Listed by the adoption, of an epoch that is not complete then: they come with its own version."""

    def quiet(_operation: str, _path: str) -> None:
        return None

    def publish(operation: str, path: str) -> None:
        if operation == "list" and path == "k=0":
            world.fault = quiet
            world.driver().run(micro_batch(5), world.job(records("3", bucket="k=0")))
            complete.append(reopened(world))
            world.fault = finish

    def finish(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path == entry_path(1):
            world.fault = quiet
            assert append(world, newest(world)) == 1
            complete[0]()

    complete: list[Callable[[], None]] = []
    world.fault = publish
    assert adopt(world) == 2
    found = snapshots(world).files_at(None).rows.to_pylist()
    assert {row["path"] for row in found} == set(world.visible())
    assert sorted(row["added"] for row in found) == [1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("cut", range(60))
def test_an_adoption_may_be_cut_off_anywhere(cut: int) -> None:
    """Called again, it is done; until then readers hear of it, or see nothing wrong."""
    world = World()
    for number in range(3):
        world.driver().run(micro_batch(number), world.job(records("1", bucket=f"k={number}")))
    calls = iter(range(1000))
    world.fault = lambda _operation, _path: (
        Fault(moment=Moment.AFTER, error=Killed()) if next(calls) >= cut else None
    )
    try:
        adopt(world)
    except Killed:
        try:
            seen: object = live(world)
        except StateError as error:
            seen = error.code
        assert seen in ("NO_INVENTORY", "ADOPTING", set(world.visible()))
    world.fault = lambda _operation, _path: None
    adopt(world)
    assert live(world) == set(world.visible())


@pytest.mark.parametrize("damage", ["removed", "emptied"])
def test_a_damaged_inventory_is_adopted_again(world: World, damage: str) -> None:
    """Whatever is lost or spoilt: the files that are there, and a version above all that were given."""
    adopt(world)
    driver = Inventory(world.store(), clock=world.clock, ids=world.ids, fold_every=3)
    for number in range(5, 12):
        world.driver().run(micro_batch(number), world.job(records("3", bucket=f"k={number}")))
        append(world, newest(world), driver)
    given = snapshots(world).newest()
    assert given == 8
    kept = dict(world.files.files)
    for path in [path for path in kept if path.startswith(DIRECTORY)]:
        world.files.files.clear()
        world.files.files.update(kept)
        del world.files.files[path]
        if damage == "emptied":
            world.files.files[path] = MemoryFile(1, 0, b"")
        version = adopt(world)
        assert version > given - (damage == "removed" and path == entry_path(given)), path
        assert live(world) == set(world.visible()), path
        world.driver().run(micro_batch(12), world.job(records("4", bucket="k=99")))
        assert append(world, newest(world), inventory(world)) == version + 1, path
        assert live(world) == set(world.visible()), path


def test_everything_may_be_lost(world: World) -> None:
    """The directory is gone: it is adopted as one that never had an inventory."""
    adopt(world)
    for path in [path for path in world.files.files if path.startswith(DIRECTORY)]:
        del world.files.files[path]
    assert adopt(world) == 1
    assert live(world) == set(world.visible())


def test_a_second_adoption_replaces_the_first(world: World) -> None:
    """Files that somebody has removed by hand are not live any more."""
    adopt(world)
    victim = next(iter(world.visible()))
    del world.files.files[victim]
    assert victim in live(world)
    assert adopt(world) == 2
    assert live(world) == set(world.visible())


def test_a_version_that_an_epoch_at_work_has_is_kept(world: World) -> None:
    """It was folded long ago, its driver has died before it was complete, and it is carried through after."""
    adopt(world)
    driver = inventory(world)
    world.driver().run(micro_batch(5), world.job(records("3")))
    record = newest(world)
    version = append(world, record, driver)
    reopened(world)
    driver.fold()
    assert adopt(world) == 3
    assert live(world) == set(world.visible())
    assert append(world, record, inventory(world)) == version == 2
    driver.append(draft_of(replace(record, nonce="other"), [], visible_ms=0), floor=0)
    assert snapshots(world).newest() == 4


def test_two_adoptions_at_once_agree(world: World) -> None:
    """One begins anew, and both are done."""

    def other(operation: str, path: str) -> Fault | None:
        if operation == "put_if_absent" and path == mark_path(1):
            world.fault = lambda _operation, _path: None
            adopt(world)
        return None

    world.fault = other
    adopt(world)
    assert live(world) == set(world.visible())
    assert Listing.of(MemoryStore(world.files).list(DIRECTORY)).marks == (0, 1, 2)


def test_folds_wait_for_the_adoption(world: World) -> None:
    """Entries that come meanwhile stay as they are."""
    reopened(world)
    with pytest.raises(StateError):
        adopt(world)
    driver = inventory(world)
    append(world, newest(world), driver)
    driver.fold()
    found = Reader(MemoryStore(world.files), world.clock).look()
    assert found is not None
    assert (found.mark.number, found.mark.kind, found.newest) == (0, MarkKind.ADOPTING, 1)


def test_drivers_that_know_an_older_mark_go_on(world: World) -> None:
    """Also if the versions have leapt because a mark was lost."""
    adopt(world)
    driver = Inventory(world.store(), clock=world.clock, ids=world.ids, fold_every=2)
    for number in (5, 6, 7):
        world.driver().run(micro_batch(number), world.job(records("3", bucket=f"k={number}")))
        append(world, newest(world), driver)
    number = max(Listing.of(MemoryStore(world.files).list(DIRECTORY)).marks)
    world.files.files[mark_path(number)] = MemoryFile(1, 0, b"")
    with pytest.raises(StateCorruptError, match=r"\.mark"):
        live(world)
    version = adopt(world)
    assert version > 1_000_000
    world.driver().run(micro_batch(8), world.job(records("4", bucket="k=8")))
    assert append(world, newest(world), driver) == version + 1
    assert live(world) == set(world.visible())


def test_rows_that_no_record_tells_are_unknown(world: World) -> None:
    """Older records are folded away, and lines of text have no footer that would say how many there are."""
    for path in list(world.files.files):
        if path.startswith("_filesink/uid-u/") and "000000000004" not in path:
            del world.files.files[path]
    MemoryStore(world.files).put_if_absent("_filesink/uid-u/000000000003.mark", b"")
    adopt(world)
    rows = snapshots(world).files_at(None).rows.to_pylist()
    assert {row["slot"]: row["rows"] for row in rows} == {0: None, 1: None, 2: None, 3: None, 4: 2}


def test_footers_tell_rows() -> None:
    """Those of Parquet and ORC; a damaged file, and one of another format, tell none."""
    files = MemoryFiles()
    table = pa.table({"x": [1, 2, 3]})
    for name, write in {"a.zstd.parquet": pq.write_table, "b.orc": po.write_table}.items():
        output = pa.BufferOutputStream()
        write(table, output)
        files.make(name, output.getvalue().to_pybytes())
    files.make("c.parquet", b"PAR1 is no footer PAR1")
    files.make("d.txt", b"1\n")
    names = ["a.zstd.parquet", "b.orc", "c.parquet", "d.txt", "gone.parquet"]
    assert rows_of(MemoryStore(files), names) == dict(zip(names, [3, 3, None, None, None], strict=True))
