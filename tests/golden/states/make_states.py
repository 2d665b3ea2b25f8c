"""Freezes a sink of every kind, as today's code leaves it on disk, for tomorrow's to take over.

    python -m tests.golden.states.make_states tests/golden/states/<number> [<state> ...]

Run it from the root of the repository before the first change of anything that is written, with the next
number, and never again for an old one: the states of ``1`` were written by release state 0.1.0.dev0, with
epoch records of version 2, before any change of format. With names of states only these are made.

Each state is made by a real Spark in a directory ``base`` with, for a stream, its ``checkpoint`` beside it.
A driver that dies does so: it is a process of its own that ends by ``os._exit`` in the midst of its work.
``states.json`` says which ids readers see in a state, and which they see after ``recover()``. Both are
written here by hand and compared with what was made; a tool that only repeats what it finds proves nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

import compaction
import compaction.finished
from compaction import compact
from filesink import FileSink, FileSinkBuilder
from filesink.file_tiers import StoreAddress
from filesink.spark.engine import SparkEngine
from filesink.storage.api import Store
from filesink.storage.faulty import FaultyStore
from formats import ParquetWriterFactory
from tests.golden.states import reading
from tests.golden.states.archive import pack, unpack
from tests.golden.states.pieces import FIRST_OF_TWO, ROWS, STREAMS, Stream, named, parquet, rows, sink_of
from tests.spark.programs import sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DIED = 9  # exit status of a driver that died where it was to die
_MANY = 130  # micro-batches: more than a chain keeps
Kept = Sequence[int]


def ids(first: int, end: int) -> list[int]:
    """``first`` up to, not including, ``end``."""
    return list(range(first, end))


# --- how drivers work, and die


@dataclass(frozen=True)
class DyingAddress:
    """Opens a store that ends the process at one call: that of ``operation`` after ``before`` others."""

    address: Callable[[], Store]
    operation: str
    before: int = 0
    path: str = ""  # how it ends
    seen: list[str] = field(default_factory=list)

    def __call__(self) -> Store:
        """See ``StoreAddress``."""
        return FaultyStore(self.address(), self._plan)

    def _plan(self, operation: str, path: str) -> None:
        if operation == self.operation and path.endswith(self.path):
            self.seen.append(path)
            if len(self.seen) > self.before:
                os._exit(_DIED)


def dying(builder: FileSinkBuilder, operation: str, **where: object) -> FileSink:
    """A sink whose driver dies in the midst of its next epoch."""
    sink = builder.build()
    sink._tiers = replace(sink._tiers, address=DyingAddress(sink._tiers.address, operation, **where))
    sink._engine = SparkEngine(sink._tiers)
    return sink


def one_batch(sink: FileSink, df: DataFrame, checkpoint: Path) -> None:
    """One micro-batch, after which the input has not ended: what is open stays open."""
    query = df.writeStream.foreachBatch(sink.foreach_batch).trigger(once=True)
    query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


def run(spark: SparkSession, directory: Path, stream: Stream, times: int = 1) -> None:
    """So many starts of a query, with one micro-batch each."""
    for _ in range(times):
        if stream.options is not None:
            stream.through_data_source(spark, directory)
            continue
        sink = stream.sink(directory / "base").build()
        one_batch(sink, stream.frame(spark), directory / "checkpoint")


class _EnoughError(Exception):
    """The query has done what it was to do."""


def run_many(spark: SparkSession, directory: Path, stream: Stream) -> None:
    """``_MANY`` micro-batches in one run, which fails in the next: that is planned, and no more."""
    sink = stream.sink(directory / "base").build()

    def write(df: DataFrame, batch_id: int) -> None:
        if batch_id == _MANY:
            raise _EnoughError
        sink.foreach_batch(df, batch_id)

    query = stream.frame(spark).writeStream.foreachBatch(write)
    try:
        query.option("checkpointLocation", str(directory / "checkpoint")).start().awaitTermination()
    except StreamingQueryException as failed:
        if _EnoughError.__name__ not in str(failed):
            raise


# --- the deaths: each in a process of its own


def die_in_stream(spark: SparkSession, directory: Path, name: str, operation: str, **where: object) -> None:
    """In a micro-batch of a state's query."""
    sink = dying(STREAMS[name].sink(directory / "base"), operation, **where)
    one_batch(sink, STREAMS[name].frame(spark), directory / "checkpoint")


def die_as_first(spark: SparkSession, directory: Path) -> None:
    """In the first micro-batch of the first of two queries."""
    sink = dying(FIRST_OF_TWO.sink(directory / "base"), "publish")
    one_batch(sink, FIRST_OF_TWO.frame(spark), directory / "first-checkpoint")


