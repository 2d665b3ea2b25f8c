"""Each epoch gets one version, whoever appends it, whatever fails, and however late."""

from __future__ import annotations

from collections import Counter

import pytest

from filesink.errors import CommitStateUnknown, StateCorruptError, StorageError
from filesink.inventory.names import DIRECTORY, entry_path, mark_path
from filesink.ledger.record import BatchWrite
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryStore
from tests.fakes import World, records
from tests.inventory.place import HOUR_MS, Place

LOST = StorageError("the answer was lost", code="IO")


def test_versions_are_consecutive() -> None:
    """From 1 on, whatever the chain."""
    place = Place()
    one, other = place.inventory(), place.inventory()
    given = [
        driver.append(place.draft(f"part-{number}", sink=sink), floor=driver.newest())
        for number, (driver, sink) in enumerate([(one, "uid-u"), (other, "appends"), (one, "uid-u")])
    ]
    assert given == [1, 2, 3]


def test_an_append_is_one_put_and_one_read() -> None:
    """In the long run, when the driver is alone: the entry, and the next mark, which is not there."""
    place = Place()
    inventory = place.filled(3)
    draft = place.draft("part-4")
    assert place.counted(lambda: inventory.append(draft, floor=inventory.newest())) == [
        "put_if_absent",
        "read",
    ]
    assert place.calls[1] == ("read", "000001.mark")


def test_a_path_that_was_written_without_inventory_gets_none() -> None:
    """Its epochs have no version, and cost one read: of the mark that says otherwise."""
    world, place = World(), Place()
    world.driver().run(BatchWrite(), world.job(records("1")))
    world.forget_inventory()
    place.files = world.files
    inventory = place.inventory()
    assert inventory.newest() == 0
    assert inventory.append(place.draft("part-1"), floor=0) is None
    draft = place.draft("part-2")
    assert place.counted(lambda: inventory.append(draft, floor=inventory.newest())) == ["read"]
    assert place.names() == []


def test_a_first_epoch_that_finds_the_inventory_of_another_has_a_version() -> None:
    """Also if it has looked just before that one was begun, and looks at the chains when it is complete."""
    place, world = Place(), World()
    place.files = world.files
    late = place.inventory()

    def complete(operation: str, path: str) -> None:
        if operation == "list" and path == "_filesink":
            place.before = lambda _operation, _path: None
            world.driver().run(BatchWrite(), world.job(records("1")))

    place.before = complete
    assert late.append(place.draft("part-2"), floor=0) == 2


def test_a_replay_finds_its_version() -> None:
    """By another driver, among the entries, and when they are folded."""
    place = Place()
    place.filled(5)
    for floor in (0, 2):
        assert place.inventory().append(place.drafts[2], floor=floor) == 3
    place.inventory().fold()
    assert place.listing().entries == ()
    for floor in (0, 2):
        assert place.inventory().append(place.drafts[2], floor=floor) == 3


def test_two_drivers_of_one_epoch_agree() -> None:
    """The slower one finds the number taken, be it by its own epoch or by another."""
    place = Place()
    one, other = place.filled(1), place.inventory()
    other.newest()
    draft = place.draft("part-2")
    assert one.append(draft, floor=1) == 2
    assert one.append(place.draft("part-3"), floor=2) == 3
    assert other.append(draft, floor=1) == 2
    assert other.append(place.draft("part-4"), floor=1) == 4


def test_a_lost_answer_is_looked_up() -> None:
    """The entry stands, and the driver says so without a second one."""
    place = Place()
    inventory = place.filled(1)
    place.fault = lambda operation, _: (
        Fault(moment=Moment.AFTER, error=LOST) if operation == "put_if_absent" else None
    )
    assert inventory.append(place.draft("part-2"), floor=1) == 2
    assert ("sync_directories", "") in place.calls
    place.fault = lambda _operation, _path: None
    assert place.live() == {"part-1", "part-2"}


def test_an_entry_that_was_not_put_is_an_error() -> None:
    """Nothing is assumed: the epoch has no version, and gets one when it is tried again."""
    place = Place()
    inventory = place.filled(1)
    draft = place.draft("part-2")
    place.fault = lambda operation, _: (
        Fault(moment=Moment.BEFORE, error=LOST) if operation == "put_if_absent" else None
    )
    with pytest.raises(StorageError, match="answer was lost"):
        inventory.append(draft, floor=1)
    place.fault = lambda _operation, _path: None
    assert inventory.append(draft, floor=1) == 2


def test_what_cannot_be_looked_up_is_unknown() -> None:
    """Whoever hears this discards nothing."""
    place = Place()
    inventory = place.filled(1)
    place.fault = lambda operation, _: (
        Fault(moment=Moment.AFTER, error=LOST) if operation in {"put_if_absent", "read"} else None
    )
    with pytest.raises(CommitStateUnknown) as caught:
        inventory.append(place.draft("part-2"), floor=1)
    assert caught.value.code == "PUT_UNKNOWN"


