"""Merging small files: 60 Parquet files by records, 22 text files by bytes, and what it costs a stream.

By records against DuckDB's ``COPY`` and delta-rs' ``optimize.compact``, by bytes against ``cat``, a
text stream with compaction against the same stream without. Ours syncs what it has written before it
returns; of the others only the stream does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from compaction import FileCompactor, FileCompactStrategy, planner
from compaction.trigger import Moment, Trigger
from filesink import BucketAssigner, FileSink, RollingPolicy
from filesink.naming import HiddenName, OutputFileConfig
from filesink.parts.committables import HeldFile, PendingFile
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from filesink.parts.stages.merger import Merger, MergeRequest, SinkFiles
from filesink.parts.stages.open_parts import Part
from filesink.storage.address import StoreAddress
from filesink.storage.api import Output, Store
from filesink.storage.staged import HiddenFile
from filesink.system import SystemIds
from formats import Encoder, ParquetWriterFactory
from lineitem import generate
from paired import Contender, compare, options, seconds
from sessions import start_spark

FILES, ROWS = 60, 10_000
TEXTS, TEXT_BYTES = 22, 750_000_000
_STREAMS = 3  # pairs at most; each takes half a minute


def main() -> None:
    """All comparisons, one after the other; ``--only`` for one of them."""
    arguments = _arguments()
    work = arguments.cache / "compaction"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        for name, measure in {
            "records": by_records,
            "bytes": by_bytes,
            "plan": planning,
            "stream": streaming,
        }.items():
            if arguments.only in {"", name}:
                measure(arguments.cache, work, arguments.rounds)
    finally:
        shutil.rmtree(work)


def by_records(cache: Path, work: Path, rounds: int) -> None:
    """60 files of 10,000 rows of lineitem become one."""
    base = work / "records"
    tables = list(lineitem(cache))
    form = BulkFormat(ParquetWriterFactory())
    parts = tuple(hold(base, form, table) for table in tables)
    ours = Contender(
        name="filesink",
        measure=partial(merge, base, form, FileCompactor.record_wise_file_compactor(), parts),
    )
    run = partial(compare, ours=ours, unit="seconds", rounds=rounds)
    ours.measure()  # warms up
    shares = [syncing(base, form, parts) for _ in range(rounds)]
    print(f"\nby records, filesink: {statistics.median(shares):.0%} of the time waits for the disk")
    names = [str(base / part[0].staged.path) for part in parts]
    target = work / "duckdb.parquet"
    run("by records, DuckDB", baseline=Contender(name="COPY", measure=partial(copy_by_duckdb, names, target)))
    run(
        "by records, delta-rs",
        baseline=Contender(
            name="optimize.compact", measure=partial(compact_by_delta, tables, work / "delta")
        ),
    )


def by_bytes(cache: Path, work: Path, rounds: int) -> None:
    """22 files of 34 MB of text become one."""
    del cache
    base, form = work / "bytes", RowFormat(Encoder.simple_string_encoder())
    lines = pa.record_batch({"value": ["x" * 99] * 10_000})
    batches = TEXT_BYTES // TEXTS // 1_000_000
    parts = tuple(hold(base, form, pa.Table.from_batches([lines] * batches)) for _ in range(TEXTS))
    names = [str(base / part[0].staged.path) for part in parts]
    ours = partial(merge, base, form, FileCompactor.concat_file_compactor(), parts)
    compare(
        f"by bytes, {TEXTS} files of text",
        baseline=Contender(name="cat and sync", measure=partial(cat, names, work / "cat.txt")),
        ours=Contender(name="filesink", measure=ours),
        unit="seconds",
        rounds=rounds,
    )


def planning(cache: Path, work: Path, rounds: int) -> None:
    """Ten thousand waiting files of one bucket are planned."""
    del cache, work, rounds
    parts = [(held_file(_nowhere(number), 1000),) for number in range(10_000)]
    trigger = Trigger(size=128 << 20, epochs=100_000, age_ms=10**12)
    moment = Moment(slot=1, now_ms=0, is_last=False, is_epoch=True)
    compactor = FileCompactor.concat_file_compactor()
    taken = seconds(lambda: planner.plan(parts, trigger, moment, key=compactor.key))
    print(f"\n10,000 files planned in {taken * 1000:.0f} ms")


def _nowhere(number: int) -> HiddenFile:
    name = HiddenName(target=f"part-{number}", tag="0123abcd", slot=0, attempt=SystemIds().uuid())
    return HiddenFile(path=str(name), size=1 << 20, inode=number, mtime_ns=0)


def streaming(cache: Path, work: Path, rounds: int) -> None:
    """A stream of 750 MB of text in 22 micro-batches, with and without compaction."""
    del cache
    source = work / "source"
    source.mkdir()
    text = ("y" * 99 + "\n") * (TEXT_BYTES // TEXTS // 100)
    for number in range(TEXTS):
        (source / f"{number:02}.txt").write_text(text)
    spark = start_spark()
    try:
        run = partial(stream, spark, source, work)
        compare(
            "text stream of 750 MB, compaction on",
            baseline=Contender(name="off", measure=partial(run, compacts=False)),
            ours=Contender(name="on", measure=partial(run, compacts=True)),
            unit="seconds",
            rounds=min(rounds, _STREAMS),
        )
    finally:
        spark.stop()


def lineitem(cache: Path) -> Iterator[pa.Table]:
    """The first rows of lineitem, in tables of 10,000."""
    (first, *_) = sorted(generate(cache, 1).glob("*.parquet"))
    table = pq.read_table(first)
    for number in range(FILES):
        yield table.slice(number * ROWS, ROWS)


def hold(base: Path, form: FileFormat, table: pa.Table) -> tuple[HeldFile]:
    """A part of one held file with the records of ``table``."""
    name = HiddenName(target="part-0", tag="0123abcd", slot=0, attempt=SystemIds().uuid())
    store = StoreAddress(base_path=str(base))()
    store.prepare()
    output = store.create(str(name), target=None)
    write(output, form, table)
    staged = output.close()
    store.sync()
    return (held_file(staged, table.num_rows),)


def held_file(staged: HiddenFile, rows: int) -> HeldFile:
    """A closed file that waits for compaction."""
    return HeldFile(
        bucket="",
        group=staged.path,
        staged=staged,
        rows=rows,
        size=staged.size,
        created_ms=0,
        updated_ms=0,
        signature="one",
    )


def write(output: Output, form: FileFormat, table: pa.Table) -> None:
    """Records of one file, as a task writes them."""
    match form:
        case BulkFormat(factory=factory):
            writer = factory.create(output, table.schema)
            for batch in table.to_batches():
                writer.write(batch)
            writer.finish()
        case RowFormat(encoder=encoder):
            for batch in table.to_batches():
                output.write(encoder.encode(batch))


def merge(
    base: Path,
    form: FileFormat,
    compactor: FileCompactor,
    parts: tuple[Part, ...],
    *,
    open_store: Callable[[], Store] | None = None,
) -> float:
    """Ours: what one merge of an epoch does."""
    address = open_store or StoreAddress(base_path=str(base))
    files = SinkFiles(open_store=address, format=form, names=OutputFileConfig())
    merger = Merger(address, compactor.combine(files))
    request = MergeRequest(parts=parts, target="part-merged", prefix="part", tag="0123abcd", slot=1)
    made: list[PendingFile] = []
    taken = seconds(lambda: made.append(merger(request)))
    (base / made[0].staged.path).unlink()
    return taken


def syncing(base: Path, form: FileFormat, parts: tuple[Part, ...]) -> float:
    """Which share of a merge is spent in making it durable; the others leave that to the kernel."""
    spent: list[float] = []

    def open_store() -> Store:
        store = StoreAddress(base_path=str(base))()
        sync = store.sync
        store.sync = lambda: spent.append(seconds(sync))  # type: ignore[method-assign]
        return store

    taken = merge(base, form, FileCompactor.record_wise_file_compactor(), parts, open_store=open_store)
    return sum(spent) / taken


def copy_by_duckdb(names: list[str], target: Path) -> float:
    """DuckDB on two cores; reading and writing, nothing synced."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        query = f"COPY (SELECT * FROM read_parquet({names})) TO '{target}' (FORMAT parquet)"  # noqa: S608
        taken = seconds(lambda: connection.execute(query))
    target.unlink()
    return taken


