"""Whatever happens to directory, driver and state location, each file is read exactly once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from filesink.errors import StorageError
from filesink.source.streams import FoundFiles, Limit
from filesink.storage.faulty import Fault, Moment
from tests.source.found_files import ROOT, Checkpoint, Place, all_read, run

SMALL = {"merge_at": 2, "largest": 6}  # so that a few files make all kinds of segments


class Crash(BaseException):
    """The process is gone."""


@dataclass
class FailAt:
    """The call with this number fails, and no other."""

    number: int
    moment: Moment
    error: BaseException
    calls: int = 0

    def __call__(self, operation: str, path: str) -> Fault | None:
        del operation, path
        self.calls += 1
        return Fault(moment=self.moment, error=self.error) if self.calls == self.number else None


NAMES = st.integers(0, 30).map(lambda number: f"file-{number}")
FAILURES = st.builds(
    FailAt,
    number=st.integers(1, 40),
    moment=st.sampled_from(Moment),
    error=st.sampled_from([Crash(), StorageError("down", code="UNAVAILABLE")]),
)
STEPS = st.one_of(
    st.tuples(st.just("appear"), st.lists(NAMES, min_size=1, max_size=8), st.integers(-5, 5)),
    st.tuples(st.just("vanish"), NAMES),
    st.tuples(st.just("run"), st.integers(0, 2), st.integers(1, 5), st.sampled_from([None, 1, 2])),
    st.tuples(st.just("look"), st.integers(0, 2)),
    st.tuples(st.just("fail"), st.integers(0, 2), FAILURES),
)


@settings(max_examples=10 * settings().max_examples)  # they take milliseconds
@given(steps=st.lists(STEPS, max_size=25))
def test_each_file_is_read_exactly_once(steps: list[tuple[object, ...]]) -> None:
    """Files come late and go, and three drivers take turns, none of which knows what the others did.

    A driver dies, or its store fails, at any call to the state location; then a new one takes its place.
    """
    place, checkpoint = Place(), Checkpoint()
    drivers = [place.stream(**SMALL) for _ in range(3)]
    for step in steps:
        match step:
            case ("appear", names, mtime):
                place.files |= dict.fromkeys(names, mtime)
            case ("vanish", name):
                place.files.pop(name, None)
            case ("run", number, most, files):
                run(checkpoint, drivers[number], limit=Limit(files=files), most=most)
            case ("look", number):
                drivers[number].latest(drivers[number].initial(), Limit())
            case ("fail", number, failure):
                attempt(checkpoint, place.stream(failure, **SMALL))
                drivers[number] = place.stream(**SMALL)
    run(checkpoint, place.stream(**SMALL))
    times = Counter(all_read(checkpoint))
    assert set(times.values()) <= {1}
    assert {f"{ROOT}/{name}" for name in place.files} <= times.keys()


def attempt(checkpoint: Checkpoint, stream: FoundFiles) -> None:
    """Run a driver that may die."""
    with suppress(Crash, StorageError):
        run(checkpoint, stream)


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    limits=st.fixed_dictionaries({"merge_at": st.integers(2, 6), "largest": st.integers(2, 30)}),
)
def test_numbers_stay_whatever_is_merged(sizes: list[int], limits: dict[str, int]) -> None:
    """A file has the same number in every process, before and after its segment was made one with others."""
    place = Place()
    log, known = place.log(**limits), []
    log.open([ROOT])
    for step, size in enumerate(sizes):
        place.files = {f"{step}-{number}": 0 for number in range(size)}
        new = list(place.enumerate_files())
        assert log.append(new)
        known += [file.path for file in new]
        assert [file.path for file in log.files(0, log.size)] == known
    another = place.log()
    another.open([ROOT])
    assert [file.path for file in another.files(0, another.size)] == known
    assert len(another.known) == len(known)
