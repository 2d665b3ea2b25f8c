"""Where the time of a batch write goes: each stage by itself, as CPU seconds of all processes.

A stage is the one before it and one thing more, so what it adds is what that thing costs. Nothing of Spark
runs without a JVM, so the first is the scan: rows as Spark's own writers would get them. CPU seconds hold
still on a machine that others use, too; time that is spent on waiting for the disk is in ``lineitem.py``.

    python benchmarks/waterfall.py            all stages, as a table and build/benchmarks/waterfall.svg
    python benchmarks/waterfall.py --types    what the columns of each type take on their way to Python
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import psutil
import pyarrow as pa
from matplotlib.figure import Figure
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame

import overhead
from filesink.spark.input.short_decimals import as_numbers
from lineitem import generate, ours_flat
from paired import Contender, keep, measure, options
from sessions import batches_like_ours, start_spark

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
PICTURE = Path(__file__).resolve().parents[1] / "build" / "benchmarks" / "waterfall.svg"


def main() -> None:
    """Measure the stages, or the types."""
    parser = options("Where the time of a batch write goes", rounds=3)
    parser.add_argument("--types", action="store_true", help="each type by itself instead")
    arguments = parser.parse_args()
    source = generate(arguments.cache, 1)
    cloudpickle.register_pickle_by_value(overhead)  # tasks cannot import what lies beside this program
    spark = start_spark()
    lineitem = spark.read.parquet(str(source))
    out = arguments.cache / "waterfall-out"
    if arguments.types:
        _report("lineitem SF1, columns of one type", types(lineitem), out, arguments.rounds)
    else:
        found = _report("lineitem SF1 flat, stage by stage", stages(lineitem, out), out, arguments.rounds)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        waterfall(found).savefig(PICTURE)
        print(f"{PICTURE} shows it")
    spark.stop()


def stages(lineitem: DataFrame, out: Path) -> dict[str, Callable[[], object]]:
    """Each stage by its name, in the order in which a row goes through them."""
    return {
        "scan": partial(scan, lineitem),
        "JVM to Arrow": partial(to_arrow, lineitem),
        "socket and decoding": partial(drop, lineitem),
        "encoding": partial(encode, lineitem, ""),
        "file": partial(encode, lineitem, str(out)),
        "routing, limits, sync, ledger": partial(ours_flat, lineitem, out),
    }


def types(lineitem: DataFrame) -> dict[str, Callable[[], object]]:
    """Columns of one type alone, read and dropped in Python; and read only."""
    groups: dict[str, list[str]] = {}
    for name, kind in lineitem.dtypes:
        groups.setdefault(kind.partition("(")[0], []).append(name)
    chosen = {kind: lineitem.select(*names) for kind, names in groups.items()}
    work: dict[str, Callable[[], object]] = {}
    for kind, rows in chosen.items():
        work[f"{len(rows.columns)} x {kind}, scan"] = partial(scan, rows)
        work[f"{len(rows.columns)} x {kind}, dropped in Python"] = partial(drop, rows)
        if kind == "decimal":
            work[f"{len(rows.columns)} x {kind}, as decimals"] = partial(drop, rows, crossing=_as_they_are)
    return work


def scan(rows: DataFrame) -> None:
    """Rows for a writer of Spark that does nothing."""
    rows.write.format("noop").mode("overwrite").save()


def to_arrow(rows: DataFrame) -> None:
    """Record batches in the JVM, as bytes; they go nowhere."""
    numbers, _ = as_numbers(rows, iter)
    with batches_like_ours(rows):
        numbers._jdf.toArrowBatchRdd().count()  # noqa: SLF001 - Python has no name for it


def drop(rows: DataFrame, crossing: Callable[..., tuple[DataFrame, Batches]] = as_numbers) -> None:
    """Rows counted in Python."""
    _run(rows, _count, crossing)


def encode(rows: DataFrame, directory: str) -> None:
    """One Parquet file a task by pyarrow, or nowhere if no directory is given."""
    if directory:
        Path(directory).mkdir()
    _run(rows, partial(_encode, directory), as_numbers)


def _run(rows: DataFrame, function: Batches, crossing: Callable[..., tuple[DataFrame, Batches]]) -> None:
    numbers, function = crossing(rows, function)
    with batches_like_ours(rows):
        numbers.mapInArrow(function, "rows bigint").collect()


def _as_they_are(rows: DataFrame, function: Batches) -> tuple[DataFrame, Batches]:
    return rows, function


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield _rows(sum(batch.num_rows for batch in batches))


def _encode(directory: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    place = f"{directory}/{number}.parquet" if directory else pa.MockOutputStream()
    yield _rows(overhead.write_file(batches, place))


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"rows": pa.array([count], pa.int64())})


def _report(title: str, work: Mapping[str, Callable[[], object]], out: Path, rounds: int) -> dict[str, float]:
    """Medians by name; printed and kept."""
    contenders = [
        Contender(name=name, measure=partial(cpu_seconds, each, out)) for name, each in work.items()
    ]
    values = measure(contenders, rounds=rounds)
    medians = {name: statistics.median(taken) for name, taken in values.items()}
    print(f"\n{title}  ({rounds} rounds, CPU seconds)")
    for name, taken in values.items():
        print(f"  {name:<36}{medians[name]:>8.2f}{min(taken):>8.2f}{max(taken):>8.2f}")
    keep(title, {"facts": {name: f"{value:.2f} CPU s" for name, value in medians.items()}, "values": values})
    return medians


def cpu_seconds(work: Callable[[], object], out: Path) -> float:
    """What ``work`` takes of all cores, in this process and all that it has started."""
    shutil.rmtree(out, ignore_errors=True)
    before = _spent()
    work()
    taken = _spent() - before
    shutil.rmtree(out, ignore_errors=True)
    return taken


def _spent() -> float:
    ours = psutil.Process()
    times = [process.cpu_times() for process in (ours, *ours.children(recursive=True))]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


def waterfall(medians: Mapping[str, float]) -> Figure:
    """A bar for what each stage adds, from where the one before it ends."""
    figure = Figure(figsize=(8, 0.8 + 0.4 * len(medians)), layout="constrained")
    axes = figure.subplots()
    before = 0.0
    for position, total in enumerate(medians.values()):
        axes.barh(position, total - before, left=before, height=0.6, color="#2a7f62")
        axes.text(max(before, total), position, f" {total - before:+.1f}", va="center")
        before = total
    axes.set_yticks(range(len(medians)), list(medians))
    axes.invert_yaxis()
    axes.set_xlabel("CPU seconds of all processes")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
