"""How each frozen state is made, and what is known of it. Written by hand: see ``make_states``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compaction import compact
from filesink import FileSinkBuilder
from formats import ParquetWriterFactory
from tests.golden.states.dying import MANY, die, lose_hidden, run, run_many
from tests.golden.states.pieces import ROWS, STREAMS, named, parquet, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kept = Sequence[int]


def ids(first: int, end: int) -> list[int]:
    """``first`` up to, not including, ``end``."""
    return list(range(first, end))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is known of a state.

    Attributes:
        visible: ids that readers see, one for each time that they see it.
        recovered: the same after ``recover()``.
        held: ids in files that stay hidden until the input ends, or until they are merged.
        dead_letters: ids put aside, now and after ``recover()``.
        announced: buckets with a success file, after ``recover()``.
        committed: ``txn_id`` to mode and ids of writes that are decided: they are never written again.
        free: the same of writes that were taken back: a repetition writes them.
        copied: whether ``recovered`` has rows that were to be replaced. They are in files that the record
            knows by inode and time, and what was unpacked is a copy: it stays, as files of others do.
    """

    visible: Kept
    recovered: Kept | None = None
    held: Kept = ()
    dead_letters: Kept = ()
    announced: Sequence[str] = ()
    committed: Mapping[str, tuple[str, Kept]] = field(default_factory=dict)
    free: Mapping[str, tuple[str, Kept]] = field(default_factory=dict)
    copied: bool = False


def opened(spark: SparkSession, directory: Path, name: str) -> State:
    """Two micro-batches in parts that stay open."""
    run(spark, directory, STREAMS[name], times=2)
    return State(visible=[], held=ids(0, 2 * ROWS))


def bad_ones(spark: SparkSession, directory: Path) -> State:
    """Good records in an open part, bad ones put aside."""
    run(spark, directory, STREAMS["dead-letters"], times=2)
    return State(visible=[], held=[1, 2, 3, 4, 6, 7], dead_letters=[0, 5])


def through_data_source(spark: SparkSession, directory: Path) -> State:
    """Two micro-batches by ``format("filesink")``."""
    run(spark, directory, STREAMS["data-source"], times=2)
    return State(visible=ids(0, 2 * ROWS))


def announcing(spark: SparkSession, directory: Path) -> State:
    """Two days, whose announcement waits."""
    run(spark, directory, STREAMS["announcements-waiting"], times=2)
    return State(visible=ids(0, 2 * ROWS))


def announced(spark: SparkSession, directory: Path) -> State:
    """All files of the second day are visible, and the first is about to be announced."""
    run(spark, directory, STREAMS["announcements-decided"])
    die(directory, "announcements-decided")
    return State(visible=ids(0, 2 * ROWS), announced=["day=2024-01-01"])


def decided(spark: SparkSession, directory: Path) -> State:
    """The second epoch is decided, and nothing of it visible."""
    run(spark, directory, STREAMS["stream-decided"])
    die(directory, "stream-decided")
    return State(visible=ids(0, 4), recovered=ids(0, 8))


def half_published(spark: SparkSession, directory: Path) -> State:
    """Two files of four of the second epoch have their final names, and their hidden ones as well."""
    run(spark, directory, STREAMS["stream-half-published"])
    die(directory, "stream-half-published")
    return State(visible=[*ids(0, 4), 4, 6], recovered=ids(0, 8))


def taken_back(spark: SparkSession, directory: Path) -> State:
    """The second epoch was half published, lost the rest, and was taken back to be written again."""
    stream, checkpoint = STREAMS["stream-taken-back"], directory / "checkpoint"
    run(spark, directory, stream)
    die(directory, "stream-taken-back")
    lose_hidden(directory / "base")
    sink = stream.sink(directory / "base").build()
    assert sink.recover(lost="rewrite", checkpoint_location=checkpoint).retracted == (1,)
    return State(visible=ids(0, 4))


def stream_and_batch(spark: SparkSession, directory: Path) -> State:
    """One chain of a stream and of batch writes, with and without ``txn_id``."""
    stream, sink = STREAMS["stream-and-batch"], named(directory / "base").build()
    run(spark, directory, stream)
    sink.write(rows(spark, 1000, 1004))
    sink.write(rows(spark, 1004, 1008), txn_id="a")
    run(spark, directory, stream)
    return State(visible=[*ids(0, 8), *ids(1000, 1008)], committed={"a": ("append", ids(1004, 1008))})


def two_queries(spark: SparkSession, directory: Path) -> State:
    """The only batch of the first was carried through by the second, and its record is folded away since."""
    die(directory, "two-queries-folded")
    run_many(spark, directory, STREAMS["two-queries-folded"])
    return State(visible=[-4, -3, -2, -1, *range(0, MANY * ROWS, 20)])


def plain(spark: SparkSession, directory: Path) -> State:
    """Two appends, each with a ledger of its own."""
    sink = parquet(directory / "base").build()
    sink.write(rows(spark, 0, 4))
    sink.write(rows(spark, 4, 8))
    return State(visible=ids(0, 8))


def with_uid(spark: SparkSession, directory: Path) -> State:
    """Two appends in one chain."""
    sink = named(directory / "base").build()
    sink.write(rows(spark, 0, 4))
    sink.write(rows(spark, 4, 8))
    return State(visible=ids(0, 8))