def die_in_append(
    spark: SparkSession, directory: Path, sink: Callable[[Path], FileSinkBuilder], txn_id: str | None = None
) -> None:
    """In a batch write that replaces nothing."""
    dying(sink(directory / "base"), "publish").write(rows(spark, 4, 8), txn_id=txn_id)


def die_in_overwrite(spark: SparkSession, directory: Path, operation: str) -> None:
    """In an overwrite with a ``txn_id``."""
    dying(named(directory / "base"), operation).write(rows(spark, 4, 8), mode="overwrite", txn_id="a")


def die_in_compaction(spark: SparkSession, directory: Path) -> None:
    """In an offline compaction."""
    del spark
    compaction.finished.StoreAddress = lambda **where: DyingAddress(StoreAddress(**where), "publish")
    compact(directory / "base", ParquetWriterFactory())


HALF_PUBLISHED = {"operation": "publish", "before": 2}
DEATHS: dict[str, Callable[[SparkSession, Path], None]] = {
    "stream-decided": partial(die_in_stream, name="stream-decided", operation="publish"),
    "stream-half-published": partial(die_in_stream, name="stream-half-published", **HALF_PUBLISHED),
    "stream-taken-back": partial(die_in_stream, name="stream-taken-back", **HALF_PUBLISHED),
    "announcements-decided": partial(
        die_in_stream, name="announcements-decided", operation="put_if_absent", path="_SUCCESS"
    ),
    "two-queries-folded": die_as_first,
    "batch-plain-decided": partial(die_in_append, sink=parquet),
    "batch-with-uid-decided": partial(die_in_append, sink=named),
    "txn-decided": partial(die_in_append, sink=named, txn_id="b"),
    "overwrite-decided": partial(die_in_overwrite, operation="publish"),
    "overwrite-half-done": partial(die_in_overwrite, operation="delete_if_unchanged"),
    "overwrite-taken-back": partial(die_in_overwrite, operation="publish"),
    "compaction-decided": die_in_compaction,
}


def die(directory: Path, name: str) -> None:
    """Have a driver die; returns when it is dead, and its JVM with it."""
    command = [sys.executable, "-m", "tests.golden.states.make_states", "--die", name, str(directory)]
    process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - this program
    status = process.wait()
    with suppress(ProcessLookupError):  # it was gone already
        os.killpg(process.pid, signal.SIGKILL)
    if status != _DIED:
        raise RuntimeError(f"the driver of '{name}' was to die and ended with {status}")


def lose_hidden(base: Path) -> None:
    """Somebody removes files that are decided and not published."""
    for path in base.rglob(".*.inprogress.*"):
        if path.stat().st_nlink == 1:
            path.unlink()


# --- the states


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
    return State(visible=[-4, -3, -2, -1, *range(0, _MANY * ROWS, 20)])


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


def freeze(spark: SparkSession, name: str, archive: Path, scratch: Path) -> State:
    """Make a state, write it down, and look whether it is what it is said to be, once unpacked, too."""
    directory, copy = scratch / name, scratch / f"{name}-copy"
    (directory / "base").mkdir(parents=True)
    state = MAKERS[name](spark, directory)
    if state.recovered is None:
        state = replace(state, recovered=state.visible)
    _require(name, "visible", reading.visible_ids(directory / "base"), state.visible)
    pack(directory, archive)
    unpack(archive, copy)
    sink_of(name)(copy / "base").build().recover()
    _require(name, "recovered", reading.visible_ids(copy / "base"), state.recovered)
    _require(name, "dead letters", reading.dead_letters(copy / "base"), state.dead_letters)
    _require(name, "announced", reading.success_files(copy / "base"), state.announced)
    return state


def _require(name: str, what: str, found: Sequence[object], expected: Sequence[object] | None) -> None:
    if list(found) != list(expected or ()):
        raise RuntimeError(f"'{name}': {what} are {found} and should be {expected}")


def main(target: Path, names: Sequence[str]) -> None:
    """Make the states of these names, or all."""
    manifest = target / "states.json"
    states = json.loads(manifest.read_text())["states"] if manifest.exists() else {}
    spark = sessions.start()
    scratch = Path(tempfile.mkdtemp())
    try:
        for name in names or MAKERS:
            states[name] = asdict(freeze(spark, name, target / f"{name}.tar.gz", scratch))
            print(name, flush=True)  # noqa: T201 - a program
            content = {"filesink": version("filesink"), "states": states}
            manifest.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    finally:
        spark.stop()
        shutil.rmtree(scratch)


if __name__ == "__main__":
    if sys.argv[1] == "--die":
        DEATHS[sys.argv[2]](sessions.start(), Path(sys.argv[3]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