def test_a_driver_that_slept_finds_its_entry_void() -> None:
    """It has listed before a fold and puts after it: the epoch gets the next version that is free."""
    place = Place()
    asleep, awake = place.filled(3), place.inventory()
    for number in (4, 5, 6):
        awake.append(place.draft(f"part-{number}"), floor=awake.newest())
    awake.fold()
    assert asleep.append(place.draft("late"), floor=3) == 7
    assert place.listing().entries == (4, 7)  # of which the first is void
    assert place.live() == {*(f"part-{number}" for number in range(1, 7)), "late"}
    awake.fold()
    assert place.listing().entries == ()


def test_a_driver_that_slept_does_not_put_a_second_entry() -> None:
    """Its own epoch was carried through by another driver, and folded since."""
    place = Place()
    asleep, awake = place.filled(3), place.inventory()
    draft = place.draft("part-4")
    assert awake.append(draft, floor=3) == 4
    awake.append(place.draft("part-5"), floor=4)
    awake.fold()
    assert asleep.append(draft, floor=3) == 4


@pytest.mark.parametrize("known", [0, 3])
def test_a_driver_may_sleep_for_days(known: int) -> None:
    """The mark after the one that it knows is long gone, and so is what would have told it by a number."""
    place = Place()
    asleep, awake = place.inventory(), place.filled(1)
    for _ in range(known):
        awake.append(place.draft(), floor=awake.newest())
        awake.fold()
    asleep.newest()
    for _ in range(25):
        place.clock.now += 2 * HOUR_MS
        awake.append(place.draft(), floor=awake.newest())
        awake.fold()
    assert known + 1 not in place.listing().marks
    newest = place.snapshots().newest()
    assert asleep.append(place.draft("late"), floor=asleep.newest()) == newest + 1
    assert "late" in place.live()


def test_the_store_may_carry_out_a_put_long_after() -> None:
    """An entry that comes after its version was folded is void, and swept."""
    place = Place()
    inventory = place.filled(2)
    late = place.files.files[entry_path(2)].content
    inventory.fold()
    assert MemoryStore(place.files).put_if_absent(entry_path(2), late)
    assert place.live() == {"part-1", "part-2"}
    assert inventory.append(place.draft("part-3"), floor=2) == 3
    inventory.fold()
    assert place.listing().entries == ()


def test_an_inventory_that_is_older_than_the_record_stops_the_driver() -> None:
    """An older copy was brought back: who appended to it would give versions twice."""
    place = Place()
    place.filled(3)
    with pytest.raises(
        StateCorruptError, match=r"000000000004\.entry is missing, and there was version 7"
    ) as caught:
        place.inventory().append(place.draft("part-4"), floor=7)
    assert caught.value.code == "GAP"


def test_an_inventory_that_vanishes_stops_the_driver() -> None:
    """Unmounted, or removed by hand; nothing is begun anew."""
    place = Place()
    inventory = place.filled(2, fold_every=2)
    for path in [path for path in place.files.files if path.startswith(DIRECTORY)]:
        del place.files.files[path]
    place.clock.now += HOUR_MS
    with pytest.raises(StateCorruptError, match=r"is gone|is missing"):
        inventory.append(place.draft("part-3"), floor=2)


def test_columns_are_put_once() -> None:
    """Before the entry that names them, and never again by the same driver."""
    place = Place()
    inventory = place.filled(1)
    for number in (2, 3):
        draft = place.draft(f"part-{number}", schema="0" * 16, columns=b"columns")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("filesink.inventory.schemas.schema_id", lambda _: "0" * 16)
            calls = place.counted(lambda draft=draft: inventory.append(draft, floor=inventory.newest()))
        assert Counter(calls)["put_if_absent"] == 4 - number


def test_a_fold_that_fails_does_not_fail_the_epoch() -> None:
    """Its entry stands; the next fold has it, too."""
    place = Place()
    inventory = place.filled(3, fold_every=4)
    place.fault = lambda operation, path: (
        Fault(moment=Moment.BEFORE, error=LOST)
        if operation == "put_if_absent" and path.endswith("mark")
        else None
    )
    assert inventory.append(place.draft("part-4"), floor=3) == 4
    place.fault = lambda _operation, _path: None
    for number in (5, 6, 7, 8):
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
    assert place.listing().marks == (0, 1)
    assert place.listing().entries == ()
    assert len(place.live()) == 8


@pytest.mark.slow
def test_the_cost_does_not_grow() -> None:
    """Calls of the store for 64 epochs, folding included, after 100 versions and after 2,000."""
    place = Place()
    inventory = place.inventory(fold_every=8)

    def epochs(count: int) -> None:
        for _ in range(count):
            inventory.append(place.draft(f"part-{len(place.drafts)}"), floor=inventory.newest())

    epochs(64)
    early = len(place.counted(lambda: epochs(512)))
    epochs(1_024)
    late = len(place.counted(lambda: epochs(512)))
    assert late <= 1.1 * early
    assert place.listing().marks[-1] > 200
    assert mark_path(0) in place.files.files
