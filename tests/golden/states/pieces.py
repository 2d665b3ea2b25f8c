"""Sinks and inputs of the frozen states: the same for who froze them and for who takes them over.

Ids are whole numbers from 0 on. A stream has ``ROWS`` of them in each micro-batch, one day after the other,
half of them in bucket ``half=0`` and half in ``half=1``. Its source keeps no paths in the checkpoint.

What is changed here changes what the frozen states are taken over by, and not the states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import filesink
from compaction import FileCompactor, FileCompactStrategy
from filesink import (
    BucketAssigner,
    DeadLetters,
    FileSink,
    FileSinkBuilder,
    OutputFileConfig,
    PartitionCommit,
    RollingPolicy,
    SuccessFilePolicy,
)
from formats import Encoder, ParquetWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 4  # of a micro-batch
UID = "golden"
_NOON = 1_704_110_400_000  # 2024-01-01 12:00 UTC, in milliseconds since 1970
_DAY = 86_400_000  # milliseconds
_LATER = "36500 days"
BASE_PATH = BucketAssigner.base_path_bucket_assigner()
BY_HALF = BucketAssigner.partition_bucket_assigner("half")
BY_DAY = BucketAssigner.partition_bucket_assigner("day")
HALF = "CAST(id div 2 % 2 AS STRING) AS half"
#: Every fifth id cannot be written in a file of Latin letters.
BAD_NAME = "IF(id % 5 = 0, '漢', 'x') AS name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A query into a sink. ``where`` leaves out ids, ``columns`` are what is written.

    With ``options`` it goes through ``format("filesink")``, into the same sink.
    """

    sink: Callable[[Path], FileSinkBuilder]
    columns: tuple[str, ...] = ("id", HALF)
    where: str = "true"
    options: Mapping[str, str] | None = None

    def frame(self, spark: SparkSession) -> DataFrame:
        """Its input: one micro-batch for each time that it is triggered."""
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
        source = source.option("numPartitions", 2).option("startTimestamp", _NOON)
        numbers = source.option("advanceMillisPerBatch", _DAY).load()
        numbers = numbers.selectExpr(
            "value AS id", "timestamp AS at", "CAST(to_date(timestamp) AS STRING) AS day"
        )
        return numbers.where(self.where).selectExpr(*self.columns)

    def through_data_source(self, spark: SparkSession, directory: Path) -> None:
        """One micro-batch, by Spark's own means."""
        filesink.register(spark)
        writer = self.frame(spark).writeStream.format("filesink").options(**(self.options or {}))
        writer = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(once=True)
        writer.start(str(directory / "base")).awaitTermination()


def rows(spark: SparkSession, first: int, end: int) -> DataFrame:
    """The input of a batch write."""
    return spark.range(first, end, numPartitions=2).selectExpr("id", HALF)


def parquet(base: Path) -> FileSinkBuilder:
    """By halves, in files that end with each epoch; without uid."""
    return FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(BY_HALF)


def named(base: Path) -> FileSinkBuilder:
    """The same, with uid."""
    return parquet(base).with_uid(UID)


def _open(base: Path, encoder: Encoder) -> FileSinkBuilder:
    policy = RollingPolicy.default_rolling_policy(rollover_interval=_LATER, inactivity_interval=_LATER)
    return FileSink.for_row_format(base, encoder).with_bucket_assigner(BY_HALF).with_rolling_policy(policy)


def text(base: Path) -> FileSinkBuilder:
    """Lines that are ids, in one part that stays open."""
    sink = _open(base, Encoder.simple_string_encoder()).with_bucket_assigner(BASE_PATH)
    return sink.with_output_file_config(OutputFileConfig(part_suffix=".txt")).with_uid(UID)


def csv(base: Path) -> FileSinkBuilder:
    """With a header, which only the first of the segments of a part has."""
    return _open(base, Encoder.csv(header=True)).with_uid(UID)


def json_lines(base: Path) -> FileSinkBuilder:
    """Parts that stay open, by halves."""
    return _open(base, Encoder.json_lines()).with_uid(UID)


def avro(base: Path) -> FileSinkBuilder:
    """Parts that stay open, by halves."""
    return _open(base, Encoder.avro()).with_uid(UID)


def without_uid(base: Path) -> FileSinkBuilder:
    """Known by its checkpoint alone."""
    return _open(base, Encoder.json_lines())


def latin(base: Path) -> FileSinkBuilder:
    """Other letters are put aside."""
    sink = _open(base, Encoder.csv(charset="ISO-8859-1")).with_bucket_assigner(BASE_PATH)
    return sink.on_bad_record(DeadLetters()).with_uid(UID)


def compacting(base: Path) -> FileSinkBuilder:
    """Small files wait for six epochs."""
    strategy = FileCompactStrategy(checkpoints=6)
    return named(base).enable_compact(strategy, FileCompactor.record_wise_file_compactor())


def announcing_whole(base: Path) -> FileSinkBuilder:
    """A day has its success file when the next one has begun."""
    commit = PartitionCommit(
        trigger=PartitionCommit.partition_time(extractor="$day", watermark_column="at"),
        delay="1 day",
        policies=[SuccessFilePolicy()],
    )
    return named(base).with_bucket_assigner(BY_DAY).with_partition_commit(commit)


def announcing_late(base: Path) -> FileSinkBuilder:
    """Days wait for their success files until the end."""
    commit = PartitionCommit(delay=_LATER, policies=[SuccessFilePolicy()])
    return named(base).with_bucket_assigner(BY_DAY).with_partition_commit(commit)


def shared(base: Path) -> FileSinkBuilder:
    """One uid for several queries, a file for each row."""
    sink = FileSink.for_row_format(base, Encoder.json_lines()).with_bucket_assigner(BASE_PATH)
    sink = sink.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    return sink.with_uid(UID).on_new_query("append")


DAYS = ("id", "at", "day")
#: The query of each state that has a checkpoint.
STREAMS = {
    "text-open": Stream(sink=text, columns=("lpad(id, 6, '0') AS value",)),
    "csv-open": Stream(sink=csv, columns=("id", "'a, \"b\"' AS words", HALF)),
    "json-open": Stream(sink=json_lines),
    "avro-open": Stream(sink=avro),
    "dead-letters": Stream(sink=latin, columns=("id", BAD_NAME)),
    "compaction-waiting": Stream(sink=compacting),
    "without-uid": Stream(sink=without_uid),
    "stream-decided": Stream(sink=named),
    "stream-half-published": Stream(sink=named),
    "announcements-decided": Stream(sink=announcing_whole, columns=DAYS),
    "announcements-waiting": Stream(sink=announcing_late, columns=DAYS),
    "stream-taken-back": Stream(sink=named),
    "stream-and-batch": Stream(sink=named),
    "data-source": Stream(sink=named, options={"bucketColumns": "half", "uid": UID}),
    "two-queries-folded": Stream(sink=shared, columns=("id",), where="id % 20 = 0"),
}
#: The first of the two queries of that state: its ids are below zero.
FIRST_OF_TWO = Stream(sink=shared, columns=("-1 - id AS id",))


def sink_of(state: str) -> Callable[[Path], FileSinkBuilder]:
    """The sink that wrote a state, and takes it over."""
    if state in STREAMS:
        return STREAMS[state].sink
    return parquet if state.startswith("batch-plain") else named
