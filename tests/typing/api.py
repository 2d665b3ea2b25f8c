"""The API as a user writes it. Type-checked by mypy --strict, never run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.dataset import Dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import compaction
import filesink
from compaction import CompactionPlan, FileCompactor, FileCompactStrategy
from filesink import (
    BucketAssigner,
    CheckpointRollingPolicy,
    CollectPosition,
    CollectResults,
    CollectSink,
    CommitPolicy,
    CommittedPartition,
    DeltaExport,
    Encoder,
    Epoch,
    EpochReport,
    Exporter,
    ExportReport,
    FeedEntry,
    FileChanges,
    FileEnumerator,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSplit,
    FileSplitAssignerProvider,
    Finding,
    FsckReport,
    FunctionNotification,
    GlueCatalog,
    HeldPart,
    HiveMetastore,
    HttpService,
    KafkaCluster,
    KafkaNotification,
    KafkaSink,
    Kerberos,
    ListenerPolicy,
    LiveFile,
    MetastorePolicy,
    MetastoreTablesPolicy,
    OutputFileConfig,
    ParquetWriterFactory,
    PartitionCommit,
    PartitionPolicy,
    PathStatus,
    PostgresServer,
    PostgresSink,
    PostgresTable,
    ReadableFormat,
    RecursiveFileEnumerator,
    Retention,
    RollingPolicy,
    Root,
    RowEncoder,
    RowKind,
    SinkDirectory,
    SinkReport,
    SinkState,
    SizeSplitAssigner,
    Snapshot,
    SnsNotification,
    SourceFile,
    SparkCatalog,
    SparkSink,
    SplitAssigner,
    SqsNotification,
    StoreLedger,
    StreamFormat,
    SuccessFilePolicy,
    TableKind,
    TableReport,
    Tables,
    WebhookNotification,
    changes,
    register,
)
from filesink.api import Sink
from filesink.buckets.contract import BaseBucketAssigner
from filesink.errors import FilesinkError, StagedDataLost
from filesink.telemetry.logs import LogListener


class FileList(Exporter):
    """Something that is kept beside the files."""

    @property
    def name(self) -> str:
        return "list"

    def version(self, directory: SinkDirectory) -> int | None:
        return None if directory.inventory_id else 0

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        changes: FileChanges = directory.changes(0, version)
        print(changes.added.to_arrow().num_rows, changes.removed.num_rows)


feed: Iterator[FeedEntry] = filesink.follow("/data/events", after=0, wait="forever")
notified: ExportReport = filesink.export("/data/events", WebhookNotification("https://example.org"))
exported: ExportReport = filesink.export("/data/events", FileList(), {"anonymous": True})
print(exported.before, exported.version)

# A row format with everything that can be chosen.
lines = (
    FileSink.for_row_format("/data/events", Encoder.json_lines())
    .with_bucket_assigner(
        BucketAssigner.date_time_bucket_assigner("yyyy-MM-dd--HH", column="time", null_bucket="none")
    )
    .with_rolling_policy(
        RollingPolicy.default_rolling_policy(
            part_size="128MiB", rollover_interval="15 min", inactivity_interval=timedelta(minutes=1)
        )
    )
    .with_bucket_check_interval("1 min")
    .with_output_file_config(OutputFileConfig(part_prefix="events", part_suffix=".json"))
    .with_file_name_expression("events_${now}-${transactionId}", time_format="yyyyMMdd", time_zone="UTC")
    .with_uid("events")
    .on_new_query("append")
    .on_replay_mismatch("keep_first")
    .on_other_layout("allow")
    .with_history_retention("90 d")
    .with_reader_grace("1 h")
    .with_retention(Retention(max_age="90 days", max_bytes="10 TiB"))
    .with_listener(print)
    .with_export(FileList())
    .with_notification(print)
    .with_notification(
        WebhookNotification(HttpService("https://example.org", token_env="HOOK_TOKEN"), after=17)
    )
    .with_notification(SqsNotification("https://sqs.eu-central-1.amazonaws.com/1/epochs.fifo", name="queue"))
    .with_notification(SnsNotification("arn:aws:sns:eu-central-1:1:epochs"))
    .with_notification(KafkaNotification(KafkaCluster("host:9092"), "epochs"))
    .with_notification(FunctionNotification(lambda entry: print(entry.version, entry.added[0].path)))
    .on_export_failure("fail")
    .with_listener(LogListener(logging.getLogger("app.sink")))
    .build()
)

# A bulk format on an object store: it closes its files at every epoch.
policy: CheckpointRollingPolicy = RollingPolicy.on_checkpoint_rolling_policy()
parquet = (
    FileSink.for_bulk_format("s3://bucket/trips", ParquetWriterFactory())
    .with_rolling_policy(policy)
    .with_storage_options(endpoint_url="http://127.0.0.1:9000")
    .build()
)


class Mail(PartitionPolicy):
    """A user's own step of announcing."""

    def commit(self, partition: CommittedPartition) -> None:
        """Tell somebody."""
        print(partition.location, partition.values, partition.rows, partition.may_be_repeated)