def compact_by_delta(tables: list[pa.Table], path: Path) -> float:
    """delta-rs on a table of the same 60 files."""
    for table in tables:
        deltalake.write_deltalake(str(path), table, mode="append")
    delta = deltalake.DeltaTable(str(path))
    taken = seconds(delta.optimize.compact)
    shutil.rmtree(path)
    return taken


def cat(names: list[str], target: Path) -> float:
    """The system's own way, and its way of making the result durable."""
    with target.open("wb") as out:

        def work() -> None:
            subprocess.run(["cat", *names], stdout=out, check=True)  # noqa: S607 - the one on PATH is meant
            os.fsync(out.fileno())

        taken = seconds(work)
    target.unlink()
    return taken


def stream(spark: SparkSession, source: Path, work: Path, *, compacts: bool) -> float:
    """One query over all of the text, a file each micro-batch."""
    sink = FileSink.for_row_format(str(work / "out"), Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    if compacts:
        strategy = FileCompactStrategy(size_threshold="128MiB", checkpoints=5)
        sink = sink.enable_compact(strategy, FileCompactor.concat_file_compactor())
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
    built = sink.build()

    def run() -> None:
        query = built.start(lines, checkpoint_location=str(work / "checkpoint"), available_now=True)
        query.awaitTermination()

    taken = seconds(run)
    size = sum(file.stat().st_size for file in (work / "out").glob("part-*"))
    if size != TEXTS * (TEXT_BYTES // TEXTS // 100 * 100):
        raise SystemExit(f"{work / 'out'} holds {size:,} bytes: nothing was measured")
    for leftover in ("out", "checkpoint"):
        shutil.rmtree(work / leftover)
    return taken


def _arguments() -> argparse.Namespace:
    parser = options("Merging of small files", rounds=5)
    parser.add_argument("--only", choices=["", "records", "bytes", "plan", "stream"], default="")
    return parser.parse_args()


if __name__ == "__main__":
    main()
