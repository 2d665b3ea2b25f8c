"""Entries become segments, segments one, and what nobody needs goes, but nothing else and never too early."""

from __future__ import annotations

from collections import Counter

import pytest

from filesink.errors import StorageError
from filesink.inventory.folding import Folder
from filesink.inventory.mark import Mark, MarkKind, digest
from filesink.inventory.names import DIRECTORY, entry_path, mark_path, segment_path
from filesink.inventory.rows.segments import rows_of
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryFile
from tests.inventory.place import DAY_MS, HOUR_MS, Place

FAILED = StorageError("no answer", code="IO")


def newest(place: Place) -> Mark:
    """The mark that counts."""
    look = place.reader().look()
    assert look is not None
    return look.mark


def rows(place: Place, kind: str = "files") -> list[dict[str, object]]:
    """All rows of segments that the newest mark names."""
    found = []
    for segment in newest(place).segments:
        if segment.kind == kind:
            data = place.files.files[segment_path(segment.name)].content
            found += [row for piece in rows_of(data, segment) for row in piece.to_pylist()]
    return found


def test_a_fold_is_a_mark_over_the_one_before() -> None:
    """With its hash and the next number; what is in segments stands as an entry no more."""
    place = Place()
    place.filled(8, fold_every=4)
    first, second = (place.files.files[mark_path(number)].content for number in (1, 2))
    mark = newest(place)
    assert (mark.number, mark.version, mark.kind, mark.horizon) == (2, 8, MarkKind.FOLD, 0)
    assert mark.previous == digest(first) != digest(second)
    assert place.listing().entries == ()
    assert {row["path"]: row["added"] for row in rows(place)} == {f"part-{n}": n for n in range(1, 9)}


def test_eight_segments_become_one_of_the_next_level() -> None:
    """At most one level in one fold, so the number of segments stays small."""
    place = Place()
    inventory = place.inventory(fold_every=1)
    for number in range(1, 130):
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
        for kind in ("files", "epochs"):
            levels = Counter(segment.level for segment in newest(place).of_kind(kind))
            assert max(levels.values()) <= 8
    assert levels == {2: 2, 0: 1}
    assert len(place.live()) == 129


