"""The log of found files where its laws do not reach: conflicts, lost replies, damage, old bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink.errors import ConfigError, StateCorruptError, StateError, StorageError
from filesink.source.discovery.log import DIRECTORY, DiscoveryLog
from filesink.source.discovery.segment import Segment, SegmentName
from filesink.source.files import SourceFile
from filesink.storage.faulty import Fault, Moment
from filesink.storage.memory import MemoryStore
from tests.source.found_files import ROOT, Place

GOLDEN = Path(__file__).parents[1] / "golden" / "found-files-1"


def files(*names: str) -> list[SourceFile]:
    """Files as a listing has them."""
    return [SourceFile(f"{ROOT}/{name}", 1, 2) for name in names]


def names_in(log: DiscoveryLog) -> list[str]:
    """All files of a log, in the order of their numbers."""
    return [file.path.removeprefix(f"{ROOT}/") for file in log.files(0, log.size)]


def opened(place: Place, plan=None, **limits: int) -> DiscoveryLog:
    """The log as a new driver has it."""
    log = place.log(plan, **limits)
    log.open([ROOT])
    return log


def test_who_comes_second_takes_in_what_the_first_has_found() -> None:
    """Two logs that know nothing of each other append: one is refused, and then knows what is there."""
    place = Place()
    first, second = opened(place), opened(place)
    assert first.append(files("a", "b"))
    assert not second.append(files("b", "c"))
    assert second.size == 2
    assert second.known.unknown([file.path for file in files("b", "c")]) == [1]
    assert second.append(files("c"))
    assert names_in(second) == names_in(opened(place)) == ["a", "b", "c"]


@pytest.mark.parametrize("moment", Moment)
def test_a_lost_reply_is_settled_by_reading(moment: Moment) -> None:
    """What the store has made counts, and what it has not is an error; never both, never a second segment."""
    place = Place()
    failing = [Fault(moment=moment, error=StorageError("down", code="UNAVAILABLE"))]

    def plan(operation: str, path: str) -> Fault | None:
        is_segment = operation == "put_if_absent" and path.endswith(".found")
        return failing.pop() if failing and is_segment else None

    log = opened(place, plan)
    if moment is Moment.BEFORE:
        with pytest.raises(StorageError):
            log.append(files("a"))
    assert log.append(files("a")) is (moment is Moment.BEFORE or log.size == 1)
    assert names_in(opened(place)) == ["a"]


def test_a_number_that_was_merged_is_not_given_again() -> None:
    """A driver from before the merge finds its number free, and still is told that others have it."""
    place = Place()
    stale, other = opened(place, merge_at=2), opened(place, merge_at=2)
    for name in "abc":
        assert other.append(files(name))
    assert f"{DIRECTORY}/{SegmentName(0)}" not in place.state.files
    assert not stale.append(files("x"))
    assert stale.size == 3
    assert names_in(opened(place)) == ["a", "b", "c"]


def test_a_merge_leaves_a_larger_one_alone() -> None:
    """A driver that merges less than another has merged removes nothing that the other one needs."""
    place = Place()
    small = opened(place, merge_at=2)
    assert small.append(files("a"))
    store = MemoryStore(place.state)
    wide = Segment(first=1, files=files("b", "c"), nonce="n")
    store.put_if_absent(f"{DIRECTORY}/{SegmentName(1, 3)}", wide.to_bytes())
    store.put_if_absent(
        f"{DIRECTORY}/{SegmentName(1)}", Segment(first=1, files=files("b"), nonce="m").to_bytes()
    )
    small.refresh()
    small._replace(0, 2)
    assert names_in(opened(place)) == ["a", "b", "c"]


def test_segments_stay_few() -> None:
    """A thousand looks that each find a file leave some dozen files in the state location."""
    place = Place()
    log = opened(place, merge_at=16, largest=200)
    for number in range(1_000):
        assert log.append(files(str(number)))
    assert len(place.state.files) < 16 + 1_000 / 200 + 3
    assert names_in(opened(place)) == [str(number) for number in range(1_000)]


def test_what_a_dead_driver_left_unfinished_goes_with_the_next_merge() -> None:
    """A hidden file of a put that was cut off is removed when its number was merged."""
    place = Place()
    log = opened(place, merge_at=2)
    place.state.make(f"{DIRECTORY}/.{SegmentName(0)}.put.0a0b0c0d-0000-4000-8000-000000000001", b"half")
    for name in "ab":
        log.append(files(name))
    assert not [path for path in place.state.files if ".put." in path]


def test_a_state_location_belongs_to_one_source() -> None:
    """The paths of another source are refused; the same ones in another order are not."""
    place = Place()
    place.log().open(["/a", "/b"])
    place.log().open(["/b", "/a"])
    with pytest.raises(ConfigError, match="that of a source of '/a', '/b'") as error:
        place.log().open(["/c"])
    assert error.value.code == "STATE_LOCATION"


@pytest.mark.parametrize("damage", [b"", b"x", b"filesink found-files 9 plain 1 " + b"0" * 64 + b"\nx"])
def test_damage_names_the_segment(damage: bytes) -> None:
    """A segment that cannot be read stops the source, with its path in the error."""
    place = Place()
    opened(place).append(files("a"))
    place.state.files[f"{DIRECTORY}/{SegmentName(0)}"].content = damage
    with pytest.raises(StateError, match=r"000000000000\.found"):
        opened(place)


def test_a_hole_is_told() -> None:
    """If a segment between others is gone, no file gets another number: the log is damaged."""
    place = Place()
    log = opened(place)
    for name in "abc":
        log.append(files(name))
    del place.state.files[f"{DIRECTORY}/{SegmentName(1)}"]
    with pytest.raises(StateCorruptError) as error:
        opened(place)
    assert error.value.code == "GAP"


def test_segments_of_the_first_release_are_read() -> None:
    """Bytes from then mean what they meant, and are made again as they were."""
    segment = Segment.from_bytes(GOLDEN.read_bytes(), where=str(GOLDEN))
    assert segment == Segment(
        first=7,
        files=[SourceFile("/in/a b.csv", 12, 1_700_000_000_123), SourceFile("s3://x/\udcff", 0, -1)],
        nonce="0a0b0c0d-0000-4000-8000-000000000001",
    )
    assert segment.to_bytes() == GOLDEN.read_bytes()


@pytest.mark.parametrize("name", ["000000000007.found", "000000000007-000000000009.found"])
def test_names_of_segments_are_read_back(name: str) -> None:
    """What a name says is the segment that it is given for."""
    parsed = SegmentName.parse(name)
    assert str(parsed) == name
    assert SegmentName.parse(f".{name}.put.1") is None
