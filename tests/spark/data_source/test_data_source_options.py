"""Options of the data source: each does what it says, and nothing that is wrong goes unnoticed."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from filesink import ConfigError, RepeatedTxnError, RollingPolicy
from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext
from filesink.commit.replay import OnRepeatedTxn, OnReplayMismatch, check_same_data
from filesink.data_source.door_words import in_words_of_options, translated
from filesink.data_source.options import DataSourceOptions, parse_options
from filesink.data_source.source import FileSinkDataSource
from filesink.ledger.record import EMPTY, BatchWrite, EpochRecord
from filesink.metastore.api import TableKind
from filesink.parts.file_format import BulkFormat, RowFormat
from formats import (
    ArrowWriterFactory,
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
)

DECIDED = {
    "slot": 0, "nonce": "n", "sink_id": "s", "cause": BatchWrite(txn_id="t", remembered_in="txn-1"),
    "last_batch": None, "decided_ms": 0, "rows": 1, "committables": EMPTY,
}  # fmt: skip
AVRO_SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}'


def parsed(**options: str) -> DataSourceOptions:
    """Options as Spark hands them over: names in lower case, values as text."""
    return parse_options({"path": "/data/out"} | {name.lower(): text for name, text in options.items()})


def code_of(**options: str) -> str:
    """The code of the refusal."""
    with pytest.raises(ConfigError) as refused:
        parsed(**options)
    return refused.value.code


def test_a_table_and_its_metastore_go_together():
    """Both or neither; what could never be reached is refused before Spark does anything."""
    uri = "thrift://metastore:9083"
    table = parsed(table="db.t", metastore=uri).table
    assert table is not None
    assert (table.name, table.metastore, table.base_path) == ("db.t", uri, "/data/out")
    assert parsed().table is None
    assert code_of(table="db.t") == "CONFLICT"
    assert code_of(metastore=uri) == "CONFLICT"
    assert code_of(table="t", metastore=uri) == "TABLE_NAME"
    assert code_of(table="db.t", metastore="metastore:9083") == "METASTORE_URI"
    with pytest.raises(ConfigError, match="did you mean 'metastore'"):
        parsed(metastoreUri=uri)


def test_a_table_is_made_and_extended_if_that_is_wanted():
    """By default neither; words of other sinks lead to the option; without a table they make no sense."""
    given = {"table": "db.t", "metastore": "thrift://metastore:9083"}
    plain = parsed(**given).table
    assert (plain.create, plain.on_new_columns) == (None, "refuse")
    asked = parsed(**given, createTable="External", onNewColumns="add").table
    assert (asked.create, asked.on_new_columns) == (TableKind.EXTERNAL, "add")
    assert parsed(**given, createTable="managed").table.create is TableKind.MANAGED
    assert code_of(**given, createTable="true") == "BAD_VALUE"
    assert code_of(**given, onNewColumns="ignore") == "BAD_VALUE"
    assert code_of(createTable="managed") == "CONFLICT"
    with pytest.raises(ConfigError, match="did you mean 'onNewColumns'"):
        parsed(**given, mergeSchema="true")


def test_defaults():
    """Without options: Parquet, directly below the path, one part per task and epoch."""
    options = parsed()
    builder = options.builder
    assert isinstance(builder.format, BulkFormat)
    assert builder.assigner == BucketAssigner.base_path_bucket_assigner()
    assert builder.policy == RollingPolicy.on_checkpoint_rolling_policy()
    assert (builder.base_path, builder.uid, options.txn_id, options.time_zone) == (
        "/data/out",
        None,
        "",
        None,
    )
    assert builder.names.suffix(".parquet") == ".parquet"


@pytest.mark.parametrize(
    ("options", "encoder"),
    [
        ({"format": "json"}, Encoder.json_lines()),
        ({"format": "JSON"}, Encoder.json_lines()),
        ({"format": "text"}, Encoder.simple_string_encoder()),
        ({"format": "text", "charset": "ISO-8859-1"}, Encoder.simple_string_encoder("ISO-8859-1")),
        ({"format": "csv"}, Encoder.csv()),
        ({"format": "csv", "delimiter": ";"}, Encoder.csv(";")),
        ({"format": "csv", "delimiter": "\\t"}, Encoder.csv("\t")),
        ({"format": "csv", "header": "True"}, Encoder.csv(header=True)),
        ({"format": "csv", "header": "false"}, Encoder.csv()),
        ({"format": "csv", "dialect": "Spark"}, Encoder.csv(dialect="spark")),
        ({"format": "csv", "quote": "'", "escape": "'"}, Encoder.csv(quote="'", escape="'")),
        ({"format": "csv", "quoteAll": "true"}, Encoder.csv(quote_mode="all")),
        ({"format": "csv", "nullValue": "NA"}, Encoder.csv(null_value="NA")),
        ({"format": "csv", "charset": "UTF-16-LE"}, Encoder.csv(charset="UTF-16-LE")),
        ({"format": "csv", "dateFormat": "dd.MM."}, Encoder.csv(date_format="dd.MM.")),
        ({"format": "csv", "timestampFormat": "HH"}, Encoder.csv(timestamp_format="HH")),
        ({"format": "json", "compression": "none"}, Encoder.json_lines()),
    ],
    ids=str,
)
def test_row_formats(options, encoder):
    """Each option of a row format reaches its encoder."""
    found = parsed(**options).builder.format
    assert isinstance(found, RowFormat)
    assert found.encoder.signature() == encoder.signature()


@pytest.mark.parametrize(
    ("options", "factory"),
    [
        ({"compression": "ZSTD"}, ParquetWriterFactory(compression="zstd")),
        (
            {"compression": "zstd", "compressionLevel": "7"},
            ParquetWriterFactory(compression="zstd", compression_level=7),
        ),
        ({"rowGroupRows": "1000"}, ParquetWriterFactory(row_group_rows=1000)),
        ({"rowGroupSize": "8MiB"}, ParquetWriterFactory(row_group_size="8MiB")),
        ({"rowGroupSize": "1000"}, ParquetWriterFactory(row_group_size=1000)),  # as .option(…, 1000) arrives
        ({"format": "orc"}, OrcBulkWriterFactory()),
        ({"format": "orc", "compression": "zlib"}, OrcBulkWriterFactory(compression="zlib")),
        ({"format": "orc", "stripeSize": "8MiB"}, OrcBulkWriterFactory(stripe_size="8MiB")),
        ({"format": "avro", "compression": "null"}, AvroWriterFactory(compression="null")),
        (
            {"format": "avro", "compression": "deflate", "compressionLevel": "9"},
            AvroWriterFactory(compression="deflate", compression_level=9),
        ),
        ({"format": "avro", "blockSize": "1MiB"}, AvroWriterFactory(block_size="1MiB")),
        ({"format": "avro", "avroSchema": AVRO_SCHEMA}, AvroWriterFactory(schema=AVRO_SCHEMA)),
        ({"format": "arrow", "compression": "none"}, ArrowWriterFactory(compression="none")),
        (
            {"format": "json", "compression": "GZIP", "compressionLevel": "9"},
            CompressWriterFactory(encoder=Encoder.json_lines(), codec="gzip", level=9),
        ),
        (
            {"format": "csv", "header": "true", "compression": "zstd"},
            CompressWriterFactory(encoder=Encoder.csv(header=True), codec="zstd"),
        ),
        (
            {"format": "sequencefile", "keyColumn": "k", "valueColumn": "v", "compressionType": "none"},
            SequenceFileWriterFactory(key="k", value="v", compression="none"),
        ),
        (
            {"format": "sequencefile", "compression": "bzip2"},
            SequenceFileWriterFactory(codec="bzip2"),
        ),
        ({"format": "arrow", "recordBatchSize": "1MiB"}, ArrowWriterFactory(batch_size="1MiB")),
    ],
    ids=str,
)
def test_bulk_formats(options, factory):
    """Each option of a bulk format reaches the writer."""
    found = parsed(**options).builder.format
    assert isinstance(found, BulkFormat)
    assert found.factory.signature() == factory.signature()


def test_buckets():
    """Columns or time; with the time zone checked here and used by the tasks."""
    by_columns = parsed(bucketColumns="dt, country").builder.assigner
    assert by_columns == BucketAssigner.partition_bucket_assigner("dt", "country")
    kept = parsed(bucketColumns="dt", bucketColumnsInFile="true").builder.assigner
    assert kept == BucketAssigner.partition_bucket_assigner("dt").with_columns_in_file()
    by_time = parsed(bucketTimeFormat="yyyy", bucketTimeColumn="ts", timeZone="Asia/Tokyo")
    assert by_time.builder.assigner == BucketAssigner.date_time_bucket_assigner("yyyy", column="ts")
    assert by_time.time_zone == "Asia/Tokyo"
    default = parsed(bucketTimeColumn="ts").builder.assigner
    assert default == BucketAssigner.date_time_bucket_assigner(column="ts")
    assert BucketContext(processing_time_ms=0, time_zone=by_time.time_zone)


def test_rolling_names_and_identity():
    """The rest reaches the builder."""
    options = parsed(
        partSize="1MiB", maxRows="10", partPrefix="flights", partSuffix=".pq", uid="f", txnId="2024-01-01",
        onNewQuery="append", onReplayMismatch="keep_first", onRepeatedTxn="Skip",
    )  # fmt: skip
    builder = options.builder
    assert builder.policy == RollingPolicy.on_checkpoint_rolling_policy("1MiB", 10)
    assert builder.names.name_with("x", 0, builder.names.suffix(".parquet")) == "flights-x-0.pq"
    assert parsed(partSuffix="").builder.names.suffix(".parquet") == ""
    assert (builder.uid, options.txn_id) == ("f", "2024-01-01")
    assert options.on_repeated_txn is OnRepeatedTxn.SKIP
    assert parsed(txnId="t").on_repeated_txn is parsed(onRepeatedTxn="raise").on_repeated_txn
    assert builder.epochs.on_new_query.value == "append"
    assert builder.epochs.on_replay_mismatch is OnReplayMismatch.KEEP_FIRST


def test_a_reader_grace_reaches_the_sink():
    """Text with a unit; by default there is none."""
    assert parsed(readerGrace="1 h").builder.tiers().reader_grace_ms == 3_600_000
    assert parsed(readerGrace="0 ms").builder.tiers().reader_grace_ms == 0
    assert parsed().builder.tiers().reader_grace_ms == 0


def test_history_retention_reaches_the_sink():
    """Text with a unit; what is not given is the builder's default."""
    day_ms = 86_400_000
    assert parsed(historyRetention="90 d").builder.tiers().history_ms == 90 * day_ms
    assert parsed().builder.tiers().history_ms == 30 * day_ms