def test_of_two_folds_one_wins() -> None:
    """The other leaves it, and what it has made is swept by who has won."""
    place = Place()
    inventory = place.filled(3)

    def race(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith("mark"):
            place.before = lambda _operation, _path: None
            other = place.inventory()
            other.append(place.draft("part-4"), floor=3)
            other.fold()

    place.before = race
    inventory.fold()
    assert (newest(place).number, newest(place).version) == (1, 4)
    named = {segment.name for segment in newest(place).segments}
    assert {name for _, name in place.listing().segments} == named
    assert len(place.live()) == 4


def test_a_mark_whose_answer_was_lost_counts() -> None:
    """It is read, and what it has folded is swept."""
    place = Place()
    inventory = place.filled(3)
    place.fault = lambda operation, path: (
        Fault(moment=Moment.AFTER, error=FAILED)
        if operation == "put_if_absent" and path.endswith("mark")
        else None
    )
    inventory.fold()
    assert newest(place).number == 1
    assert place.listing().entries == ()


@pytest.mark.parametrize("cut", range(40))
def test_a_fold_may_be_cut_off_anywhere(cut: int) -> None:
    """Readers see the same files, and the next fold leaves no more behind than one that was not cut off."""
    place, calls = Place(), iter(range(1000))
    inventory = place.filled(5)
    place.fault = lambda _operation, _path: (
        Fault(moment=Moment.BEFORE, error=FAILED) if next(calls) >= cut else None
    )
    inventory.fold()
    place.fault = lambda _operation, _path: None
    assert len(place.live()) == 5
    other = place.inventory()
    assert other.append(place.draft("part-6"), floor=5) == 6
    other.fold()
    assert len(place.live()) == 6
    kinds = Counter(name.rpartition(".")[2] for name in place.names())
    assert kinds["entry"] == 0
    assert kinds["files"] <= 2
    assert kinds["epochs"] <= 2


def test_segments_of_a_mark_stay_an_hour() -> None:
    """For readers who have begun with it; the two newest marks keep theirs in any case."""
    place = Place()
    inventory = place.filled(8, fold_every=1)
    before = {segment.name for segment in newest(place).segments}
    for number in range(9, 13):
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
    there = {name for _, name in place.listing().segments}
    assert before <= there
    place.clock.now += 2 * HOUR_MS
    for number in (13, 14):
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
        place.clock.now += 2 * HOUR_MS
    named = {segment.name for segment in newest(place).segments}
    there = {name for _, name in place.listing().segments}
    assert named <= there
    assert len(there) <= len(named) + 4
    assert len(place.live()) == 14


def test_marks_are_few_and_the_first_stays() -> None:
    """It says that the path has an inventory, and sixteen more are left for drivers that were away."""
    place = Place()
    inventory = place.inventory(fold_every=1)
    for number in range(60):
        place.clock.now += 2 * HOUR_MS
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
    assert place.listing().marks == (0, *range(45, 61))


def test_a_segment_for_a_coming_mark_is_somebody_s_work() -> None:
    """It stays, whoever has made it; that of a number which is taken goes."""
    place = Place()
    inventory = place.filled(3)
    names = [f"{number:06d}-00000000-0000-4000-8000-000000000000.files" for number in (1, 2)]
    for name in names:
        place.files.files[segment_path(name)] = MemoryFile(1, 0, b"")
    inventory.fold()
    assert [name in place.names() for name in names] == [False, True]


def test_what_crashes_left_of_puts_is_swept() -> None:
    """Hidden names for what is there, or cannot count any more; others may be at work."""
    place = Place()
    inventory = place.filled(3)
    targets = {
        "000000000002.entry": False,
        "000000000009.entry": True,
        "000001.mark": False,
        "000002.mark": True,
        "000001-00000000-0000-4000-8000-000000000000.epochs": False,
        "000007-00000000-0000-4000-8000-000000000000.files": True,
        "0123456789abcdef.schema": True,
        "other": True,
    }
    for target in targets:
        place.files.files[f"{DIRECTORY}/.{target}.put.1"] = MemoryFile(1, 0, b"")
    inventory.fold()
    for target, stays in targets.items():
        assert (f".{target}.put.1" in place.names()) == stays, target


@pytest.mark.slow
def test_a_removed_file_is_forgotten_with_its_removal() -> None:
    """When nobody may ask for a version before it any more, and both are merged."""
    place = Place()
    inventory = place.inventory(fold_every=1, history_ms=HOUR_MS)
    for number in range(200):
        removed = (f"part-{number - 1}",) if number else ()
        inventory.append(place.draft(f"part-{number}", removed=removed), floor=inventory.newest())
        place.clock.now += HOUR_MS // 10
        assert place.live() == {f"part-{number}"}
    assert len(rows(place)) < 100


def test_a_removal_stays_while_its_file_is_elsewhere() -> None:
    """The file is in a large, old segment; its removal is merged many times with others, and wins."""
    place = Place()
    inventory = place.inventory(fold_every=1, history_ms=HOUR_MS)
    for number in range(70):
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
    inventory.append(place.draft(removed=("part-3",)), floor=inventory.newest())
    for number in range(70, 120):
        place.clock.now += HOUR_MS
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
        assert "part-3" not in place.live()
    assert newest(place).horizon > 72
    assert {"path": "part-3", "added": None} in [
        {"path": row["path"], "added": row["added"]} for row in rows(place)
    ]


def test_a_removal_stays_while_a_newer_segment_has_its_file() -> None:
    """Its driver was slow to append: the file comes after its removal, and is never live."""
    place = Place()
    inventory = place.inventory(fold_every=1, history_ms=HOUR_MS)
    for number in range(64):
        removed = ("late", "never") if number == 60 else ()
        inventory.append(place.draft(f"part-{number}", removed=removed), floor=inventory.newest())
    assert [segment.level for segment in newest(place).of_kind("files")] == [1] * 8
    place.clock.now += DAY_MS
    inventory.append(place.draft("late"), floor=inventory.newest())
    assert [segment.level for segment in newest(place).of_kind("files")] == [2, 0]
    assert newest(place).horizon == 65
    assert "late" not in place.live()
    assert [row["path"] for row in rows(place) if row["added"] is None] == ["late"]


def test_a_wrong_clock_forgets_nothing_that_was_just_appended() -> None:
    """A folder whose clock is a year ahead: the epochs that it folds stay, with their nonces."""
    place = Place()
    inventory = place.filled(20)
    place.clock.now += 365 * DAY_MS
    inventory.fold()
    assert place.inventory().append(place.drafts[7], floor=0) == 8
    assert newest(place).horizon == 0


def test_nothing_is_folded_twice_at_once() -> None:
    """Without entries there is nothing to do, nor while the path is being adopted."""
    place = Place()
    folder = Folder(place.store(), clock=place.clock, ids=place.ids, history_ms=DAY_MS)
    assert folder.fold() is None
    place.filled(2)
    assert folder.fold() is not None
    assert folder.fold() is None
    assert entry_path(1) not in place.files.files
