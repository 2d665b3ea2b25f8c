"""What a look finds, and when: claims of Flink's ContinuousFileSplitEnumeratorTest, and those it lacks."""

from __future__ import annotations

import json

import pytest

from filesink.errors import IdentityError, StateCorruptError
from filesink.source.discovery.discovery import Pace
from filesink.source.discovery.known_paths import KnownPaths
from filesink.source.streams import FoundFiles, Limit
from tests.fakes import CountingIds
from tests.source.found_files import ROOT, Checkpoint, Place, all_read, run


def batch_of(stream: FoundFiles, start=None, limit: Limit | None = None) -> tuple[dict, list[str]]:
    """The end of the next batch, and the names of its files."""
    start = start or stream.initial()
    end = stream.latest(start, limit or Limit())
    return dict(end), [file.path.removeprefix(f"{ROOT}/") for file in stream.files(start, end)]


def test_a_file_that_was_found_waits_until_somebody_asks() -> None:
    """Found by a driver that read nothing of it, it is read by the next one."""
    place = Place(files={"a": 1})
    first = place.stream()
    first.latest(first.initial(), Limit())
    checkpoint = Checkpoint()
    run(checkpoint, place.stream())
    assert all_read(checkpoint) == [f"{ROOT}/a"]


def test_a_file_that_comes_while_a_query_waits_is_in_its_next_batch() -> None:
    """And no file of an earlier one is."""
    place = Place(files={"a": 1})
    stream = place.stream()
    end, first = batch_of(stream)
    place.files["b"] = 2
    assert (first, batch_of(stream, end)[1]) == (["a"], ["b"])


def test_a_reader_that_died_leaves_its_files_to_the_next() -> None:
    """A batch that was planned, and of which nothing is in the checkpoint, is planned again, as it was."""
    place, checkpoint = Place(files={"a": 1, "b": 1}), Checkpoint()

    class DiedError(Exception):
        pass

    def die() -> None:
        raise DiedError

    with pytest.raises(DiedError):
        run(checkpoint, place.stream(), before_commit=die)
    place.files["c"] = 0
    run(checkpoint, place.stream())
    assert all_read(checkpoint) == [f"{ROOT}/{name}" for name in "abc"]


def test_a_path_is_read_once() -> None:
    """A file that changes under its name, or comes again, is not read a second time."""
    place = Place(files={"a": 1})
    stream = place.stream()
    end, _ = batch_of(stream)
    place.files["a"] = 99
    assert batch_of(stream, end) == (end, [])


def test_late_files_are_read() -> None:
    """However old a file is, when it comes it is read: in its batch the old ones are first."""
    place = Place(files={"new": 10**12})
    stream = place.stream()
    end, _ = batch_of(stream)
    place.files |= {"old": 1, "older": 0}
    assert batch_of(stream, end)[1] == ["older", "old"]


def test_young_files_wait() -> None:
    """A file is left until nobody has written to it for as long as was asked, and is then read."""
    place = Place(files={"young": 95_000, "old": 0})
    place.clock.now = 100_000
    stream = place.stream(pace=Pace(min_age_ms=10_000))
    end, names = batch_of(stream)
    assert names == ["old"]
    place.clock.now += 5_000
    assert batch_of(stream, end)[1] == ["young"]


def test_nothing_is_listed_before_its_time() -> None:
    """Between two looks an interval passes; a trigger before that finds nothing new."""
    place = Place(files={"a": 1})
    stream = place.stream(pace=Pace(interval_ms=1_000))
    end, _ = batch_of(stream)
    place.files["b"] = 1
    assert batch_of(stream, end)[1] == []
    place.clock.now += 1_000
    assert batch_of(stream, end)[1] == ["b"]
    assert place.listings == 2


def test_a_backlog_is_worked_off_without_listing() -> None:
    """As long as the log has enough files for a batch, the directory is left alone."""
    place = Place(files={str(number): 1 for number in range(20)})
    stream, end = place.stream(), None
    for _ in range(4):
        end, names = batch_of(stream, end, Limit(files=4))
        assert len(names) == 4
    assert place.listings == 1


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [
        (Limit(), [10]),
        (Limit(files=4), [4, 4, 2]),
        (Limit(size=35), [3, 3, 3, 1]),  # each has ten bytes
        (Limit(size=5), [1] * 10),
        (Limit(files=2, size=35), [2] * 5),
    ],
)
def test_limits_of_a_batch(limit: Limit, sizes: list[int]) -> None:
    """By number, by bytes, or by both; a file that is larger than the limit comes alone."""
    place, checkpoint = Place(files={str(number): 1 for number in range(10)}), Checkpoint()
    run(checkpoint, place.stream(), limit=limit)
    assert [len(batch) for batch in checkpoint.read] == sizes


def test_a_run_with_an_end_ends() -> None:
    """What comes while it runs is for the next one, however many batches it takes."""
    place, checkpoint = Place(files={str(number): 1 for number in range(5)}), Checkpoint()
    stream = place.stream()
    stream.fix_end()

    def appear() -> None:
        place.files[f"later-{len(place.files)}"] = 1

    run(checkpoint, stream, limit=Limit(files=2), before_commit=appear)
    assert len(all_read(checkpoint)) == 5
    run(checkpoint, place.stream())
    assert len(all_read(checkpoint)) == 8


def test_without_a_start_a_limit_bounds_what_becomes_known() -> None:
    """As on Spark 4.1, which asks for the end and tells nothing: each answer is as many files further."""
    place = Place(files={str(number): 1 for number in range(5)})
    stream = place.stream()
    assert [stream.latest_of_all(Limit(files=2))["files"] for _ in range(4)] == [2, 4, 5, 5]


def test_an_offset_has_the_same_size_after_any_number_of_files() -> None:
    """At most 200 bytes as JSON, however many were found."""
    place = Place(files={f"{'x' * 200}{number}": 1 for number in range(3_000)})
    stream = place.stream()
    end = stream.latest(stream.initial(), Limit())
    assert len(json.dumps(dict(end, files=10**12))) <= 200


def test_a_checkpoint_and_a_state_location_go_together() -> None:
    """One that is new, or older, than the other is told from it: nothing is read twice or left out."""
    place = Place(files={"a": 1})
    stream = place.stream()
    end = stream.latest(stream.initial(), Limit())
    with pytest.raises(IdentityError) as other:
        Place(ids=CountingIds(7)).stream().latest(end, Limit())
    assert other.value.code == "OTHER_LOG"
    with pytest.raises(StateCorruptError) as lost:
        place.stream().latest({**end, "files": 2}, Limit())
    assert lost.value.code == "GAP"


@pytest.mark.slow
def test_known_paths_are_a_set() -> None:
    """Against a set of Python, in any order and with repeats, over the size at which arrays are merged."""
    known, oracle = KnownPaths(), set()
    for step in range(40):
        paths = [f"p{(step * 7919 + number * 31) % 90_000}" for number in range(4_000)]
        fresh = [path for place, path in enumerate(paths) if path not in oracle and path not in paths[:place]]
        assert [paths[place] for place in known.unknown(paths)] == fresh
        known.add(paths)
        oracle.update(paths)
    assert len(known) == len(oracle) > 70_000


def test_a_known_path_takes_16_bytes() -> None:
    """What is kept of a path is its hash, whatever its length."""
    known = KnownPaths()
    known.add(f"{'long' * 50}-{number}" for number in range(100_000))
    assert known.nbytes <= 16 * 100_000