def test_sparks_own_options_are_known():
    """What Spark itself puts among the options is not unknown."""
    assert parsed(checkpointLocation="/cp", queryName="q", asyncProgressTrackingEnabled="false")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"path": ""}, "PATH_REQUIRED"),
        ({"path": "s3://user:secret@bucket/x"}, "CREDENTIALS"),
        ({"path": "foo://x"}, "SCHEME"),
        ({"format": "feather"}, "BAD_VALUE"),
        ({"format": ""}, "BAD_VALUE"),
        ({"compression": "lzo"}, "BAD_VALUE"),
        ({"compressionLevel": "high"}, "BAD_VALUE"),
        ({"rowGroupRows": "0"}, "BAD_VALUE"),
        ({"rowGroupSize": "big"}, "BAD_VALUE"),
        ({"partSize": "abc"}, "BAD_VALUE"),
        ({"partSize": "0"}, "BAD_VALUE"),
        ({"partSize": "-1"}, "BAD_VALUE"),
        ({"partSize": "1e400"}, "BAD_VALUE"),
        ({"partSize": "NaN"}, "BAD_VALUE"),
        ({"maxRows": "0"}, "BAD_VALUE"),
        ({"maxRows": "1.5"}, "BAD_VALUE"),
        ({"maxRows": "²"}, "BAD_VALUE"),
        ({"partPrefix": "_x"}, "BAD_VALUE"),
        ({"partPrefix": ""}, "BAD_VALUE"),
        ({"partSuffix": "pq"}, "BAD_VALUE"),
        ({"uid": "a/b"}, "BAD_VALUE"),
        ({"uid": ""}, "BAD_VALUE"),
        ({"txnId": ""}, "BAD_VALUE"),
        ({"txnId": "t", "onRepeatedTxn": "ignore"}, "BAD_VALUE"),
        ({"txnId": "t", "onRepeatedTxn": "replace"}, "USE_FILESINK"),
        ({"onRepeatedTxn": "skip"}, "CONFLICT"),
        ({"onNewQuery": "ignore"}, "BAD_VALUE"),
        ({"historyRetention": "90"}, "BAD_VALUE"),
        ({"historyRetention": "0 d"}, "BAD_VALUE"),
        ({"readerGrace": "1"}, "BAD_VALUE"),
        ({"readerGrace": "400000 d"}, "BAD_VALUE"),
        ({"onReplayMismatch": "ignore"}, "BAD_VALUE"),
        ({"partitionOverwriteMode": "all"}, "BAD_VALUE"),
        ({"timeZone": "Mars/Olympus"}, "TIME_ZONE"),
        ({"bucketColumns": ""}, "BAD_VALUE"),
        ({"bucketColumns": "a,,b"}, "BAD_VALUE"),
        ({"bucketColumns": "a,A"}, "BAD_VALUE"),
        ({"bucketColumns": "a", "bucketColumnsInFile": "yes"}, "BAD_VALUE"),
        ({"bucketColumnsInFile": "true"}, "CONFLICT"),
        ({"bucketColumns": "a", "bucketTimeFormat": "yyyy"}, "CONFLICT"),
        ({"bucketColumns": "a", "bucketTimeColumn": "ts"}, "CONFLICT"),
        ({"bucketTimeFormat": "yyyy'"}, "BAD_VALUE"),
        ({"delimiter": ";"}, "CONFLICT"),
        ({"format": "json", "compression": "brotli"}, "BAD_VALUE"),
        ({"format": "json", "compressionLevel": "3"}, "BAD_VALUE"),
        ({"format": "json", "charset": "UTF-8"}, "CONFLICT"),
        ({"format": "csv", "timestampFormat": "EEE"}, "BAD_VALUE"),
        ({"format": "sequencefile", "compressionType": "all"}, "BAD_VALUE"),
        ({"format": "csv", "delimiter": '"'}, "BAD_VALUE"),
        ({"format": "csv", "header": "1"}, "BAD_VALUE"),
        ({"format": "text", "charset": "klingon"}, "BAD_VALUE"),
        ({"asyncProgressTrackingEnabled": "true"}, "TRIGGER"),
        ({"checkpointLocation": "/data/out/checkpoint"}, "CHECKPOINT"),
    ],
    ids=str,
)
def test_bad_values(options, code):
    """Every bad value is refused by name, and no secret is repeated."""
    with pytest.raises(ConfigError) as refused:
        parsed(**options)
    assert refused.value.code == code
    assert "secret" not in str(refused.value)


