"""Every fault at every call of a canonical history, and sampled faults in the recovery from a crash.

    python -m property_tests.exhaustive              every single fault
    python -m property_tests.exhaustive --pairs 5000 so many double ones, too

The canonical history has three batches, two partitions and two buckets; parts roll inside an epoch and
stay open across epochs, are merged, and records are folded away. In another, small files wait for
each other, in one more they are merged when they are visible; and one has a query through the data source.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from compaction import FileCompactor, FileCompactStrategy
from property_tests.simulate import Tally
from property_tests.simulation.compacting import Compacting
from property_tests.simulation.history import History
from property_tests.simulation.scenario import Neighbour, Scenario
from property_tests.simulation.spark.machine import Trouble
from property_tests.simulation.workload import Bounds, Shape
from property_tests.simulation.world.bucket import Personality
from property_tests.simulation.world.faults import CRASHES, Fault, Mode, single_faults
from property_tests.simulation.world.plans import OneFault, Recorder, TwoFaults
from property_tests.simulation.world.world import Plan

_QUIET = Trouble(upkeep=0.0)
#: Name to scenario; the faults of each are tried one by one.
CANON: dict[str, Scenario] = {
    "open parts": Scenario(shape=Shape(keep_batches=1, bounds=Bounds(fold_every=1)), trouble=_QUIET),
    "closed parts, interleaved": Scenario(shape=Shape(batches=1, rolls=True), trouble=_QUIET, pace=3),
    "compaction": Scenario(
        shape=Shape(
            batches=2,
            rows=2,
            partitions=1,
            part_size=1000,
            compacting=Compacting(
                strategies=(FileCompactStrategy(size_threshold=100, checkpoints=2),),
                compactor=FileCompactor.concat_file_compactor(),
            ),
        ),
        trouble=_QUIET,
    ),
    "announced": Scenario(
        shape=Shape(batches=2, rows=2, partitions=1, rolls=True, buckets=("p=1", "p=2"), announce_after_ms=0),
        trouble=_QUIET,
    ),
    "overwrites": Scenario(
        shape=Shape(batches=1, rows=2, rolls=True, partitions=1, keep_batches=1, bounds=Bounds(fold_every=1)),
        trouble=Trouble(upkeep=0.0, overwrites=1.0, overwrites_end=1.0),
    ),
    "finished files": Scenario(
        shape=Shape(batches=1, rows=2, rolls=True, format="json", buckets=("a",)),
        trouble=Trouble(upkeep=0.0, tidies=1.0, overwrites_end=1.0),
    ),
    "data source": Scenario(
        shape=Shape(batches=4, rows=0, rolls=True, partitions=1, buckets=("a",)),
        trouble=_QUIET,
        neighbour=Neighbour.DATA_SOURCE,
        pace=10,
    ),
    "parquet": Scenario(shape=Shape(batches=1, rolls=True, format="parquet"), trouble=_QUIET),
    "objects": Scenario(
        shape=Shape(keep_batches=1, bounds=Bounds(fold_every=1), server=Personality.MINIO), trouble=_QUIET
    ),
    "objects, another server": Scenario(
        shape=Shape(batches=3, rows=1, rolls=True, partitions=1, buckets=("a",), server=Personality.AMAZON),
        trouble=_QUIET,
        neighbour=Neighbour.DATA_SOURCE,
        pace=10,
    ),
}
#: Not tried fault by fault, being long or much like one above: only some cases that have found something.
CASES_ONLY: dict[str, Scenario] = {
    "merges in tasks": Scenario(
        shape=replace(CANON["compaction"].shape, bounds=Bounds(merged_on_driver=0)), trouble=_QUIET
    ),
    "crowd": Scenario(
        shape=Shape(batches=1, rows=2, rolls=True, partitions=1, buckets=("a",)),
        trouble=Trouble(upkeep=0.0, crowds=1.0),
        pace=2,
    ),
}
_SEED = 1
_GIVEN_UP = 60  # calls; more than a caller makes before it gives up, and fewer than until the end
#: What is called, the kind of thing it is about, and how it goes wrong.
Point = tuple[str, str, Mode]


@dataclass(frozen=True, slots=True)
class Case:
    """One history with faults at chosen calls; ``str`` says how to repeat it."""

    canon: str
    number: int
    fault: Fault
    sticky: bool = False
    second: int = 0
    then: Mode | None = None
    seed: int = _SEED

    def run(self, tally: Tally) -> None:
        """Run it and count it."""
        plan: Plan = OneFault(self.number, self.fault, sticky=self.sticky)
        if self.then is not None:
            plan = TwoFaults(self.number, self.fault, second=self.second, mode=self.then)
        result = History(self.seed, replace((CANON | CASES_ONLY)[self.canon], plan=plan)).run()
        tally.add(self.number, result)
        if result.violation is not None:
            tally.cases.append(f"{self}: {result.violation}")


@cache  # a history is always the same
def calls(canon: str) -> tuple[tuple[str, str], ...]:
    """The calls of a canonical history and their places, in order, up to the end of its source."""
    recorder = Recorder()
    history = History(_SEED, replace(CANON[canon], plan=recorder))
    history.run()
    return tuple(recorder.calls[: history.calm_after])


def points() -> Iterator[tuple[Case, Point]]:
    """Every call, every mode that applies to it; errors once, and sticky until the next restart.

    After a call that is done late, the server also refuses what comes next, so that the caller gives up, and
    only then it is done.
    """
    for canon in CANON:
        for number, (operation, place) in enumerate(calls(canon), start=1):
            for fault in single_faults(operation):
                yield Case(canon, number, fault), (operation, place, fault.mode)
                if fault.mode is Mode.ERROR:
                    yield Case(canon, number, fault, sticky=True), (operation, place, fault.mode)
                if fault.mode is Mode.LATE and fault.delay:
                    given_up = replace(fault, delay=_GIVEN_UP, refuses=True)
                    yield Case(canon, number, given_up), (operation, place, fault.mode)


def singles() -> Iterator[Case]:
    """All single faults."""
    return (case for case, _ in points())


def one_of_each() -> Iterator[Case]:
    """The first call of each kind, in each history, with each fault that applies to it."""
    first: dict[tuple[str, str, str, Fault, bool], Case] = {}
    for case, (operation, place, _) in points():
        first.setdefault((case.canon, operation, place, case.fault, case.sticky), case)
    return iter(first.values())


def sampled(stride: int) -> Iterator[Case]:
    """A case of each fault point, in the shortest history that has it, and every so many after that."""
    seen: Counter[Point] = Counter()
    for case, point in sorted(points(), key=lambda found: len(calls(found[0].canon))):
        if seen[point] % stride == 0:
            yield case
        seen[point] += 1


def pairs(count: int, seed: int = 0) -> Iterator[Case]:
    """A crash anywhere in any of the histories, then another fault within the calls that recover from it."""
    random = Random(seed)
    lengths = {canon: len(calls(canon)) for canon in CANON}
    modes = [mode for mode in Mode if mode is not Mode.FULL]
    for _ in range(count):
        canon = random.choice(tuple(CANON))
        number = random.randint(1, lengths[canon])
        yield Case(
            canon,
            number,
            Fault(random.choice(CRASHES)),
            second=number + random.randint(1, 120),
            then=random.choice(modes),
        )


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description="every fault at every call of a canonical history")
    parser.add_argument("--pairs", type=int, default=0, help="how many double faults")
    tally = Tally()
    for case in (*singles(), *pairs(parser.parse_args().pairs)):
        case.run(tally)
    print(tally.report())
    print("\n".join(tally.cases))
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