def append_decided(
    spark: SparkSession, directory: Path, name: str, sink: Callable[[Path], FileSinkBuilder]
) -> State:
    """The second append is decided, and nothing of it visible."""
    sink(directory / "base").build().write(rows(spark, 0, 4))
    die(directory, name)
    return State(visible=ids(0, 4), recovered=ids(0, 8))


def txns(spark: SparkSession, directory: Path) -> State:
    """Two appends that are known by name."""
    sink = named(directory / "base").build()
    sink.write(rows(spark, 0, 4), txn_id="a")
    sink.write(rows(spark, 4, 8), txn_id="b")
    return State(visible=ids(0, 8), committed={"a": ("append", ids(0, 4)), "b": ("append", ids(4, 8))})


def txn_decided(spark: SparkSession, directory: Path) -> State:
    """The second is decided, and nothing of it visible."""
    named(directory / "base").build().write(rows(spark, 0, 4), txn_id="a")
    die(directory, "txn-decided")
    return State(
        visible=ids(0, 4),
        recovered=ids(0, 8),
        committed={"a": ("append", ids(0, 4)), "b": ("append", ids(4, 8))},
    )


def overwrites(spark: SparkSession, directory: Path) -> State:
    """Everything replaced, then more, then one half replaced."""
    sink = named(directory / "base").build()
    sink.write(rows(spark, 0, 4))
    sink.write(rows(spark, 4, 8), mode="overwrite", txn_id="a")
    sink.write(rows(spark, 8, 12))
    sink.write(rows(spark, 14, 16), mode="overwrite_partitions", txn_id="b")
    return State(
        visible=[4, 5, 8, 9, 14, 15],
        committed={"a": ("overwrite", ids(4, 8)), "b": ("overwrite_partitions", ids(14, 16))},
    )


def overwriting(spark: SparkSession, directory: Path, name: str) -> State:
    """An overwrite is decided. Either nothing of it is visible, or all, beside what it replaces."""
    named(directory / "base").build().write(rows(spark, 0, 4))
    die(directory, name)
    is_published = name == "overwrite-half-done"
    return State(
        visible=ids(0, 8) if is_published else ids(0, 4),
        recovered=ids(0, 8),
        committed={"a": ("overwrite", ids(4, 8))},
        copied=True,
    )


def overwrite_taken_back(spark: SparkSession, directory: Path) -> State:
    """An overwrite was decided, lost its files and was taken back."""
    sink = named(directory / "base").build()
    sink.write(rows(spark, 0, 4))
    die(directory, "overwrite-taken-back")
    lose_hidden(directory / "base")
    assert sink.recover(lost="rewrite").retracted == (0,)
    return State(visible=ids(0, 4), free={"a": ("overwrite", ids(4, 8))})


def compacted(spark: SparkSession, directory: Path) -> State:
    """Merged files, and beside them those that they were made of, for readers to finish with."""
    base = directory / "base"
    named(base).build().write(rows(spark, 0, 8))
    named(base).build().write(rows(spark, 8, 16))
    compact(base, ParquetWriterFactory(), reader_grace="36500 days")
    return State(visible=sorted([*ids(0, 16), *ids(0, 16)]), copied=True)


def compaction_decided(spark: SparkSession, directory: Path) -> State:
    """Merged files are decided, and not visible."""
    named(directory / "base").build().write(rows(spark, 0, 8))
    named(directory / "base").build().write(rows(spark, 8, 16))
    die(directory, "compaction-decided")
    return State(visible=ids(0, 16), recovered=sorted([*ids(0, 16), *ids(0, 16)]), copied=True)


def waiting(spark: SparkSession, directory: Path) -> State:
    """Small files of three micro-batches wait to be merged."""
    run(spark, directory, STREAMS["compaction-waiting"], times=3)
    return State(visible=[], held=ids(0, 3 * ROWS))


MAKERS: dict[str, Callable[[SparkSession, Path], State]] = {
    "text-open": partial(opened, name="text-open"),
    "csv-open": partial(opened, name="csv-open"),
    "json-open": partial(opened, name="json-open"),
    "avro-open": partial(opened, name="avro-open"),
    "without-uid": partial(opened, name="without-uid"),
    "dead-letters": bad_ones,
    "compaction-waiting": waiting,
    "data-source": through_data_source,
    "announcements-waiting": announcing,
    "announcements-decided": announced,
    "stream-decided": decided,
    "stream-half-published": half_published,
    "stream-taken-back": taken_back,
    "stream-and-batch": stream_and_batch,
    "two-queries-folded": two_queries,
    "batch-plain": plain,
    "batch-with-uid": with_uid,
    "batch-plain-decided": partial(append_decided, name="batch-plain-decided", sink=parquet),
    "batch-with-uid-decided": partial(append_decided, name="batch-with-uid-decided", sink=named),
    "txns": txns,
    "txn-decided": txn_decided,
    "overwrites": overwrites,
    "overwrite-decided": partial(overwriting, name="overwrite-decided"),
    "overwrite-half-done": partial(overwriting, name="overwrite-half-done"),
    "overwrite-taken-back": overwrite_taken_back,
    "compacted": compacted,
    "compaction-decided": compaction_decided,
}