IDS = StructType().add("id", "long")


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partSize": "128 MiBs"}, "option 'partSize' must be a size"),
        ({"partPrefix": "_x"}, "option 'partPrefix'"),
        ({"historyRetention": "90"}, "option 'historyRetention'"),
        ({"onNewQuery": "ignore"}, "option 'onNewQuery' must be"),
        ({"onReplayMismatch": "ignore"}, "option 'onReplayMismatch' must be"),
        ({"format": "parquet", "rowGroupSize": "0"}, "option 'rowGroupSize'"),
    ],
)
def test_errors_of_the_sink_name_options(options: dict[str, str], words: str, *, is_stream: bool) -> None:
    """Not the parameters of Python that they stand for."""
    source = FileSinkDataSource({"path": "/data/out", **options})
    with pytest.raises(ConfigError) as refused:
        (source.streamWriter if is_stream else source.writer)(IDS, False)  # noqa: FBT003 - Spark's signature
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Start again, or allow it with on_new_query='append'", "allow it with option onNewQuery='append'"),
        ("Start again, or allow it with .on_new_query('append')", "allow it with option onNewQuery='append'"),
        ("set .on_replay_mismatch('keep_first')", "set option onReplayMismatch='keep_first'"),
        (
            "replace everything with mode='overwrite', or allow both with .on_other_layout('allow')",
            "with .mode('overwrite'), or allow both with option onOtherLayout='allow'",
        ),
        ("txn_id 't' was written before", "txnId 't' was"),
        ("set FileSink….on_bad_record(DeadLetters())", "FileSink….on_bad_record(DeadLetters())"),
    ],
)
def test_ways_out_are_those_of_this_door(message: str, words: str) -> None:
    """What the sink says to do can be done where it is read, and what it cannot do stays as it is."""
    assert words in translated(message)


