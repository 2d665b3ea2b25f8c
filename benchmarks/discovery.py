"""Finding new files among very many: seconds a trigger, memory of the driver, bytes of an offset.

    python benchmarks/discovery.py [--files 10000 100000] [--triggers 5]

A directory on a local disk gets so many files of one line, a thousand in each directory below it. A stream
finds all of them at its first trigger, then ten new ones at each of the next. Then the query is started
again. Nothing is read: what is measured is how a source knows what it has seen. The baseline is Spark's own
file source. Its memory is heap of the JVM that is in use after a collection; ours is that, and what the
process has which Spark starts for a source in Python. Every side runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_NEW = 10  # files at each trigger
_IN_DIRECTORY = 1_000
_MIB = 1 << 20
_RESULTS = Path(__file__).parent / "results"
_RSS_GOAL, _OFFSET_GOAL = 64, 200


def main() -> int:
    """The exit status is 0 if memory and offset are within their bounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--triggers", type=int, default=5)
    parser.add_argument("--side", choices=["filesink", "spark"], help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(measure(arguments.side, arguments.directory, arguments.triggers)))
        return 0
    within = [compare(files, arguments.triggers) for files in arguments.files]
    return 0 if all(within) else 1


def compare(files: int, triggers: int) -> bool:
    """Measure both sides over ``files`` files, print and keep what was found."""
    found = {}
    for side in ("spark", "filesink"):
        with tempfile.TemporaryDirectory() as directory:
            make(Path(directory) / "in", range(files))
            command = [sys.executable, __file__, "--side", side, "--directory", directory]
            done = subprocess.run(
                [*command, "--triggers", str(triggers)], capture_output=True, text=True, check=True
            )
            found[side] = json.loads(done.stdout.splitlines()[-1])
    print(f"\n{files:,} files")
    for name in found["filesink"]:
        print(f"  {name:<42} {found['filesink'][name]:>10.2f}   Spark's source {found['spark'][name]:>10.2f}")
    keep(files, found)
    ours = found["filesink"]
    return ours["bytes of an offset"] <= _OFFSET_GOAL and ours["MiB more in Python"] <= _RSS_GOAL


def keep(files: int, found: dict[str, Any]) -> None:
    """Write a result beside those of the other programs."""
    from setting import setting

    _RESULTS.mkdir(exist_ok=True)
    path = _RESULTS / f"discovery-of-{files}-files.json"
    path.write_text(json.dumps({"files": files, **found, "on": setting()}, indent=1))


def make(base: Path, numbers: range) -> None:
    """Files of one line."""
    for number in numbers:
        directory = base / f"{number // _IN_DIRECTORY:04}"
        if number % _IN_DIRECTORY == 0 or not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
        (directory / f"events-of-a-producer-{number:09}.txt").write_text("x\n")


def measure(side: str, directory: Path, triggers: int) -> dict[str, float]:
    """What one side takes."""
    spark = session()
    files = sum(len(names) for _, _, names in os.walk(directory / "in"))
    run = Run(spark, side, directory)
    run.trigger()  # an empty directory: all that is made once is there
    before = memory(spark)
    run.show_files()
    first = run.trigger()
    after = memory(spark)
    later = []
    for step in range(triggers):
        make(directory / "in", range(files + step * _NEW, files + (step + 1) * _NEW))
        later.append(run.trigger())
    offset = run.offset_bytes()
    restarted = run.restart()
    spark.stop()
    return {
        "s, the first trigger": first,
        "s, a trigger with ten new files": statistics.median(later),
        "s, the first trigger of a restart": restarted,
        "MiB more in the JVM": (after[0] - before[0]) / _MIB,
        "MiB more in Python": (after[1] - before[1]) / _MIB if side == "filesink" else 0,
        "bytes of an offset": offset,
    }


class Run:
    """A query that is triggered by hand."""

    def __init__(self, spark: Any, side: str, directory: Path) -> None:
        self._spark, self._side, self._directory = spark, side, directory
        (directory / "in").rename(directory / "not-yet")
        (directory / "in").mkdir()
        self._query: Any = None
        self._seen = -1  # the last batch that was looked at

    def show_files(self) -> None:
        """Have the files be there, all at once."""
        (self._directory / "not-yet").rename(self._directory / "in" / "all")

    def trigger(self) -> float:
        """Run until nothing is new; seconds of the longest trigger."""
        if self._query is None:
            self._query = self._start()
        self._query.processAllAvailable()
        time.sleep(1)  # until its progress is told
        told = [(one["batchId"], one["durationMs"]) for one in self._query.recentProgress]
        took = [
            times["triggerExecution"] for batch, times in told if batch > self._seen and "addBatch" in times
        ]
        self._seen = max((batch for batch, times in told if "addBatch" in times), default=self._seen)
        return max(took, default=0) / 1000

    def restart(self) -> float:
        """Seconds from a start until the query has looked once more."""
        self._query.stop()
        make(self._directory / "in", range(10**8, 10**8 + 1))
        begun = time.perf_counter()
        self._query = self._start()
        self._query.processAllAvailable()
        took = time.perf_counter() - begun
        self._query.stop()
        return took

    def offset_bytes(self) -> int:
        """Of the newest offset in the checkpoint."""
        offsets = self._directory / "checkpoint" / "offsets"
        newest = max(
            (path for path in offsets.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
        )
        return len(newest.read_text().splitlines()[-1])

    def _start(self) -> Any:
        source = str(self._directory / "in")
        if self._side == "spark":
            df = self._spark.readStream.option("recursiveFileLookup", "true").text(source)
        else:
            door = self._spark.readStream.format("filesink").option("format", "text")
            df = (
                door.option("stateLocation", str(self._directory / "state"))
                .schema("value STRING")
                .load(source)
            )
        stream = df.writeStream.foreachBatch(_nothing)
        return stream.option("checkpointLocation", str(self._directory / "checkpoint")).start()


def _nothing(df: Any, batch_id: int) -> None:
    del df, batch_id


def session() -> Any:
    """As the other benchmarks have it."""
    from pyspark.sql import SparkSession

    import filesink

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    filesink.register(spark)
    return spark


def memory(spark: Any) -> tuple[float, float]:
    """Bytes in use: of the JVM's heap after a collection, and of the processes that it has started."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()  # noqa: SLF001
    for _ in range(3):
        spark._jvm.java.lang.System.gc()  # noqa: SLF001
        time.sleep(0.3)
    workers = [child for child in psutil.Process().children(recursive=True) if "python" in child.name()]
    return runtime.totalMemory() - runtime.freeMemory(), sum(_resident(worker) for worker in workers)


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    sys.exit(main())
