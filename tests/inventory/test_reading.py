"""What readers ask of the store, and what they say of an inventory that is not whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from filesink.errors import ConfigError, FilesinkError, StateCorruptError, StateError, StateVersionError
from filesink.inventory.names import DIRECTORY, entry_path, mark_path
from filesink.storage.memory import MemoryFile
from tests.inventory.place import DAY_MS, HOUR_MS, Place

LAST = 11


@pytest.fixture
def place() -> Place:
    """Folded twice, with entries above the newest mark, and columns."""
    made = Place()
    made.filled(10, fold_every=4)
    columns = b"columns"
    draft = made.draft("part-11", removed=("part-3",), columns=columns, schema="7b31f2a3c5f2b0c6")
    made.inventory().append(draft, floor=10)
    return made


def test_a_snapshot_is_read_with_one_listing(place: Place) -> None:
    """Then the mark, the entries above it, the next mark, which is not there, and the segments of files."""
    assert place.counted(place.snapshots().newest) == ["list", "read", "read"]
    calls = place.counted(lambda: place.snapshots().files_at(None))
    assert calls == ["list", *["read"] * 7]
    assert [name.rpartition(".")[2] for _, name in place.calls[1:]] == [
        "mark",
        *["entry"] * 3,
        "mark",
        *["files"] * 2,
    ]
    assert place.calls[5] == ("read", "000003.mark")


def test_every_version_can_be_read(place: Place) -> None:
    """Folded or not: files that were added up to it and not removed by then."""
    for version in range(LAST):
        assert place.live(version) == {f"part-{number}" for number in range(1, version + 1)}
    assert place.live() == {f"part-{number}" for number in range(1, 12) if number != 3}


def test_a_version_that_is_not_there_yet_is_named(place: Place) -> None:
    """The message says which is the newest."""
    with pytest.raises(ConfigError, match="the newest is 11") as caught:
        place.snapshots().files_at(12)
    assert caught.value.code == "NO_VERSION"


def test_moments_are_versions(place: Place) -> None:
    """The newest that was visible then; before the first there was nothing."""
    moments = [draft.visible_ms for draft in place.drafts]
    assert set(moments) == {place.clock.now}
    place.clock.now += DAY_MS
    later = place.draft("part-12")
    place.inventory().append(later, floor=LAST)
    snapshots = place.snapshots()
    assert snapshots.version_at(place.clock.now) == LAST + 1
    assert snapshots.version_at(place.clock.now - 1) == LAST
    assert snapshots.version_at(moments[0] - 1) == 0


def test_epochs_come_in_their_order(place: Place) -> None:
    """Folded ones and those that are not, each once."""
    rows = place.snapshots().epochs(None)
    assert rows["version"].to_pylist() == list(range(1, LAST + 1))
    assert rows["nonce"].to_pylist() == [draft.nonce for draft in place.drafts]
    assert place.snapshots().epochs(6)["version"].to_pylist() == list(range(7, LAST + 1))
    assert place.snapshots().epochs(LAST).num_rows == 0


def test_a_reader_that_is_overtaken_begins_again(place: Place) -> None:
    """Between its listing and its reading everything is folded."""

    def fold(operation: str, path: str) -> None:
        if operation == "read" and path.endswith("entry"):
            place.before = lambda _operation, _path: None
            place.inventory().fold()

    place.before = fold
    assert place.live() == {f"part-{number}" for number in range(1, 12) if number != 3}


def test_a_reader_does_not_believe_what_came_too_late(place: Place) -> None:
    """It has listed an entry; before it reads it that is folded, and a void one stands in its place."""
    void = place.files.files[entry_path(LAST)].content
    stranger = place.draft("stranger")

    def replace(operation: str, path: str) -> None:
        if operation == "read" and path.endswith("entry"):
            place.before = lambda _operation, _path: None
            asleep = place.inventory()
            asleep.newest()
            place.inventory().fold()
            late = place.inventory()._put(asleep._known, stranger, LAST)
            assert late

    place.before = replace
    assert "stranger" not in place.live()
    assert void != place.files.files[entry_path(LAST)].content


def test_a_path_without_inventory_says_what_to_do() -> None:
    """It was written by an earlier release."""
    with pytest.raises(StateError, match=r"filesink\.adopt\('/base'\)") as caught:
        Place().snapshots().newest()
    assert caught.value.code == "NO_INVENTORY"


def test_history_expires() -> None:
    """Versions whose epochs are forgotten cannot be asked for; the message names the oldest that can."""
    place = Place()
    inventory = place.inventory(fold_every=1, history_ms=DAY_MS)
    for number in range(40):
        place.clock.now += HOUR_MS
        inventory.append(place.draft(f"part-{number}"), floor=inventory.newest())
    snapshots = place.snapshots()
    oldest = snapshots.epochs(None)["version"].to_pylist()[0]
    assert 1 < oldest <= 16
    for ask in (
        lambda: snapshots.files_at(oldest - 1),
        lambda: snapshots.epochs(oldest - 2),
        lambda: snapshots.version_at(place.clock.now - 40 * HOUR_MS),
    ):
        with pytest.raises(StateError, match=f"oldest that is, is {oldest}") as caught:
            ask()
        assert caught.value.code == "HISTORY_EXPIRED"
    assert len(place.live(oldest)) == oldest
    assert len(place.live()) == 40


# --- damage


def answers(place: Place) -> list[object]:
    """All that can be asked."""
    snapshots = place.snapshots()
    files = [snapshots.files_at(version).rows.to_pylist() for version in (None, 10, 5)]
    return [*files, snapshots.epochs(None).to_pylist(), snapshots.version_at(place.clock.now)]


def told(ask: Callable[[], object], expected: object) -> FilesinkError | None:
    """The error that ``ask`` raises; ``None`` if it answers as ``expected``."""
    try:
        assert ask() == expected
    except FilesinkError as error:
        return error
    return None


def flip(data: bytes, place: int) -> bytes:
    """``data`` with one other bit."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "removed": lambda _: None,
    "emptied": lambda _: b"",
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b"x",
    "first bit": lambda data: flip(data, 0),
    "middle bit": lambda data: flip(data, len(data) // 2),
    "last bit": lambda data: flip(data, -1 + len(data)),
}