def test_a_repeat_with_other_data_is_not_told_to_do_what_this_door_refuses() -> None:
    """``replace`` is for ``FileSink`` alone."""
    with pytest.raises(RepeatedTxnError) as refused, in_words_of_options():
        check_same_data(EpochRecord(**DECIDED), 2, "")
    assert "keep the files of the earlier write with option onRepeatedTxn='skip'" in refused.value.message
    assert "FileSink.write(df, txn_id=…, on_repeated_txn='replace')" in refused.value.message
    assert refused.value.code == "OTHER_DATA"


@pytest.mark.parametrize(
    ("method", "options", "named"),
    [
        ("writer", {"checkpointLocation": "/cp"}, "checkpointLocation"),
        ("writer", {"queryname": "q"}, "queryName"),
        ("streamWriter", {"partitionOverwriteMode": "dynamic"}, "partitionOverwriteMode"),
        ("reader", {"startingVersion": "1"}, "startingVersion"),
        ("reader", {"startingversion": "latest"}, "startingVersion"),
        ("reader", {"maxFilesPerTrigger": "1"}, "maxFilesPerTrigger"),
        ("reader", {"afterReading": "delete"}, "afterReading"),
        ("streamReader", {"versionAsOf": "1"}, "versionAsOf"),
        ("streamReader", {"timestampAsOf": "2026-01-01"}, "timestampAsOf"),
    ],
)
def test_an_option_that_would_mean_nothing_is_refused(
    method: str, options: dict[str, str], named: str
) -> None:
    """What is for a stream does nothing for a batch, and nobody would know."""
    source = FileSinkDataSource({"path": "/data/out", **options})
    arguments = (IDS, False) if method.lower().endswith("writer") else (IDS,)
    with pytest.raises(ConfigError, match=f"option '{named}'") as refused:
        getattr(source, method)(*arguments)
    assert refused.value.code == "CONFLICT"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("roll_size", "partSize"),
        ("rollSize", "partSize"),
        ("part_size", "partSize"),
        ("partSise", "partSize"),
        ("buckets", "bucketColumns"),
        ("partitionBy", "bucketColumns"),
        ("partition_by", "bucketColumns"),
        ("sep", "delimiter"),
        ("field_delimiter", "delimiter"),
        ("compress_codec", "compression"),
        ("filename_extension", "partSuffix"),
        ("maxRecordsPerFile", "maxRows"),
        ("txnAppId", "uid"),
        ("sink.rolling-policy.file-size", "partSize"),
    ],
)
def test_an_unknown_option_names_the_one_that_was_meant(name, meant):
    """Misspellings, and the words of Spark, Delta, SeaTunnel and Flink."""
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'") as refused:
        parsed(**{name: "1"})
    assert refused.value.code == "UNKNOWN_OPTION"
    assert name.lower() in str(refused.value)


def test_an_option_like_no_other_lists_what_there_is():
    """Without a likely candidate the message lists the options."""
    with pytest.raises(ConfigError, match="bucketTimeColumn"):
        parsed(zzzz="1")


@pytest.mark.parametrize(
    "name",
    [
        "rolloverInterval",
        "inactivityInterval",
        "bucketCheckInterval",
        "sink.rolling-policy.rollover-interval",
        "rollingPolicy",
        "compact",
        "compactSizeThreshold",
        "auto-compaction",
        "sink.partition-commit.trigger",
        "watermarkColumn",
        "catalogTable",
        "bucketExpression",
        "encoder",
        "bucketAssigner",
        "writerFactory",
    ],
)
def test_what_this_door_cannot_do_points_to_the_other(name):
    """Parts across epochs, compaction, time and code of the user's own: use FileSink."""
    with pytest.raises(ConfigError, match=r"use FileSink\.for_row_format") as refused:
        parsed(**{name: "1"})
    assert refused.value.code == "USE_FILESINK"
