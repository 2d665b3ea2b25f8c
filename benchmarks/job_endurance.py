"""Jobs that are killed again and again, and what readers see of their rows in the end.

    python benchmarks/job_endurance.py --pipelines 10 --kills 50 --savepoints 50 --crashes 3

* ``kills``: streams of one job; the workers of one are killed by SIGKILL, and the others are not to fail.
* ``savepoints``: a stream that is stopped with a savepoint and restored, while files keep coming.
* ``crashes``: a process that runs a job is killed with its JVM and workers, and another takes the job over.
* ``cancels``: a stream is cancelled in the midst of its work; nothing hidden may be left.

Each ends with a comparison of what was put in and what a reader finds, as multisets.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.jobs import JobInfo, Jobs, RunOptions, State
from filesink.system import SystemClock
from sessions import start_spark

_PATIENCE_S = 240
_ENV = """env {
  job.mode = STREAMING, checkpoint.interval = 500, job.retry.times = 1000, job.retry.interval.seconds = 0
}"""
_SOURCE = """LocalFile {{
  plugin_output = s{n}, path = {here}/in{n}, file_format_type = json, schema {{ fields {{ id = bigint }} }}
}}"""
_KILLER = """Python {{
  plugin_input = s{n}, plugin_output = t{n}
  function = "job_endurance:killing", arguments {{ flag = "{here}/kill{n}" }}
}}"""
_SINK = "LocalFile {{ plugin_input = t{n}, path = {here}/out{n}, file_format_type = parquet }}"


def killing(frame: Any, flag: str) -> Any:
    """The same rows; a worker that finds ``flag`` removes it and dies."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with contextlib.suppress(FileNotFoundError):
                Path(flag).unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return frame.mapInArrow(rows, frame.schema)


@dataclass(frozen=True)
class Ahead(SystemClock):
    """A clock that is ahead, so that nobody waits for the lease of the dead."""

    ms: int = 61_000

    def now_ms(self) -> int:
        """See ``Clock``."""
        return super().now_ms() + self.ms