steps: list[CommitPolicy] = [SuccessFilePolicy("_DONE"), ListenerPolicy(print), Mail()]
text: ReadableFormat = StreamFormat.text_line_format("UTF-8")

# Partitions announced to a metastore, in hours of the data's own time.
hive = HiveMetastore("thrift://a:9083,thrift://b:9083", security=Kerberos(service="hive"), timeout="30 s")
announcing = (
    FileSink.for_bulk_format("/data/trips", ParquetWriterFactory())
    .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("day", "hour"))
    .with_partition_commit(
        PartitionCommit(
            trigger=PartitionCommit.partition_time(
                extractor="$day $hour:00:00",
                watermark_column="ts",
                allowed_lateness=timedelta(minutes=5),
                formatter="yyyyMMdd HH:mm:ss",
            ),
            delay="1 h",
            policies=[
                MetastorePolicy(
                    "db.trips",
                    hive,
                    create=TableKind.EXTERNAL,
                    on_new_columns="add",
                    on_wider_types="alter",
                ),
                *steps,
            ],
        )
    )
    .build()
)


def tables(df: DataFrame) -> None:
    """Sinks made from tables."""
    FileSink.for_hive_table("db.t", metastore=SparkCatalog(), on_new_columns="add").build().write(df)
    FileSink.for_hive_table("db.t", metastore=GlueCatalog()).with_uid("t").build().write(df)


class PipeEncoder(RowEncoder):
    """A user's own format; the slow path."""

    extension = ".txt"

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """One line per record."""
        return "|".join(map(str, row.values())).encode() + b"\n"


def any_sink(sink: Sink[str, str, str], df: DataFrame) -> None:
    """A sink of one's own, behind the same doors."""
    doors = SparkSink(sink)
    report: SinkReport = doors.write(df, txn_id="2026-01")
    query: StreamingQuery = doors.start(df, checkpoint_location="/data/checkpoint", available_now=True)
    df.writeStream.foreachBatch(doors.foreach_batch)
    print(report.rows, query.id, [one.batch_id for one in doors.recover()])


ledger = StoreLedger("s3://bucket/ledger", storage_options={"endpoint_url": "http://127.0.0.1:9000"})

events = KafkaSink("kafka:9092", ledger="/data/events-ledger")
kafka = KafkaCluster(
    "kafka:9093",
    client={"sasl.password": lambda: "from a vault", "linger.ms": 5},
    transaction_timeout="10 min",
    transaction_bytes="64MiB",
)
orders = KafkaSink(kafka, "orders", ledger=ledger, uid="orders")
unsent: list[str] = orders.sweep("7 days")

goods = PostgresSink("host=db dbname=shop", "shop.goods", ledger="/data/ledger", uid="goods")
prices = PostgresSink(
    PostgresServer("host=db", password=lambda: "from a vault"),
    PostgresTable("prices", keys=["id"], newest_by="at", on_missing="create", rehearsal="never"),
    ledger=ledger,
    on_new_query="append",
)
PostgresTable("prices", commit="prepared", staging_schema="loading")
PostgresTable("prices", keys=["id"], row_kind="kind", newest_by="at")
PostgresTable("prices", on_schema_change="apply", renamed={"price": "net"}, dropped=["note"])


def read_changes(kafka: DataFrame) -> DataFrame:
    """Messages as rows, and back."""
    rows: DataFrame = changes.debezium(kafka, "id BIGINT", order=["offset", kafka["timestamp"]])
    rows = rows.unionByName(changes.canal(kafka, "id BIGINT", value="body", on_malformed="raise"))
    rows = rows.unionByName(changes.maxwell(kafka, rows.schema, on_malformed="rescue"))
    rows = changes.debezium(kafka, "id BIGINT", on_schema_change="ignore")
    rows = rows.withColumn("kind", changes.row_kind(rows["op"])).where(f"kind <> '{RowKind.DELETE.value}'")
    changes.to_canal(changes.to_maxwell(rows, kind="kind"))
    return changes.to_debezium(rows)


