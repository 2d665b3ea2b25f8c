"""Makes a page and its plots from what the other programs left in ``benchmarks/results``.

    python benchmarks/report.py                        build/benchmarks/benchmarks.md, of your own results
    python benchmarks/report.py --publish              docs/benchmarks.md

Nothing is measured here and nothing is left out: every result that is there gets its row. What is
published is kept in ``benchmarks/published``, so that one program can be repeated without the others.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from paired import RESULTS, Comparison, early_and_late

_ROOT = Path(__file__).resolve().parents[1]
DOCS = _ROOT / "docs"
PUBLISHED = _ROOT / "benchmarks" / "published"
RATIOS, EPOCHS = "images/bench-ratios.svg", "images/bench-epochs.svg"
_FLOORS = "floors"  # the program whose ratios are of no sink
_FASTER, _SLOWER = "#2a7f62", "#b5523b"
_WINDOW = 50  # epochs in one point of the line
_PARTS_OF_A_COMPARISON = tuple(field.name for field in fields(Comparison))
_HEAD = """\
# Benchmarks

<!-- Made by benchmarks/report.py of benchmarks/published. Do not edit. -->

See also [how it is measured](../benchmarks/README.md), [tuning](tuning.md), [scale](scale.md). A ratio is the
median over pairs of ours divided by the other: below 1 ours is faster; a range with 1 in it shows no
difference. From day to day figures move by a tenth and more. *On* is one of these settings:
"""
_ABOUT_FLOORS = """\
*The floor* is the least that a sink in Python can take: rows cross from the JVM and are dropped or, for 2,000
buckets, written by pyarrow, already sorted. *Above the floor* is ours over that, in the same run.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One file of results: its values, and what it was measured on."""

    values: dict[str, Any]
    on: dict[str, Any]

    @property
    def comparison(self) -> Comparison | None:
        """The values of a comparison; ``None`` for other results."""
        if not {*_PARTS_OF_A_COMPARISON} <= {*self.values}:
            return None
        return Comparison(**{name: self.values[name] for name in _PARTS_OF_A_COMPARISON})

    @property
    def is_floor(self) -> bool:
        """Whether it was measured to tell what a sink that does nothing would take."""
        return bool(self.on.get("program") == _FLOORS)

    @property
    def setting(self) -> str:
        """The machine, the versions and the day."""
        on = self.on
        return (
            f"{on.get('cpu', 'unknown')}, {on.get('cores', '?')} cores; Python {on.get('python', '?')}, "
            f"PySpark {on.get('pyspark', '?')}, pyarrow {on.get('pyarrow', '?')}, "
            f"filesink {on.get('filesink', '?')} at {on.get('commit', '?')}, {on.get('date', '?')[:10]}"
        )

    @property
    def is_shown(self) -> bool:
        """Whether the page has a place for it."""
        return self.comparison is not None or bool({"milliseconds", "facts"} & {*self.values})


def main() -> None:
    """Write the page and its plots."""
    parser = argparse.ArgumentParser(description="A page of what was measured")
    parser.add_argument(
        "--publish", action="store_true", help="keep the results, and write docs/benchmarks.md"
    )
    results, page_in = RESULTS, _ROOT / "build" / "benchmarks"
    if parser.parse_args().publish:
        publish(RESULTS, PUBLISHED)
        results, page_in = PUBLISHED, DOCS
    write(load(results), page_in)
    print(f"{page_in / 'benchmarks.md'} has all that was found")


def publish(results: Path, published: Path) -> None:
    """Keep raw values, in place of older ones of the same work."""
    published.mkdir(exist_ok=True)
    for file in results.glob("*.json"):
        shutil.copy(file, published)


def load(directory: Path) -> list[Result]:
    """Every result of ``directory``, those of one program together; one without a place ends the program."""
    found = []
    for file in sorted(directory.glob("*.json")):
        values = json.loads(file.read_text())
        found.append(Result(values=values, on=values.pop("on")))
        if not found[-1].is_shown:
            raise SystemExit(f"{file} would not be on the page: see keep() in paired.py, and measure again")
    return sorted(found, key=lambda result: (result.on.get("program", ""), result.values["title"]))


def write(results: Sequence[Result], docs: Path) -> None:
    """The page and its plots below ``docs``."""
    if not results:
        raise SystemExit("there are no results: run 'make bench' first")
    (docs / "images").mkdir(parents=True, exist_ok=True)
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "filesink", "font.size": 9})
    compared = [found for result in results if not result.is_floor and (found := result.comparison)]
    epochs = [result for result in results if "milliseconds" in result.values]
    if compared:
        _save(plot_ratios(compared), docs / RATIOS)
    if epochs:
        _save(plot_epochs(epochs), docs / EPOCHS)
    (docs / "benchmarks.md").write_text("\n".join(page(results)))


def page(results: Sequence[Result]) -> Iterator[str]:
    """The lines of the page."""
    settings = dict.fromkeys(result.setting for result in results)
    numbers = {setting: number for number, setting in enumerate(settings, 1)}
    yield _HEAD
    yield from (f"{number}. {setting}" for setting, number in numbers.items())
    compared = [result for result in results if result.comparison]
    if ours := [result for result in compared if not result.is_floor]:
        yield f"\n## Compared\n\n![Ratios of all comparisons, below 1 where ours is faster]({RATIOS})\n"
        yield from table("ours", ours, numbers)
    if floors := [result for result in compared if result.is_floor]:
        yield f"\n## Floors\n\n{_ABOUT_FLOORS}"
        yield from table("measured", floors, numbers)
    epochs = [result for result in results if "milliseconds" in result.values]
    if epochs:
        yield f"\n## One epoch after the other\n\n![Milliseconds of an epoch by its number]({EPOCHS})\n"
        yield "| on | query | epochs | median of 100 to 699 | median of the last 600 | ratio | ledger |"
        yield "|---|---|---|---|---|---|---|"
        yield from (f"| {numbers[result.setting]} {epoch_row(result)}" for result in epochs)
    facts = [f"| {numbers[result.setting]} {line}" for result in results for line in fact_rows(result)]
    if facts:
        yield "\n## Found\n\n| on | what | found |\n|---|---|---|"
        yield from facts
    yield ""


def table(ours: str, results: Sequence[Result], numbers: Mapping[str, int]) -> Iterator[str]:
    """One line for each of ``results``, which are comparisons; ``ours`` heads what was compared."""
    yield f"| on | program | work | compared with | theirs | {ours} | pairs | ratio | smallest and largest |"
    yield "|---" * 9 + "|"
    for result in results:
        if comparison := result.comparison:
            yield f"| {numbers[result.setting]} {row(result.on.get('program', ''), comparison)}"


def row(program: str, comparison: Comparison) -> str:
    """One comparison; the unit of its values is in the cells. A single pair has no spread."""
    ratios = comparison.ratios
    unit = {"seconds": "s"}.get(comparison.unit, comparison.unit)
    theirs, ours = (
        f"{float(f'{statistics.median(values):.3g}'):,g} {unit}"  # three digits, and no powers of ten
        for values in (comparison.baseline_values, comparison.our_values)
    )
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else "unknown"
    return (
        f"| `{program}.py` | {comparison.title} | {comparison.baseline} | {theirs} | {ours} | "
        f"{len(ratios)} | {statistics.median(ratios):.2f} | {spread} |"
    )


def epoch_row(result: Result) -> str:
    """What became of the cost of an epoch."""
    taken = result.values["milliseconds"]
    early, late = early_and_late(taken)
    ledger = f"{result.values['ledger_files']} files, {result.values['ledger_bytes'] / 1e6:.1f} MB"
    title = result.values["title"].removeprefix("epochs ")
    return f"| {title} | {len(taken):,} | {early:.0f} ms | {late:.0f} ms | {late / early:.2f} | {ledger} |"


def fact_rows(result: Result) -> Iterator[str]:
    """What a program found besides times."""
    title = result.values["title"]
    for name, value in result.values.get("facts", {}).items():
        yield f"| {title}: {name} | {value} |"


def plot_ratios(comparisons: Sequence[Comparison]) -> Figure:
    """A bar for each comparison, from 1 to its ratio; a line from the smallest to the largest."""
    figure = Figure(figsize=(8, 0.9 + 0.32 * len(comparisons)), layout="constrained")
    axes = figure.subplots()
    for position, comparison in enumerate(comparisons):
        ratio = statistics.median(comparison.ratios)
        axes.barh(position, ratio - 1, left=1, height=0.6, color=_FASTER if ratio <= 1 else _SLOWER)
        axes.hlines(position, min(comparison.ratios), max(comparison.ratios), color="black", linewidth=1)
    labels = [f"{comparison.title} / {comparison.baseline}" for comparison in comparisons]
    axes.set_yticks(range(len(comparisons)), labels)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("ours / theirs; to the left of 1 ours is faster")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def plot_epochs(results: Sequence[Result]) -> Figure:
    """Medians of so many epochs each, over the number of the epoch."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    for result in results:
        taken = result.values["milliseconds"]
        starts = range(0, len(taken), _WINDOW)
        medians = [statistics.median(taken[start : start + _WINDOW]) for start in starts]
        axes.plot(starts, medians, label=result.values["title"].removeprefix("epochs "), linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"number of the epoch (medians of {_WINDOW})")
    axes.set_ylabel("ms")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
