"""What an export costs: an epoch early and late in a long history, and a path of a million files at once.

Without Spark, on this machine's disk. Epochs are noted in an inventory, and files are only named: no export
reads them. Each exporter brings its target to the new version after each epoch, as a sink has it done. A
time is the median of the eleven epochs around its number.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa

import filesink
from filesink import DeltaExport, Exporter, IcebergExport, ManifestExport, SparkMetadataExport
from filesink.inventory.appending import Inventory
from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.inventory.schemas import schema_id
from filesink.naming import new_part_id, sink_tag
from filesink.storage.open import open_store
from filesink.system import SystemClock, SystemIds
from paired import keep

SINK = "uid-flights"
COLUMNS = pa.schema([("day", pa.date32()), ("origin", pa.string()), ("delay", pa.float64())])
SCHEMA = COLUMNS.serialize().to_pybytes()
AROUND = 5
MIB = 1 << 20


def main() -> None:
    """Both questions, of each exporter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1010)
    parser.add_argument("--files-an-epoch", type=int, default=10)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--only", choices=list(exporters(Path())))
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else list(exporters(Path()))
    with tempfile.TemporaryDirectory() as place:
        epochs(Path(place), names, arguments.epochs, arguments.files_an_epoch)
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            at_once(Path(place), name, arguments.files)


def exporters(place: Path) -> dict[str, Callable[[], Exporter]]:
    """All of them; Iceberg in a catalog of SQLite."""
    catalog = {"type": "sql", "uri": f"sqlite:///{place / 'catalog.db'}", "warehouse": str(place)}
    return {
        "delta": DeltaExport,
        "spark-metadata": SparkMetadataExport,
        "manifest": lambda: ManifestExport(snapshots="none"),
        "iceberg": lambda: IcebergExport(catalog, "lake.flights"),
    }


def epochs(place: Path, names: list[str], count: int, files: int) -> None:
    """A history, exported after each epoch."""
    base, inventory = _path(place)
    made = {name: exporters(place)[name]() for name in names}
    taken: dict[str, list[float]] = {name: [] for name in names}
    for draft in _drafts(count, files):
        inventory.append(draft, floor=inventory.newest())
        for name, exporter in made.items():
            started = time.perf_counter()
            filesink.export(base, exporter)
            taken[name].append((time.perf_counter() - started) * 1000)
    for name, values in taken.items():
        found = {
            f"epoch {at:,}": f"{statistics.median(values[at - AROUND - 1 : at + AROUND]):.1f} ms"
            for at in (10, 100, 1000)
            if at + AROUND <= len(values)
        }
        found["longest"] = f"{max(values[1:]):.0f} ms"
        _found(f"{name}: an epoch of {files} files", found)


def at_once(place: Path, name: str, files: int) -> None:
    """A path that was never exported."""
    base, inventory = _path(place)
    for draft in _drafts(10, files // 10):
        inventory.append(draft, floor=inventory.newest())
    started = time.perf_counter()
    filesink.export(base, exporters(place)[name]())
    spent = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _found(f"{name}: {files:,} files at once", {"time": f"{spent:.1f} s", "peak memory": f"{peak:,.0f} MiB"})


def _path(place: Path) -> tuple[Path, Inventory]:
    base = place / "flights"
    (base / "_filesink" / SINK).mkdir(parents=True)
    return base, Inventory(open_store(base, {}), clock=SystemClock(), ids=SystemIds())


def _drafts(count: int, files: int) -> Iterator[Draft]:
    """Epochs of a stream with a directory for each day; names are those of our writers."""
    random, ids, clock = Random(1), SystemIds(), SystemClock()  # noqa: S311 - sizes of files
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
            decided_ms=clock.now_ms(),
            visible_ms=clock.now_ms(),
            rows=sum(file.rows or 0 for file in added),
            size=sum(file.size for file in added),
            schema=schema_id(SCHEMA),
            added=added,
            columns=SCHEMA,
        )


def _found(title: str, found: dict[str, str]) -> None:
    print(f"\n{title}")
    for name, text in found.items():
        print(f"  {name + ':':<14} {text}")
    keep(title, {"facts": found})


if __name__ == "__main__":
    main()
