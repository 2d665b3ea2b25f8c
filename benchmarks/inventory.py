"""What the inventory costs: its readers for a million live files, and an epoch, early and late.

Without Spark. Epochs are appended to an inventory in memory, whose calls are counted: how many an epoch
takes, and milliseconds, after a hundred epochs and at the end. What has come of them is then read from this
machine's disk, in a process of its own: bytes on disk, seconds and memory of a snapshot.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import filesink
from filesink.inventory.appending import FOLD_EVERY, Inventory
from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.inventory.names import DIRECTORY
from filesink.inventory.reading import Reader
from filesink.naming import new_part_id, sink_tag
from filesink.storage.faulty import FaultyStore
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.open import open_store
from filesink.system import SystemClock, SystemIds
from paired import keep
from scale import resident

WINDOW = 10 * FOLD_EVERY  # epochs that are compared: ten folds
EARLY = 100
MIB = 1 << 20
SINK = "uid-flights"


def main() -> None:
    """Append, then read in a process of its own."""
    arguments = _arguments()
    if arguments.read:
        read(Path(arguments.read), arguments.epochs * arguments.files)
        return
    files = epochs(arguments)
    with tempfile.TemporaryDirectory() as base:
        for path, file in files.files.items():
            target = Path(base, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
        Path(base, "_filesink", SINK).mkdir()
        command = [sys.executable, __file__, "--read", base, "--epochs", str(arguments.epochs)]
        subprocess.run([*command, "--files", str(arguments.files)], check=True)


def epochs(arguments: argparse.Namespace) -> MemoryFiles:
    """Many epochs; what is in the store then. Milliseconds are those of the processor."""
    files, calls = MemoryFiles(), Counter[str]()
    store = FaultyStore(MemoryStore(files), lambda operation, _: calls.update([operation]))
    inventory = Inventory(store, clock=SystemClock(), ids=SystemIds())
    taken: list[float] = []
    counted: list[int] = []
    for draft in _drafts(arguments.epochs, arguments.files):
        before, started = calls.total(), time.process_time()
        inventory.append(draft, floor=inventory.newest())
        taken.append((time.process_time() - started) * 1000)
        counted.append(calls.total() - before)
    first, last = slice(EARLY, EARLY + WINDOW), slice(-WINDOW, None)
    found = {
        f"epochs {EARLY} to {EARLY + WINDOW}": _cost(taken[first], counted[first]),
        f"the last {WINDOW}": _cost(taken[last], counted[last]),
        "ratio of calls": f"{sum(counted[last]) / sum(counted[first]):.2f}",
        "ratio of medians, and of means": " and ".join(
            f"{mean(taken[last]) / mean(taken[first]):.2f}" for mean in (statistics.median, statistics.mean)
        ),
        "longest": f"{max(taken):.0f} ms",
        "calls by kind, of an epoch": _per(calls, arguments.epochs),
    }
    _found(f"{arguments.epochs:,} epochs of {arguments.files} files", found)
    return files


def read(base: Path, count: int) -> None:
    """A snapshot, as ``filesink.open`` gives it."""
    size = sum(file.stat().st_size for file in (base / DIRECTORY).iterdir())
    look = Reader(open_store(base, {}), SystemClock()).look()
    named = 0 if look is None else sum(segment.size for segment in look.mark.of_kind("files"))
    directory = filesink.open(base)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, started, processor = resident(), time.perf_counter(), time.process_time()
    snapshot = directory.snapshot()
    spent, processor = time.perf_counter() - started, time.process_time() - processor
    peak = resident("VmHWM") - before
    if len(snapshot.files) != count:
        raise SystemExit(f"{len(snapshot.files)} files instead of {count}")
    found = {
        "directory": f"{size / MIB:.1f} MiB, segments of files {named / count:.0f} bytes a live file",
        "snapshot": f"{spent:.2f} s, {processor:.2f} s of the processor",
        "peak memory": f"{peak / MIB:.0f} MiB more than before",
        "kept": f"{snapshot.to_arrow().nbytes / MIB:.0f} MiB",
    }
    _found(f"a snapshot of {count:,} files", found)


def _drafts(count: int, files: int) -> Iterator[Draft]:
    """Epochs of a stream with a directory for each day; names are those of our writers."""
    random, ids = Random(1), SystemIds()  # noqa: S311 - sizes of files
    for slot in range(count):
        added = tuple(
            AddedFile(
                path=f"day=2026-{number % 12 + 1:02d}-{slot % 28 + 1:02d}/"
                f"part-{new_part_id(sink_tag(SINK), slot, ids)}-0.parquet",
                size=random.randrange(MIB, 200 * MIB),
                rows=random.randrange(10_000, 2_000_000),
            )
            for number in range(files)
        )
        yield Draft(
            sink=SINK,
            slot=slot,
            nonce=ids.uuid(),
            cause=Cause(kind="micro-batch", query_id="query", batch_id=slot),
            decided_ms=SystemClock().now_ms(),
            visible_ms=SystemClock().now_ms(),
            rows=sum(file.rows or 0 for file in added),
            size=sum(file.size for file in added),
            schema="0123456789abcdef",
            added=added,
        )


def _cost(taken: list[float], counted: list[int]) -> str:
    return (
        f"{statistics.median(taken):.2f} ms median, {statistics.mean(taken):.2f} ms mean; "
        f"{statistics.median(counted):.0f} calls median, {statistics.mean(counted):.2f} mean"
    )


def _per(calls: Counter[str], times: int) -> str:
    return ", ".join(f"{count / times:.2f} {name}" for name, count in sorted(calls.items()))


def _found(title: str, found: dict[str, str]) -> None:
    print(f"\n{title}")
    for name, text in found.items():
        print(f"  {name + ':':<30} {text}")
    keep(title, {"facts": found})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What the inventory costs")
    parser.add_argument("--epochs", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100, help="of each epoch")
    parser.add_argument("--read", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