removed: list[str] = prices.sweep("7 days")

collected = CollectSink(Path("/data/collected"), max_buffered_bytes="64MiB", client_timeout="1 min")
early = CollectSink("/data/collected", delivery="at_least_once").results(wait="1 min")
taken: CollectResults = collected.results(after="1:0@0a1b2c3d", wait=timedelta(minutes=1), acknowledge="read")
for taken_row in taken:
    print(taken_row["id"], taken.position, taken.is_complete)
behind: CollectPosition = taken.position
collected.results(behind, wait=False).to_pandas()

all_tables: BaseBucketAssigner = BucketAssigner.table_bucket_assigner(
    "table",
    path="${schema_name}/${table_name}",
    within=BucketAssigner.partition_bucket_assigner("day"),
    columns={"shop.orders": ["id", "price"]},
)
tables_policy = MetastoreTablesPolicy(
    "${schema_name}.${table_name}", SparkCatalog(), create=TableKind.EXTERNAL, on_broken_table="skip"
)
broken: Mapping[str, str] = tables_policy.broken


def together(orders: DataFrame, items: DataFrame, sink: FileSink) -> int:
    """Write two tables in one pass."""
    mapping = Tables({"shop.orders": orders, "shop.items": items}, column="table")
    found: Mapping[str, TableReport] = sink.write(mapping.df).tables
    return sum(one.rows for one in found.values())


own: FileSink = FileSink.for_row_format("/data/own", PipeEncoder()).build()


def batch(df: DataFrame) -> list[str]:
    """A batch write, repeatable under a name of the user's."""
    report: EpochReport = parquet.write(df, txn_id="2013-01")
    report = parquet.write(df, mode="overwrite_partitions")
    print(report.epoch, report.rows, report.bytes)
    return [f"{file.bucket}: {file.path} {file.rows} {file.bytes}" for file in report.files]


def stream(df: DataFrame) -> StreamingQuery:
    """A query of ours: it closes what is open when it ends by itself."""
    lines.start(df, checkpoint_location="/checkpoints/once", available_now=True).awaitTermination()
    hourly = lines.start(df, checkpoint_location="/checkpoints/hourly", available_now=True, at_end="keep")
    print([(report.visible_rows, report.open_rows, report.waiting_rows) for report in hourly.reports])
    return lines.start(
        df, checkpoint_location="/checkpoints/events", query_name="events", processing_time="10 seconds"
    )


def bare_stream(df: DataFrame) -> None:
    """The same by Spark's own means; finishing is the user's business."""
    query = df.writeStream.foreachBatch(lines.foreach_batch).option("checkpointLocation", "/c").start()
    query.awaitTermination()
    lines.finish()


def upkeep() -> None:
    """What operators call."""
    try:
        recovered = lines.recover(lost="rewrite", announce="skip", checkpoint_location="/checkpoints/events")
    except StagedDataLost as lost:
        print(lost.code, lost.message)
    except FilesinkError as error:
        print(error.code)
    else:
        print(recovered.published, recovered.lost_rows)
    print(lines.plan_sweep(timedelta(days=7)))
    lines.sweep(older_than="7 days")


def data_source(spark: SparkSession, df: DataFrame) -> None:
    """The convenient door."""
    register(spark)
    df.write.format("filesink").mode("append").option("path", "/data/x").option("format", "parquet").save()


# Small files are merged before anybody sees them.
compacted = (
    FileSink.for_bulk_format("/data/events", ParquetWriterFactory())
    .enable_compact(
        FileCompactStrategy(
            size_threshold="128MiB", checkpoints=5, max_age=timedelta(minutes=10), max_concurrent=2
        ),
        FileCompactor.record_wise_file_compactor(),
    )
    .build()
)
drained = FileSink.for_row_format("/data/x", Encoder.json_lines()).disable_compact().build()


def tidy_up(spark: SparkSession) -> DataFrame:
    """Visible files are merged, and readers get time."""
    planned: CompactionPlan = compaction.plan("/data/events", bucket="day=2024-01-01")
    if planned.files > 10:
        report: EpochReport | None = compaction.compact(
            "/data/events", ParquetWriterFactory(), target_size="128MiB", reader_grace=timedelta(hours=1)
        )
        amplification: float | None = report.write_amplification if report else None
        print(amplification)
    return spark.read.parquet(*compaction.files("/data/events"))