def spoil(place: Place, path: str, content: bytes | None) -> None:
    """Have other bytes stand in a file, or none at all."""
    file = place.files.files[path]
    if content is None:
        del place.files.files[path]
    else:
        place.files.files[path] = MemoryFile(file.inode, file.mtime_ms, content)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_and_never_believed(place: Place, damage: str) -> None:
    """Each file, spoilt in each way: the same answers, or an error that names a file of the inventory.

    But for the newest entry: that one was there, only the ledger can tell.
    """
    expected = answers(place)
    paths = [path for path in place.files.files if path.startswith(DIRECTORY)]
    assert len(paths) > 10
    for path in paths:
        if (damage, path) == ("removed", entry_path(LAST)):
            continue
        kept = place.files.files[path]
        spoil(place, path, DAMAGES[damage](kept.content))
        error = told(lambda: answers(place), expected)
        if error is not None:
            assert isinstance(error, StateCorruptError | StateVersionError), path
            assert DIRECTORY in error.message, path
        place.files.files[path] = kept


def test_files_that_are_copied_under_another_name_are_told(place: Place) -> None:
    """Each under every name that a file of its kind could have next, or has."""
    expected = answers(place)
    copies = {
        entry_path(10): [entry_path(LAST), entry_path(LAST + 1), entry_path(2)],
        mark_path(1): [mark_path(2), mark_path(3), mark_path(0)],
        mark_path(2): [mark_path(1), mark_path(3)],
    }
    for source, targets in copies.items():
        for target in targets:
            kept = place.files.files.get(target)
            place.files.files[target] = MemoryFile(1, 0, place.files.files[source].content)
            error = told(lambda: answers(place), expected)
            if error is not None:
                assert target in error.message
                assert error.code == "FOREIGN"
            if kept is None:
                del place.files.files[target]
            else:
                place.files.files[target] = kept


def test_an_entry_of_another_inventory_is_told(place: Place) -> None:
    """With the version that the next one would have here."""
    other = Place()
    other.ids.made = 10_000
    other.filled(LAST + 1)
    place.files.files[entry_path(LAST + 1)] = other.files.files[entry_path(LAST + 1)]
    with pytest.raises(StateCorruptError, match=r"000000000012\.entry is an entry of another") as caught:
        place.snapshots().files_at(None)
    assert caught.value.code == "FOREIGN"


def test_a_gap_names_the_version(place: Place) -> None:
    """And what to do about it."""
    del place.files.files[entry_path(10)]
    with pytest.raises(StateCorruptError, match=r"000000000010\.entry is missing.*filesink\.adopt") as caught:
        place.snapshots().files_at(None)
    assert caught.value.code == "GAP"
    assert place.clock.slept, "it was looked at again"


def test_the_newest_mark_is_missed(place: Place) -> None:
    """With entries above it, by the gap; without, by the segments that were made for it."""
    place.inventory().fold()
    del place.files.files[mark_path(3)]
    with pytest.raises(StateCorruptError, match=r"000003\.mark is missing") as caught:
        place.snapshots().files_at(None)
    assert caught.value.code == "GAP"
    place.files.files = {path: file for path, file in place.files.files.items() if "mark" not in path}
    with pytest.raises(StateCorruptError) as caught:
        place.snapshots().newest()
    assert caught.value.code == "NO_MARK"
