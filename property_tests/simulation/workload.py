"""What is written in a history: rows, the format and rules of the sink, and who has seen what.

A row is a text of seven characters, ``bb-nnnn``: batch and number. It never occurs twice in a source.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compaction import RewritingFileCompactor, planner
from filesink.buckets.contract import BaseBucketAssigner, BucketContext
from filesink.inventory import appending
from filesink.ledger import folding
from filesink.naming import DEAD_LETTERS, OutputFileConfig, join
from filesink.parts import bucket
from filesink.parts.dead_letters import NO_BUCKET, DeadLetters
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat
from filesink.parts.plan import Plan, WriterLimits
from filesink.parts.rolling import RollingPolicy
from filesink.parts.stages import merging
from filesink.parts.stages import open_parts as closing
from filesink.storage.local import sync as local_sync
from filesink.storage.objects import concat as s3_concat
from filesink.storage.objects.api import SMALLEST_PART
from formats.api import BaseEncoder
from formats.errors import FormatError
from formats.json.encoder import JsonLinesEncoder
from formats.parquet.writer import ParquetWriterFactory
from property_tests.simulation.compacting import Compacting, draw_compacting
from property_tests.simulation.world.bucket import Personality

_HEADER = b"#rows#"  # then the mark of the part, and a line feed
HEADER_BYTES = len(_HEADER) + 2
ROW_BYTES = 8  # of LinesEncoder, line feed included
_TEXT = pa.string()
SCHEMA = pa.schema([("bucket", _TEXT), ("row", _TEXT)])
GROWN = SCHEMA.append(pa.field("note", _TEXT))
UNFIT = pa.schema([("bucket", _TEXT), ("line", _TEXT)])  # its files could not be read with the others


def is_bad(row: str) -> bool:
    """Whether a row is put aside, in histories that have dead letters: the second of three."""
    return int(row[-4:]) % 3 == 1


def has_no_bucket(row: str) -> bool:
    """Whether a row of such a history has none, null or unusable, and is put aside before it is encoded."""
    return int(row[-4:]) % 6 in {2, 3}


@dataclass(slots=True)
class Marks:
    """What the parts of a history are marked with; two in three have the same, and may be joined."""

    parts: int = 0

    def next(self) -> str:
        """The mark of one more part."""
        self.parts += 1
        return "-" if self.parts % 3 else "+"


@dataclass(frozen=True, slots=True)
class LinesEncoder(BaseEncoder):
    """Lines with a header and a carry-over: the least that shows a torn, doubled or headless part.

    The header names the mark that stands in each row of the part, as blocks of Avro have the marker of
    theirs: so it is seen if a part goes on as another one.
    """

    mark: str = "-"
    refuses: bool = False  # some rows, which are to be put aside
    marks: Marks = field(default_factory=Marks, repr=False, compare=False)

    extension = ".txt"

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """See ``Encoder.encode``."""
        rows = [str(row) for row in batch.column(0).to_pylist()]
        if self.refuses and any(map(is_bad, rows)):
            raise FormatError("a row that is refused", kind="value")
        return "".join(f"{row.replace('-', self.mark)}\n" for row in rows).encode()

    def header(self, schema: pa.Schema) -> bytes:
        """See ``Encoder.header``."""
        del schema
        return _HEADER + f"{self.mark}\n".encode()

    def start_part(self) -> BaseEncoder:
        """See ``Encoder.start_part``."""
        return replace(self, mark=self.marks.next())

    def carry_over(self) -> bytes:
        """See ``Encoder.carry_over``."""
        return self.mark.encode()

    def resume_part(self, carry_over: bytes) -> BaseEncoder:
        """See ``Encoder.resume_part``."""
        if carry_over not in {b"-", b"+"}:
            raise ValueError("not what carry_over gave")
        return replace(self, mark=carry_over.decode())

    def signature(self) -> str:
        """See ``Encoder.signature``."""
        return "lines"


@dataclass(frozen=True, slots=True)
class ColumnAssigner(BaseBucketAssigner):
    """The bucket is in the row; a cheap stand-in for the built-in ones, which have laws of their own."""

    def assign(self, batch: pa.RecordBatch, context: BucketContext) -> pa.Array[Any]:
        """See ``BucketAssigner.assign``."""
        del context
        return batch.column(0)

    def partition_columns(self) -> tuple[str, ...]:
        """See ``BucketAssigner.partition_columns``."""
        return ("bucket",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Constants of the product that only long histories would reach; small ones reach them here."""

    fold_every: int = 2
    versions_folded: int = 3
    max_segments: int = 3
    max_open_parts: int = 4
    max_unsynced: int = 2
    max_waiting: int = 10_000
    merged_on_driver: int = 1 << 30  # bytes
    smallest_part: int = 12  # bytes of a piece that an object store copies

    def apply(self) -> None:
        """Set them for the histories that follow."""
        folding._FOLD_EVERY = self.fold_every
        appending.FOLD_EVERY = self.versions_folded
        bucket.MAX_SEGMENTS = self.max_segments
        closing.MAX_OPEN_PARTS = self.max_open_parts
        local_sync.MAX_UNSYNCED = self.max_unsynced
        planner.MAX_WAITING = self.max_waiting
        merging._ON_DRIVER = self.merged_on_driver
        RewritingFileCompactor.on_driver = min(self.merged_on_driver, 8 << 20)
        s3_concat.SMALLEST_PART = self.smallest_part  # type: ignore[attr-defined]