def read_back(yesterday: datetime) -> pa.Table:
    """What sinks have written, for who has no Spark."""
    directory: SinkDirectory = filesink.open("s3://bucket/trips", {"endpoint_url": "http://127.0.0.1:9000"})
    states: list[SinkState] = directory.sinks()
    print(directory.version, [(state.uid, state.slot, state.complete, state.open_rows) for state in states])
    for entry in directory.follow(17, until=20, wait=timedelta(seconds=5)):
        rows: int | None = entry.added[0].rows
        print(entry.id, entry.version, entry.epoch.source, entry.removed[:1], rows)
    for epoch in directory.epochs(after=17):
        one: Epoch = epoch
        print(one.version, one.kind, one.batch_id, one.visible, one.rows, one.bytes)
    snapshot: Snapshot = directory.snapshot(at=yesterday)
    newest: LiveFile = max(snapshot.files, key=lambda file: file.added)
    schema: pa.Schema = snapshot.schema
    print(snapshot.rows, snapshot.bytes, newest.path, newest.rows, schema.names, directory.schemas().keys())
    print(snapshot.to_pandas().describe(), snapshot.to_arrow().nbytes)
    dataset: Dataset = filesink.adopt("/data/old", progress=told).snapshot().dataset(on_other_schema="union")
    return dataset.to_table()


def told(step: str, done: int, total: int | None) -> None:
    """How far a check is."""
    print(step, f"{done} of {total or '?'}")


def on_call(path: Path) -> bool:
    """What somebody asks at night."""
    status: PathStatus = filesink.open(path).status(small_below="64MiB")
    held: Sequence[HeldPart] = status.held
    print(status.version, status.visible, status.small_share, status.damage)
    print([(part.sink, part.bucket, part.kind, part.rows, part.since) for part in held])
    report: FsckReport = filesink.fsck(
        path,
        depth="deep",
        progress=told,
        metastore=HiveMetastore("thrift://host:9083"),
        table="web.trips",
        exporters=[DeltaExport()],
    )
    worst: Finding | None = report.findings[0] if report.findings else None
    print(worst and (worst.code, worst.severity, worst.path, worst.meaning, worst.mend, worst.command))
    return report.is_good


# Reading: a sink's directory, any other, and rules of one's own.
class OnlyLarge(FileEnumerator):
    """A user's own choice of files."""

    def enumerate_files(self, roots: Sequence[Root]) -> Iterator[SourceFile]:
        """See ``FileEnumerator.enumerate_files``."""
        return (file for file in RecursiveFileEnumerator().enumerate_files(roots) if file.size > 1000)


class OneByOne(SplitAssigner):
    """A user's own grouping into tasks."""

    split_size = 1 << 20

    def assign(self, splits: Iterable[FileSplit]) -> list[list[FileSplit]]:
        """See ``SplitAssigner.assign``."""
        return [[split] for split in splits]


def data_frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """A batch and a stream, with everything that can be chosen."""
    trips = (
        FileSource.for_bulk_file_format(ParquetWriterFactory(), "/data/trips", Path("/data/more"))
        .set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator())
        .set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
        .with_metadata_columns("_file", "_version")
        .with_merged_schema()
        .as_of(datetime(2026, 1, 31, tzinfo=UTC))
        .on_missing_file("ignore")
        .process_static_file_set()
        .build()
    )
    lines = (
        FileSource.for_record_stream_format(text, "s3://bucket/in/*.txt")
        .set_file_enumerator(OnlyLarge())
        .set_split_assigner(OneByOne())
        .set_split_assigner(SizeSplitAssigner(task_size="64MiB"))
        .monitor_continuously(timedelta(seconds=10))
        .with_schema("value STRING")
        .with_storage_options(endpoint_url="http://localhost:9000")
        .with_state_location("/data/state", endpoint_url="http://localhost:9000")
        .with_max_files_per_trigger(1000)
        .with_max_bytes_per_trigger("1GiB")
        .with_min_file_age("5 s")
        .after_reading("move", move_to="/data/done")
        .on_bad_record("PERMISSIVE")
        .starting_at("latest")
        .on_overwrite("new_rows")
        .build()
    )
    return trips.read(spark), lines.read_stream(spark)
