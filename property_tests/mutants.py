"""The harness proves itself: seeded defects of the product, each of which the simulation must find.

    python -m property_tests.mutants                       all; prints what killed each, and how soon
    python -m property_tests.mutants --only "fsync"        those whose name contains a text
    python -m property_tests.mutants --hunt                inside a mutated copy: search for a violation

A mutant is applied to a copy of the sources; the copy is searched in a process of its own with the
same histories that a pull request runs: what found something before, random seeds, a fault of each
kind in the canonical histories, then more of both.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import compaction
import filesink
import formats
import property_tests
from property_tests.exhaustive import Case, one_of_each, singles
from property_tests.inventory.history import run_seed as run_inventory
from property_tests.regressions.seeds import CASES, INVENTORY_SEEDS, SEEDS
from property_tests.seeded.everything import MUTANTS
from property_tests.seeded.mutant import Mutant
from property_tests.simulate import Tally, run_seed

_SEEDS = 10_000  # a race of two drivers is in one history of thousands
_KILLED = 3  # exit code of a hunt that has found something
_TIMEOUT = 3600  # seconds for one mutant: a hunt through all histories takes ten minutes of processor time
#: The product as it is imported, be it installed or beside us.
_PACKAGES = tuple(Path(package.__path__[0]) for package in (filesink, compaction, formats, property_tests))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: the history that found it, or ``""`` if it lives.

    ``seconds`` of processor time, so that they are the same on a machine with other work.
    """

    mutant: Mutant
    killer: str
    seconds: float


def is_applicable(mutant: Mutant) -> bool:
    """Whether the text to replace occurs exactly once, and what comes of it is Python."""
    package, _, rest = mutant.file.partition("/")
    directory = next(directory for directory in _PACKAGES if directory.name == package)
    text = (directory / rest).read_text()
    try:
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    except SyntaxError:
        return False
    return text.count(mutant.old) == 1


def snapshot(directory: Path) -> None:
    """Copy the sources, so that all mutants are of the same product even if somebody works on it."""
    for package in _PACKAGES:
        shutil.copytree(package, directory / package.name, ignore=shutil.ignore_patterns("__pycache__"))


def apply(mutant: Mutant, sources: Path, copy: Path) -> None:
    """Make a mutated copy of the sources."""
    shutil.copytree(sources, copy, dirs_exist_ok=True)
    file = copy / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"mutant {mutant.name!r} does not apply to {mutant.file}: rewrite it")
    file.write_text(text.replace(mutant.old, mutant.new))


def judge(mutant: Mutant, sources: Path) -> Verdict:
    """Hunt in a mutated copy."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        apply(mutant, sources, Path(directory))
        command = [sys.executable, "-m", "property_tests.mutants", "--hunt"]
        if mutant.name.startswith("inventory: "):
            command.append("--inventory")
        try:
            found = subprocess.run(  # noqa: S603 - our own interpreter and module
                command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            return Verdict(mutant, "", _TIMEOUT)
    if found.returncode not in {0, _KILLED}:
        raise RuntimeError(f"the hunt for {mutant.name!r} broke: {found.stderr[-500:]}")
    killer, _, seconds = found.stdout.strip().rpartition("\n")
    return Verdict(mutant, killer, float(seconds))


def hunt() -> str:
    """The first history that finds something, or ``""``."""
    for seed in SEEDS:
        found = _run(seed)
        if found is not None:
            return f"seed {seed}: {found}"
    if found := _first(CASES):
        return found
    cases = iter(Random(0).sample(all_cases := list(singles()), len(all_cases)))
    for chunk in range(0, _SEEDS, 200):
        for seed in range(chunk, chunk + 200):
            found = _run(seed)
            if found is not None:
                return f"seed {seed}: {found}"
        if found := _first(islice(cases, 200) if chunk else one_of_each()):
            return found
    return ""


def _first(cases: Iterable[Case]) -> str:
    """What the first of these histories finds that finds something."""
    tally = Tally()
    for case in cases:
        case.run(tally)
        if tally.cases:
            return tally.cases[0]
    return ""


def hunt_inventory() -> str:
    """As ``hunt``, in histories of an inventory by itself."""
    logging.getLogger("filesink").disabled = True  # told there is what a fold could not do
    found = ((seed, _run(seed, run_inventory)) for seed in (*INVENTORY_SEEDS, *range(_SEEDS)))
    return next((f"seed {seed}: {violation}" for seed, violation in found if violation is not None), "")


def _run(seed: int, history: Callable[[int], object] = lambda seed: run_seed(seed).violation) -> object:
    try:
        return history(seed)
    except Exception as error:  # noqa: BLE001 - code that breaks the harness is found as well
        return repr(error)


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description="seeded defects that the simulation must find")
    parser.add_argument("--hunt", action="store_true")
    parser.add_argument("--inventory", action="store_true", help="hunt in histories of an inventory alone")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.hunt:
        killer = hunt_inventory() if arguments.inventory else hunt()
        print(killer, time.process_time(), sep="\n")
        return _KILLED if killer else 0
    chosen = [mutant for mutant in MUTANTS if arguments.only in mutant.name]
    alive = 0
    with ThreadPoolExecutor(arguments.jobs) as pool, tempfile.TemporaryDirectory() as sources:
        snapshot(Path(sources))
        for verdict in pool.map(partial(judge, sources=Path(sources)), chosen):
            alive += not verdict.killer
            what = f"killed in {verdict.seconds:5.1f} s" if verdict.killer else "ALIVE"
            print(f"{what}  {verdict.mutant.name}\n        {verdict.killer[:160]}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
