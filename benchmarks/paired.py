"""Compare two ways of doing the same, fairly on a machine that is not ours alone.

Measurements are taken in pairs, A B A B …, after one unmeasured run of each; dirty pages are
written back before each. What counts is the median of the ratios within the pairs: whatever slows
the machine for a while slows both halves of a pair. The spread says how far to trust it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from setting import setting

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One of the two: ``measure`` does the work once, cleans up and returns what it took."""

    name: str
    measure: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was measured; ``unit`` is that of all the values."""

    title: str
    unit: str
    ours: str
    baseline: str
    our_values: list[float]
    baseline_values: list[float]

    @property
    def ratios(self) -> list[float]:
        """Ours divided by the baseline, for each pair; below 1 we are faster."""
        return [ours / theirs for ours, theirs in zip(self.our_values, self.baseline_values, strict=True)]


def compare(
    title: str, *, baseline: Contender, ours: Contender, unit: str, rounds: int, warm_ups: int = 1
) -> Comparison:
    """Measure in pairs, print one table, keep the raw values in ``benchmarks/results``."""
    values = measure([baseline, ours], rounds=rounds, warm_ups=warm_ups)
    comparison = Comparison(
        title=title,
        unit=unit,
        ours=ours.name,
        baseline=baseline.name,
        our_values=values[ours.name],
        baseline_values=values[baseline.name],
    )
    report(comparison)
    return comparison


def measure(contenders: Sequence[Contender], *, rounds: int, warm_ups: int = 1) -> dict[str, list[float]]:
    """What each took in each round, by its name; they take turns."""
    values: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(warm_ups + rounds):
        for contender in contenders:
            os.sync()
            value = contender.measure()
            if number >= warm_ups:  # the first round warms up JVM, page cache and Python workers
                values[contender.name].append(value)
    return values


def report(comparison: Comparison) -> None:
    """Print one table, keep the raw values in ``benchmarks/results``."""
    show(comparison)
    keep(comparison.title, asdict(comparison))


def show(comparison: Comparison) -> None:
    """Print medians and spreads of both sides and of the ratio."""
    print(f"\n{comparison.title}  ({len(comparison.our_values)} pairs, {comparison.unit})")
    print(f"  {'':<28}{'median':>10}{'min':>10}{'max':>10}")
    _line(comparison.baseline, comparison.baseline_values)
    _line(comparison.ours, comparison.our_values)
    _line("ratio (below 1: ours faster)", comparison.ratios)


def keep(title: str, values: dict[str, object]) -> None:
    """Write raw values beside what they were measured on; ``report.py`` makes a page of them.

    It knows the values of a ``Comparison``, ``milliseconds`` of one epoch after the other, and ``facts``:
    what was found, by a name.
    """
    RESULTS.mkdir(exist_ok=True)
    name = "".join(letter if letter.isalnum() else "-" for letter in title.lower())
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"title": title, **values, "on": setting()}, indent=1) + "\n"
    )


def early_and_late(milliseconds: Sequence[int]) -> tuple[float, float]:
    """Medians of epochs 100 to 699 and of the last 600, which take a minute or longer on two cores.

    So a part that stays open for a minute is met at every age in both, and its state at every size.
    """
    return statistics.median(milliseconds[100:700] or milliseconds), statistics.median(milliseconds[-600:])


def options(description: str, *, rounds: int) -> argparse.ArgumentParser:
    """The options that programs share: where generated data is kept, and how many pairs are measured."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "filesink-benchmarks")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def seconds(work: Callable[[], object]) -> float:
    """How long one call of ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _line(name: str, values: list[float]) -> None:
    print(f"  {name:<28}{statistics.median(values):>10.3f}{min(values):>10.3f}{max(values):>10.3f}")
