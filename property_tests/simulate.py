"""Random histories from integers.

python -m property_tests.simulate --seed 4711 --trace      one history, call by call
python -m property_tests.simulate --seeds 0:10000          many, until the first violation
python -m property_tests.simulate --minutes 60 --jobs 2    a soak, with counts of every fault point
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random

from property_tests.simulation.history import History, Result
from property_tests.simulation.observer.graces import draw_grace
from property_tests.simulation.scenario import Scenario, draw_neighbour
from property_tests.simulation.spark.machine import Trouble
from property_tests.simulation.workload import (
    draw_announcing,
    draw_dead_letters,
    draw_folds,
    draw_growth,
    draw_server,
    draw_shape,
    with_compaction,
)
from property_tests.simulation.world.faults import APPLICABLE, CRASHES, Mode
from property_tests.simulation.world.plans import Chance, MetastoreTrouble

_CHUNK = 500  # histories between two looks at the clock


def run_seed(seed: int, trace: Callable[[str], None] | None = None) -> Result:
    """The history of a seed."""
    return History(seed, scenario_of(seed), trace=trace).run()


def scenario_of(seed: int) -> Scenario:
    """What the history of a seed is made of."""
    random = Random(seed)
    shape = replace(draw_shape(random), server=draw_server(seed), grows_at=draw_growth(seed))
    if seed % 3 == 0:
        shape = with_compaction(shape, Random(seed + 1))
    announcing = Random(f"announcing {seed}")
    shape = draw_folds(draw_dead_letters(draw_announcing(shape, announcing), seed), seed)
    scenario = Scenario(
        shape=shape,
        trouble=draw_trouble(random),
        plan=Chance(random, spacing=random.choice((20, 80, 200)), faults=random.choice((0, 1, 2, 3, 5, 8))),
        pace=random.choice((0, 0, 2, 10, 50)),
        neighbour=draw_neighbour(seed),
        grace_ms=draw_grace(seed),
    )
    scenario = with_overwrites(scenario, Random(f"overwrites {seed}"))
    scenario = with_tidying(scenario, Random(f"tidying {seed}"))
    scenario = with_crowds(scenario, Random(f"crowds {seed}"))
    scenario = with_operations(scenario, Random(f"operations {seed}"))
    scenario = with_refusals(scenario, Random(f"refusals {seed}"))
    if shape.announce_after_ms is not None:
        plan = MetastoreTrouble(announcing, scenario.plan, faults=announcing.choice((0, 1, 3, 20)))
        return replace(scenario, plan=plan)
    return scenario


def draw_trouble(random: Random) -> Trouble:
    """What Spark and people do in the history of a seed; most of it nothing."""

    def some(probability: float) -> float:
        return probability if random.random() < 0.25 else 0.0

    return Trouble(
        task_fails=some(0.2),
        twin=some(0.4),
        result_lost=some(0.3),
        upkeep=random.choice((0.0, 0.5)),
        jvm_dies=some(0.5),
        clock_jumps=some(0.3),
        second_driver=some(0.5),
        operator=some(0.7),
        workers_die=random.choice((0.0, 0.5, 1.0)),
    )


def with_overwrites(scenario: Scenario, random: Random) -> Scenario:
    """One history in four has jobs that replace files, closely interleaved with the query.

    ``random`` is of their own, so that the others are the histories that they were without them.
    """
    if random.random() >= 0.25 or scenario.shape.dead_letters:
        return scenario
    trouble = replace(scenario.trouble, overwrites=0.6, overwrites_end=random.choice((0.0, 0.7)))
    return replace(scenario, trouble=trouble, pace=random.choice((0, 2, 2, 3, 10)))


def with_tidying(scenario: Scenario, random: Random) -> Scenario:
    """One history in six merges what is visible; of formats that can be merged without a ledger."""
    shape = scenario.shape
    if random.random() >= 1 / 6 or shape.announce_after_ms is not None or shape.dead_letters:
        return scenario
    if shape.format == "lines":
        shape = replace(shape, format="json")
    trouble = replace(scenario.trouble, tidies=0.7)
    return replace(scenario, shape=shape, trouble=trouble, pace=random.choice((0, 2, 2, 10)))


def with_crowds(scenario: Scenario, random: Random) -> Scenario:
    """One history in eight has three batch jobs at once, some of which append, closely interleaved."""
    if random.random() >= 1 / 8 or scenario.shape.dead_letters:
        return scenario
    trouble = replace(scenario.trouble, crowds=0.7)
    return replace(scenario, trouble=trouble, pace=random.choice((2, 2, 3, 10)))


def with_operations(scenario: Scenario, random: Random) -> Scenario:
    """In one history in eight somebody drops old files or rolls back, closely interleaved with the query.

    In some of these rows are erased, too, which takes Parquet.
    """
    shape = scenario.shape
    if random.random() >= 1 / 8 or shape.dead_letters:
        return scenario
    trouble = replace(scenario.trouble, operations=0.7)
    pace = random.choice((0, 2, 2, 3, 10))
    if random.random() < 0.3 and shape.compacting is None and not trouble.tidies:
        shape = replace(shape, format="parquet", rolls=True)
        trouble = replace(trouble, erases=0.7)
    return replace(scenario, shape=shape, trouble=trouble, pace=pace)


def with_refusals(scenario: Scenario, random: Random) -> Scenario:
    """In one history in eight nobody may remove old files for a while; most of these overwrite some."""
    if random.random() >= 1 / 8 or scenario.shape.dead_letters:
        return scenario
    overwrites = random.choice((scenario.trouble.overwrites, 0.8, 0.8))
    trouble = replace(scenario.trouble, forbids=0.8, overwrites=overwrites)
    return replace(scenario, trouble=trouble)


@dataclass(slots=True)
class Tally:
    """What many histories did."""

    histories: int = 0
    operations: int = 0
    restarts: int = 0
    power_cuts: int = 0
    fired: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)

    def add(self, seed: int, result: Result) -> None:
        """Count one history."""
        self.histories += 1
        self.operations += result.operations
        self.restarts += max(0, result.drivers - 1)
        self.power_cuts += result.power_cuts
        self.fired.update(result.fired)
        if result.violation is not None:
            self.violations.append((seed, str(result.violation)))

    def merge(self, other: Tally) -> None:
        """Count what another process did."""
        self.histories += other.histories
        self.operations += other.operations
        self.restarts += other.restarts
        self.power_cuts += other.power_cuts
        self.fired.update(other.fired)
        self.violations += other.violations

    def report(self) -> str:
        """For people: totals, and each fault point with its count."""
        total = (
            f"{self.histories} histories, {self.operations} operations, {sum(self.fired.values())} faults at "
            f"{len(self.fired)} points, {self.restarts} restarts, {len(self.violations)} violations"
        )
        lines = [total]
        lines.append(f"{self._kills()} processes killed at a call, {self.power_cuts} power cuts")
        lines += [
            f"{count:9d}  {mode:9}  {name} {kind}" for (name, kind, mode), count in sorted(self.fired.items())
        ]
        lines += [f"    never  {mode:9}  {name}" for name, mode in self._never()]
        lines += [f"seed {seed}: {violation}" for seed, violation in self.violations[:20]]
        return "\n".join(lines)

    def _kills(self) -> int:
        crashes = {Mode.CRASH_BEFORE.value, Mode.CRASH_AFTER.value}
        return sum(count for (_, _, mode), count in self.fired.items() if mode in crashes)

    def _never(self) -> list[tuple[str, str]]:
        """Faults that should occur and did not."""
        struck = {(name, mode) for name, _, mode in self.fired}
        wanted = ((name, mode.value) for name, modes in APPLICABLE.items() for mode in (*CRASHES, *modes))
        return [point for point in wanted if point not in struck and point[0] != "open_read"]


def run_seeds(seeds: Iterable[int]) -> Tally:
    """Many histories in this process."""
    tally = Tally()
    for seed in seeds:
        tally.add(seed, run_seed(seed))
    return tally


def soak(first: int, minutes: float, jobs: int) -> Tally:
    """Histories from ``first`` on until the time is over or an invariant does not hold."""
    tally = Tally()
    end = time.monotonic() + minutes * 60
    with ProcessPoolExecutor(jobs, initializer=_prepare) as pool:
        while time.monotonic() < end and not tally.violations:
            chunks = [range(first + i * _CHUNK, first + (i + 1) * _CHUNK) for i in range(4 * jobs)]
            first += len(chunks) * _CHUNK
            for part in pool.map(run_seeds, chunks):
                tally.merge(part)
            print(f"{tally.histories} histories, {len(tally.violations)} violations", file=sys.stderr)
    return tally


def _prepare() -> None:
    """Set up a process of a soak."""
    # Arrow tells on standard error of every Parquet file whose process has died.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    # What is imported stays, and histories are small: looking for garbage less often saves a tenth.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description="random histories of filesink on a simulated machine")
    parser.add_argument("--seed", type=int, help="one history")
    parser.add_argument("--trace", action="store_true", help="show each call of that history")
    parser.add_argument("--seeds", help="FIRST:END, one process")
    parser.add_argument("--minutes", type=float, help="a soak of this length")
    parser.add_argument("--first", type=int, default=0, help="the soak's first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if arguments.seed is not None:
        result = run_seed(arguments.seed, print if arguments.trace else None)
        print(f"seed {arguments.seed}: {result.violation or 'all invariants hold'}")
        return 1 if result.violation else 0
    if arguments.minutes is not None:
        tally = soak(arguments.first, arguments.minutes, arguments.jobs)
    else:
        first, _, end = (arguments.seeds or "0:1000").partition(":")
        tally = run_seeds(range(int(first), int(end)))
    print(tally.report())
    return 1 if tally.violations else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of Arrow that still read for a dead process would abort an ordinary end
