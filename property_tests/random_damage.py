"""Damage of every kind, anywhere below a path of many files: ``fsck`` finds all of it, and nothing else.

``python -m property_tests.random_damage disk FILES SEEDS [KINDS]`` ends with figures; for ``s3`` it starts a
server. For each seed every kind, or so many of them, is done by itself, then some to twenty files each.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from filesink.operations.fsck.check import Check, Depth
from filesink.operations.fsck.finding import FsckReport
from filesink.sink_directory.opening import site_of
from filesink.storage.api import Store
from filesink.system import SystemClock
from tests.fakes import SettableClock
from tests.operations import damage_to_files as of_files
from tests.operations.broken_paths import live, whole
from tests.operations.damage import DAMAGES, Damage
from tests.servers import S3Server, moto
from tests.sink_directory.written import SCHEMA, Written

#: What is inside of a file no listing tells.
_INSIDE = {"FILE_TORN", "FILE_ROWS"}
#: What an object store does not have: links, and times of our own.
_OF_DISKS = {"file_link", "hidden_old"}
_AT_ONCE = (
    of_files.file_lost, of_files.file_resized, of_files.file_torn, of_files.file_misplaced,
    of_files.file_doubled, of_files.file_foreign,
)  # fmt: skip
_EACH = 20  # files with each of these
_DIRECTORIES = 100


def filled(base: Path, files: int, epochs: int = 100) -> None:
    """A path of several sinks with so many files more, the files of each epoch in a directory each."""
    rows = max(_DIRECTORIES, files // epochs)

    def more(written: Written) -> None:
        for number in range(files // rows):
            columns: dict[str, list[Any]] = {
                "k": list(range(rows)),
                "value": [f"{number} {place}" for place in range(rows)],
            }
            written.write(pa.RecordBatch.from_pydict(columns, schema=SCHEMA))

    whole(base, more)


@dataclass(kw_only=True)
class Disk:
    """A path that is damaged on this disk, and looked at there."""

    base: Path
    leaves_out: frozenset[str] = frozenset()

    def store(self) -> Store:
        """What is looked at, as it is now."""
        return site_of(self.base, None).store


@dataclass(kw_only=True)
class Bucket(Disk):
    """The same in a bucket: before each look it becomes what the directory is."""

    server: S3Server
    leaves_out: frozenset[str] = frozenset(_OF_DISKS)
    there: dict[str, tuple[int, int]] = field(default_factory=dict)
    bucket: str = ""

    def __post_init__(self) -> None:
        self.bucket, self.client = self.server.new_bucket(), self.server.client()

    def store(self) -> Store:
        """What is looked at, as it is now."""
        found = dict(_objects(self.base))
        for key in self.there.keys() - found.keys():
            self.client.delete_object(Bucket=self.bucket, Key=key)
        for key in (key for key, state in found.items() if self.there.get(key) != state):
            data = b"" if key.endswith("/") else (self.base / key).read_bytes()
            self.client.put_object(Bucket=self.bucket, Key=key, Body=data)
        self.there = found
        return site_of(f"s3://{self.bucket}", self.server.options).store


def _objects(base: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Keys, sizes and times; directories without files as consoles make them."""
    for path in base.rglob("*"):
        name = str(path.relative_to(base))
        if path.is_file():
            yield name, (path.stat().st_size, path.stat().st_mtime_ns)
        elif not any(path.iterdir()):
            yield f"{name}/", (0, 0)


def look(place: Disk, depth: Depth) -> FsckReport:
    """What ``fsck`` finds; nobody waits for what is damaged to come back."""
    clock = SettableClock(SystemClock().now_ms())
    return Check(store=place.store(), clock=clock, progress=lambda *_: None).run("base", depth)


def trial(place: Disk, seed: int, kinds: int | None = None) -> Counter[str]:
    """Do every kind of damage, or ``kinds`` of them; how much of each was found, by code.

    Raises:
        AssertionError: something was not found, or something that is not wrong.
    """
    random, done = Random(seed), Counter[str]()
    assert look(place, "ends").findings == ()
    with _kept(place.base) as restore:
        chosen = _kinds(place)
        for damage in chosen if kinds is None else random.sample(chosen, kinds):
            path = damage.anywhere(place.base, random)
            found = _found(look(place, "ends" if damage.code in _INSIDE else "quick"))
            assert (damage.code, str(path.relative_to(place.base))) in found, (damage, path, found)
            assert {code for code, _ in found} <= {damage.code, *damage.also}, (damage, path, found)
            done[damage.code] += 1
            print(f"{damage} found", flush=True)
            restore()
        expected = set(_many(place.base, random))
        found = _found(look(place, "ends"))
        assert found == expected, (found - expected, expected - found)
        done.update(code for code, _ in expected)
        restore()
    assert look(place, "quick").findings == ()
    return done


def _kinds(place: Disk) -> list[Damage]:
    return [one for one in DAMAGES if one.on is whole and str(one) not in place.leaves_out]


def _found(report: FsckReport) -> set[tuple[str, str]]:
    return {(finding.code, finding.path) for finding in report.findings}


def _many(base: Path, random: Random) -> Iterator[tuple[str, str]]:
    """Damage to many files, each by itself; what has to be found."""
    chosen = random.sample(live(base), len(_AT_ONCE) * _EACH)
    for number, path in enumerate(chosen):
        damage = _AT_ONCE[number % len(_AT_ONCE)]
        hit = damage(base, _Aimed(path))
        if damage in {of_files.file_doubled, of_files.file_foreign}:  # else the next one takes its name
            hit = hit.rename(hit.with_name(f"{number}.parquet"))
        yield damage.__name__.upper(), str(hit.relative_to(base))


class _Aimed(Random):
    """Chooses what it was made with."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def choice(self, seq: object) -> Path:  # type: ignore[override]
        """See ``Random.choice``."""
        del seq
        return self._path


@contextmanager
def _kept(base: Path) -> Iterator[Callable[[], None]]:
    """Gives a function that makes ``base`` what it is now, times included."""
    with tempfile.TemporaryDirectory(dir=base.parent) as kept:
        copy = Path(kept, "copy")
        shutil.copytree(base, copy)
        yield lambda: _restore(copy, base)


def _restore(copy: Path, base: Path) -> None:
    for path in sorted(base.rglob("*"), reverse=True):
        if not (copy / path.relative_to(base)).exists():
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for path in sorted(copy.rglob("*")):
        other = base / path.relative_to(copy)
        if path.is_dir():
            other.mkdir(exist_ok=True)
        elif not other.exists() or _state(other) != _state(path):
            shutil.copy2(path, other)


def _state(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


def _figures(place: Disk, seeds: int, kinds: int | None) -> None:
    for depth in ("quick", "ends"):
        store, began = place.store(), time.perf_counter()
        report = Check(store=store, clock=SystemClock(), progress=lambda *_: None).run("base", depth)
        print(f"{depth}: {time.perf_counter() - began:.1f} s; {report}", flush=True)
        assert report.findings == ()
    done: Counter[str] = Counter()
    for seed in range(seeds):
        done += trial(place, seed, kinds)
        print(f"seed {seed}: {done.total()} damages, {len(done)} kinds: all found, nothing else", flush=True)


def main(where: str, files: int, seeds: int, kinds: int | None = None) -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory, "base")
        filled(base, files)
        if where == "disk":
            _figures(Disk(base=base), seeds, kinds)
            return
        with moto(Path(directory)) as server:
            _figures(Bucket(base=base, server=server), seeds, kinds)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