#: What the product itself has; every history ends with it.
REAL_BOUNDS = Bounds(
    fold_every=folding._FOLD_EVERY,
    versions_folded=appending.FOLD_EVERY,
    max_segments=bucket.MAX_SEGMENTS,
    max_open_parts=closing.MAX_OPEN_PARTS,
    max_unsynced=local_sync.MAX_UNSYNCED,
    max_waiting=planner.MAX_WAITING,
    merged_on_driver=merging._ON_DRIVER,
    smallest_part=SMALLEST_PART,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size and kind of a history's workload; see ``draw_shape`` for what occurs."""

    batches: int = 3
    rows: int = 6  # per batch
    buckets: tuple[str, ...] = ("a", "b/c")
    partitions: int = 2
    format: str = "lines"
    part_size: int = 24  # bytes; three rows
    rolls: bool = False  # whether every part is closed at every epoch
    rollover_ms: int = 1500
    keep_batches: int = 100
    announce_after_ms: int | None = None  # to a metastore; ``None`` for a sink that announces nothing
    server: Personality | None = None  # an object store instead of a disk
    limits: WriterLimits = field(default_factory=WriterLimits)
    bounds: Bounds = field(default_factory=Bounds)
    compacting: Compacting | None = None
    grows_at: int | None = None  # number of the first batch with a column more
    dead_letters: bool = False  # whether some rows cannot be written, or have no bucket


def draw_shape(random: Random) -> Shape:
    """A workload for a seed."""
    kind = random.random()
    format_ = "lines" if kind < 0.94 else "json" if kind < 0.98 else "parquet"
    small = random.random() < 0.1
    return Shape(
        batches=random.choice((1, 1, 2, 3, 4, 6)),
        rows=random.choice((0, 1, 2, 4, 6)),
        buckets=random.choice((("",), ("a",), ("a", "b/c"), ("x/y", "x/z", ""))),
        partitions=random.choice((0, 1, 1, 2, 2, 3)),
        format=format_,
        part_size=random.choice((8, 16, 24, 40, 1000)),
        rolls=format_ == "parquet" or random.random() < 0.3,
        rollover_ms=random.choice((100, 1500, 10**6)),
        keep_batches=random.choice((1, 1, 2, 100)),
        limits=WriterLimits(memory=16, open_files=1) if small else WriterLimits(),
        bounds=Bounds(
            fold_every=random.choice((1, 2, 25)),
            max_segments=random.choice((2, 3, 1000)),
            max_open_parts=random.choice((1, 4, 10_000)),
            max_unsynced=random.choice((1, 2, 64)),
        ),
    )


def with_compaction(shape: Shape, random: Random) -> Shape:
    """The same workload with small files that wait for each other; merges may be jobs."""
    bounds = replace(
        shape.bounds, max_waiting=random.choice((3, 10_000)), merged_on_driver=random.choice((0, 1 << 30))
    )
    return replace(shape, compacting=draw_compacting(random, shape.format), bounds=bounds)


def draw_announcing(shape: Shape, random: Random) -> Shape:
    """The same workload in partitions of a table, for some seeds."""
    if random.random() < 0.75:
        return shape
    buckets = random.choice((("p=1",), ("p=1", "p=2"), ("p=1", "p=2", "p=3")))
    return replace(shape, buckets=buckets, announce_after_ms=random.choice((0, 0, 1, 500)))


def draw_server(seed: int) -> Personality | None:
    """Where the files of a seed live: every fourth has an object store."""
    return Random(f"server {seed}").choice(list(Personality)) if seed % 4 == 1 else None


def draw_growth(seed: int) -> int | None:
    """When the columns of a seed's input become more; for three in four they stay."""
    return Random(f"columns {seed}").choice((None, None, None, None, None, None, 1, 2))


def draw_dead_letters(shape: Shape, seed: int) -> Shape:
    """The same workload with rows that have no bucket, or that the encoder refuses, for some seeds."""
    wanted = shape.announce_after_ms is None
    return replace(shape, dead_letters=True) if wanted and seed % 10 == 7 else shape


def draw_folds(shape: Shape, seed: int) -> Shape:
    """The same workload with an inventory that is folded after some number of versions."""
    folded = Random(f"inventory {seed}").choice((1, 2, 3, 5, 64))
    return replace(shape, bounds=replace(shape.bounds, versions_folded=folded))


def plan_of(shape: Shape) -> Plan:
    """How the sink of a history writes."""
    form: FileFormat
    match shape.format:
        case "lines":
            form = RowFormat(LinesEncoder(refuses=shape.dead_letters))
        case "json":
            form = RowFormat(JsonLinesEncoder())
        case _:
            form = BulkFormat(ParquetWriterFactory())
    if shape.rolls:
        policy: RollingPolicy = RollingPolicy.on_checkpoint_rolling_policy(part_size=shape.part_size)
    else:
        policy = RollingPolicy.default_rolling_policy(
            part_size=shape.part_size,
            rollover_interval=shape.rollover_ms,
            inactivity_interval=max(1, shape.rollover_ms // 2),
        )
    return Plan(
        format=form,
        assigner=ColumnAssigner(),
        policy=policy,
        names=OutputFileConfig(),
        check_interval_ms=1,
        limits=shape.limits,
        on_bad_record=DeadLetters() if shape.dead_letters else None,
    )


@dataclass(slots=True)
class Source:
    """Rows of one query; ``buckets`` tells where each row belongs."""

    shape: Shape
    buckets: dict[str, str] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)

    @staticmethod
    def draw(shape: Shape, random: Random) -> Source:
        """The rows of a history."""
        source = Source(shape)
        for number in range(shape.batches):
            source.add_batch(f"{number:02d}", shape.rows, random)
        return source

    def add_batch(self, name: str, rows: int, random: Random) -> None:
        """One more micro-batch of new rows."""
        batch = [f"{name}-{n:04d}" for n in range(rows)]
        for row in batch:
            self.buckets[row] = random.choice(self.shape.buckets)
        self.batches.append(batch)

    def directory(self, row: str) -> str | None:
        """Where a row has to be; ``None`` if it is not one of this source."""
        bucket = self.buckets.get(row)
        if bucket is None or not self.shape.dead_letters:
            return bucket
        if has_no_bucket(row):
            return f"{DEAD_LETTERS}{NO_BUCKET}"
        return (
            join(DEAD_LETTERS, bucket).rstrip("/") if self.shape.format == "lines" and is_bad(row) else bucket
        )

    def given_bucket(self, row: str) -> str | None:
        """What the assigner is given."""
        if self.shape.dead_letters and has_no_bucket(row):
            return None if int(row[-4:]) % 2 else f"../{self.buckets[row]}"
        return self.buckets[row]

    def schema(self, rows: Sequence[str]) -> pa.Schema:
        """The columns of the batch that ``rows`` are of."""
        grows_at, name = self.shape.grows_at, rows[0][:2] if rows else ""
        return GROWN if grows_at is not None and name.isdigit() and int(name) >= grows_at else SCHEMA

    def arrow(self, rows: Sequence[str]) -> pa.RecordBatch:
        """Rows as a writer gets them."""
        buckets = [self.given_bucket(row) for row in rows]
        columns = [pa.array(buckets, _TEXT), pa.array(rows, _TEXT)]
        schema = self.schema(rows)
        notes = [pa.nulls(len(rows), _TEXT)] * (len(schema) - len(columns))
        return pa.RecordBatch.from_arrays([*columns, *notes], schema=schema)


def rows_in(data: bytes, name: str) -> list[str]:
    """The rows of a whole part file; raises ``ValueError`` if it is not one."""
    if ".parquet" in name:
        try:
            return [str(row) for row in pq.read_table(io.BytesIO(data)).column("row").to_pylist()]
        except pa.ArrowException as error:
            raise ValueError(str(error)) from error
    if not data.endswith(b"\n"):
        raise ValueError("its last line is cut")
    if ".json" in name:
        return [str(json.loads(line)["row"]) for line in data.splitlines()]
    if not data.startswith(_HEADER):
        raise ValueError("it has no header")
    mark = data[len(_HEADER) : HEADER_BYTES - 1].decode()
    rows = _lines(data[HEADER_BYTES:])
    if any(row[2] != mark for row in rows):
        raise ValueError("it has rows of another part")
    return [row.replace(mark, "-") for row in rows]


def rows_in_segment(data: bytes) -> list[str]:
    """The rows of a hidden file, whose name does not tell the format; with or without a header."""
    if data.startswith((b"{", b"PAR1")):
        return rows_in(data, ".json" if data[:1] == b"{" else ".parquet")
    body = data[HEADER_BYTES:] if data.startswith(_HEADER) else data
    return [row.replace("+", "-") for row in _lines(body)]


def _lines(data: bytes) -> list[str]:
    if len(data) % ROW_BYTES or data.count(b"\n") * ROW_BYTES != len(data):
        raise ValueError("a row is cut")
    return data.decode().split()
