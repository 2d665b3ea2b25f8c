"""The trial: a history, kills, and engines that are asked after each of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import filesink
from property_tests.one_directory import engines, history
from property_tests.one_directory.engines import TARGETS, Row
from property_tests.one_directory.history import History, Kind, exporters


class Engine:
    """A process that reads. ``missing`` says why it cannot; ``""`` if it can."""

    def __init__(self, name: str, base: str, python: str) -> None:
        self.name = name
        command = [python, engines.__file__, name, base]
        self._log = Path(f"{base}.{name}.log").open("w", encoding="utf-8")  # noqa: SIM115 - as long as it runs
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.missing: str | None = None

    def start(self) -> None:
        """Wait until it has started."""
        self.missing = self.hear().get("missing", "")

    def ask(self) -> None:
        """Have it read; ``hear`` waits for what it has read."""
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)

    def hear(self) -> dict[str, Any]:
        """Its answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line else {"missing": "it has ended", "error": "it has ended"}

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        self._log.close()


@dataclass
class Verdict:
    """What was seen.

    Attributes:
        epochs: that were written.
        kills: of drivers, by what their epoch does.
        looks: of each engine that were right.
        gone: looks of each engine at a version whose files were replaced meanwhile: its export is behind.
        missing: engines that are not here, and why.
        wrong: what was not right.
    """

    epochs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    gone: Counter[str] = field(default_factory=Counter)
    missing: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """For people."""
        kills = ", ".join(f"{count} in epochs of {kind}" for kind, count in self.kills.items())
        yield f"{self.epochs} epochs, {self.kills.total()} kills{f': {kills}' if kills else ''}"
        for name, looks in self.looks.items():
            gone = f", {self.gone[name]} at a version whose files were gone" if self.gone[name] else ""
            yield f"  {name + ':':<16} {looks} times the rows of its version{gone}"
        for name, why in self.missing.items():
            yield f"  {name + ':':<16} not here: {why}"
        yield from self.wrong


class Trial:
    """One directory, written by processes."""

    def __init__(self, base: str, length: int, readers: list[Engine], seed: int = 0) -> None:
        self._base = base
        self._history = History(length=length)
        self._readers = readers
        self._random = Random(seed)
        self._processes = get_context("forkserver")
        self._processes.set_forkserver_preload([history.__name__, "deltalake", "pyiceberg.catalog.sql"])
        self._calls = self._processes.Value("q", 0)
        self._known: dict[Kind, int] = {}
        self.verdict = Verdict()

    def run(self, kills: int) -> Verdict:
        """All epochs, with so many kills in all, evenly spread."""
        length = self._history.length
        for number in range(1, length + 1):
            for _ in range(kills * number // length - kills * (number - 1) // length):
                self._killed(number)
            self._write(number, at=None)
            self.verdict.epochs += 1
            self._look(number, finished=True)
            seen = f"{self.verdict.kills.total()} kills, {len(self.verdict.wrong)} looks that were wrong"
            print(f"epoch {number} of {length}: {seen}", file=sys.stderr)
        return self.verdict

    def _killed(self, number: int) -> None:
        """A driver dies somewhere in the epoch, or in its exports; nothing is wrong then, or later."""
        kind = self._history.kind(number)
        if self._write(number, at=self._random.randrange(self._known.get(kind, 2000))):
            self.verdict.kills[kind.value] += 1
        if Path(self._base).exists():
            self._look(number, finished=False)

    def _write(self, number: int, at: int | None) -> bool:
        """Whether the driver was killed."""
        arguments = (self._base, self._history, number, at, self._calls)
        process = self._processes.Process(target=history.driver, args=arguments)
        process.start()
        process.join()
        if at is None and process.exitcode == 0:
            kind = self._history.kind(number)
            self._known[kind] = max(self._known.get(kind, 0), self._calls.value)
        if process.exitcode not in ({0, -9} if at is not None else {0}):
            self.verdict.wrong.append(f"epoch {number}: a driver failed by itself ({process.exitcode})")
        return process.exitcode == -9

    def _look(self, number: int, *, finished: bool) -> None:
        versions = self._versions(number, finished=finished)
        # Version 0 is a table that was made and has no columns yet, which DuckDB cannot read.
        asked = [one for one in self._readers if versions.get(TARGETS.get(one.name, ""))]
        for engine in asked:
            engine.ask()
        for engine in asked:
            version = versions[TARGETS.get(engine.name, "")]
            assert version is not None
            self._judge(engine, number, version, finished=finished)

    def _versions(self, number: int, *, finished: bool) -> Mapping[str, int | None]:
        """Which version each target has; listing, ``""``, shows it only when no driver has died halfway."""
        directory = filesink.open(self._base)
        found: dict[str, int | None] = {"": number if finished else None}
        for exporter in exporters(self._base):
            found[exporter.name] = exporter.version(directory)
            if finished and found[exporter.name] != number:
                self.verdict.wrong.append(f"epoch {number}: {exporter.name} is at {found[exporter.name]}")
        return found

    def _judge(self, engine: Engine, number: int, version: int, *, finished: bool) -> None:
        answer, expected = engine.hear(), self._history.at(version)
        if "rows" in answer and Counter(map(tuple, answer["rows"])) == expected:
            self.verdict.looks[engine.name] += 1
        elif not finished and self._history.kind(number) is not Kind.APPEND and version < number:
            self.verdict.gone[engine.name] += 1  # the directory has gone on: the old files are not there
        else:
            seen = answer.get("error") or _difference(answer["rows"], expected)
            self.verdict.wrong.append(f"epoch {number}: {engine.name} at version {version}: {seen}")


def _difference(rows: list[list[Any]], expected: Counter[Row]) -> str:
    found = Counter(map(tuple, rows))
    return f"{(expected - found).total()} rows are missing and {(found - expected).total()} too many"


@contextmanager
def reading(base: str, names: Iterable[str], pythons: Mapping[str, str]) -> Iterator[list[Engine]]:
    """Engines that have started, each in its environment; some of them may be missing there."""
    started = [Engine(name, base, pythons.get(name, sys.executable)) for name in names]
    try:
        for engine in started:
            engine.start()
        yield started
    finally:
        for engine in started:
            engine.stop()


def trial(base: str, *, epochs: int, kills: int, names: Iterable[str], pythons: Mapping[str, str]) -> Verdict:
    """Write, kill and read.

    Args:
        base: of the directory; it is made, and what engines print is beside it.
        epochs: how many.
        kills: how many, in all.
        names: of engines.
        pythons: where an engine is not in this environment, the interpreter that has it.
    """
    Path(base).parent.mkdir(parents=True, exist_ok=True)
    with reading(base, names, pythons) as readers:
        verdict = Trial(base, epochs, [one for one in readers if not one.missing]).run(kills)
    verdict.missing.update({one.name: one.missing for one in readers if one.missing})
    return verdict