@dataclass
class Site:
    """A job with some pipelines, each with a directory to read and one to write."""

    path: Path
    pipelines: int
    put: Counter[tuple[int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        numbers = range(self.pipelines)
        for number in numbers:
            (self.path / f"in{number}").mkdir(parents=True)
        parts = (_SOURCE, _KILLER, _SINK)
        blocks = ["\n".join(part.format(n=n, here=self.path) for n in numbers) for part in parts]
        names = ("source", "transform", "sink")
        text = [f"{name} {{ {block} }}" for name, block in zip(names, blocks, strict=True)]
        self.file = self.path / "job.conf"
        self.file.write_text("\n".join([_ENV, *text]))
        self.jobs = Jobs(self.path / "jobs")

    def add(self, pipeline: int, number: int) -> None:
        """A file of two rows."""
        directory = self.path / f"in{pipeline}"
        rows = [number * 2, number * 2 + 1]
        self.put.update((pipeline, row) for row in rows)
        hidden = directory / f".{number}"
        hidden.write_text("".join(json.dumps({"id": row}) + "\n" for row in rows))
        hidden.rename(directory / f"{number}.json")

    def found(self) -> Counter[tuple[int, int]]:
        """What a reader finds who takes all visible files."""
        return Counter(
            (number, row)
            for number in range(self.pipelines)
            for one in (self.path / f"out{number}").rglob("*.parquet")
            if "_filesink" not in one.parts and not one.name.startswith(".")
            for row in pq.ParquetFile(one).read()["id"].to_pylist()
        )

    def hidden(self) -> list[str]:
        """Files of attempts that nobody has finished."""
        return [
            str(one)
            for number in range(self.pipelines)
            for one in (self.path / f"out{number}").rglob(".*")
            if one.is_file() and "_filesink" not in one.parts
        ]

    def there(self) -> None:
        """Wait until all rows can be read."""
        until(lambda: self.found() == self.put)


def step(number: int, count: int) -> None:
    """Say how far it is."""
    if sys.stderr.isatty() or number % 10 == 9:
        print(f"{number + 1} of {count}, {time.strftime('%H:%M:%S')}", file=sys.stderr, flush=True)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: it does not for some minutes.
    """
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("it does not come")
        time.sleep(0.05)


@contextlib.contextmanager
def run(function: Callable[..., JobInfo], *given: Any, **options: Any) -> Iterator[None]:
    """A job in a thread; the block asks for its end."""
    thread = Thread(
        target=function, args=given, kwargs={**options, "options": RunOptions(say=lambda _: None)}
    )
    thread.start()
    try:
        yield
    finally:
        thread.join()


def kills(path: Path, pipelines: int, count: int) -> str:
    """One pipeline is killed again and again."""
    site = Site(path, pipelines)
    with run(site.jobs.run, site.file, name="kills"):
        until(lambda: bool(site.jobs.list()))
        for pipeline in range(pipelines):
            site.add(pipeline, count)
        site.there()
        before = [one.starts for one in site.jobs.info("kills").pipelines]
        for number in range(count):
            (site.path / "kill0").touch()
            for pipeline in range(pipelines):
                site.add(pipeline, number)
            until(lambda: not (site.path / "kill0").exists())
            until(lambda number=number: site.jobs.info("kills").pipelines[0].starts > before[0] + number)
            step(number, count)
        site.there()
        site.jobs.savepoint("kills")
    starts = [one.starts for one in site.jobs.info("kills").pipelines]
    again = [now - then for now, then in zip(starts, before, strict=True)]
    check(again[0] >= count and not any(again[1:]), f"pipelines were started {again} times again")
    begun = "each started once" if set(before) == {1} else f"started {before} times until all had begun"
    killed = f"{count} kills ({again[0]} starts) of one of {pipelines} pipelines"
    return f"{killed}, {begun}; the others went on: {same(site)}"


def savepoints(path: Path, count: int) -> str:
    """Stopped with a savepoint and restored."""
    site = Site(path, 1)
    for number in range(count + 1):
        start: Any = site.jobs.restore if number else site.jobs.run
        with run(start, *(["saved"] if number else [site.file]), **({} if number else {"name": "saved"})):
            site.add(0, number)
            until(lambda: bool(site.jobs.list()) and site.jobs.info("saved").state is State.RUNNING)
            site.there()
            site.jobs.savepoint("saved")
        check(site.jobs.info("saved").state is State.SAVEPOINT_DONE, site.jobs.info("saved").error)
        step(number, count)
    return f"{count} restores from savepoints: {len(site.jobs.savepoints('saved'))} savepoints, {same(site)}"


def cancels(path: Path, count: int) -> str:
    """Cancelled in the midst of it."""
    site, left = Site(path, 1), 0
    for number in range(count):
        start: Any = site.jobs.restore if number else site.jobs.run
        with run(start, *(["gone"] if number else [site.file]), **({} if number else {"name": "gone"})):
            until(lambda: bool(site.jobs.list()) and site.jobs.info("gone").state is State.RUNNING)
            for one in range(20):
                site.add(0, number * 20 + one)
            time.sleep(0.1 * (number % 10))
            site.jobs.cancel("gone")
        left += len(site.hidden())
        step(number, count)
    with run(site.jobs.restore, "gone"):
        site.there()
        site.jobs.savepoint("gone")
    check(left == 0, f"{left} hidden files are left")
    return f"{count} cancels: {left} hidden files left, {same(site)}"


def crashes(path: Path, count: int) -> str:
    """Killed with all that belongs to it."""
    site = Site(path, 2)
    for number in range(count):
        command = [sys.executable, __file__, "--child", str(path), str(number)]
        child = subprocess.Popen(command, start_new_session=True)
        site.add(0, number)
        site.add(1, number)
        site.there()
        for one in range(5):
            site.add(one % 2, count + number * 5 + one)
        time.sleep(0.4 * (number % 4))
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    site.jobs = Jobs(path / "jobs", clock=Ahead(ms=61_000 * count))
    with run(site.jobs.restore, "crash"):
        site.there()
        site.jobs.savepoint("crash")
    return f"{count} crashes of driver, JVM and workers: {same(site)}"


def child(path: Path, number: int) -> None:
    """What ``crashes`` kills."""
    start_spark()
    jobs = Jobs(path / "jobs", clock=Ahead(ms=61_000 * number))
    if number:
        jobs.restore("crash")
    else:
        jobs.run(path / "job.conf", name="crash")


def check(holds: object, message: str) -> None:
    """End with ``message`` unless it holds."""
    if not holds:
        sys.exit(message)


def same(site: Site) -> str:
    """That readers find what was put in."""
    check(site.found() == site.put, f"{site.put.total()} rows were put in, {site.found().total()} are there")
    return f"{len(site.put):,} rows, each once"


def main() -> None:
    """Run what is asked for, and print a line of each."""
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipelines", type=int, default=10)
    for name, default in (("kills", 50), ("savepoints", 50), ("cancels", 20), ("crashes", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    here = Path(__file__).resolve().parent
    os.environ["PYTHONPATH"] = os.pathsep.join([str(here), str(here.parent)])
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        spark = start_spark(spark_scheduler_mode="FAIR")
        if given.savepoints:
            print(savepoints(place / "savepoints", given.savepoints), flush=True)
        if given.cancels:
            print(cancels(place / "cancels", given.cancels), flush=True)
        if given.kills:
            print(kills(place / "kills", given.pipelines, given.kills), flush=True)
        spark.stop()
        if given.crashes:
            print(crashes(place / "crashes", given.crashes), flush=True)


if __name__ == "__main__":
    main()
