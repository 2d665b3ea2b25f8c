"""Every option of writing with ``format("filesink")``: what it takes, its default, and what it means.

``python docs/site/tables.py`` writes the table of docs/data-source.md from it. Meanings are Markdown, with
links as of that page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Option:
    """One option, as users spell it.

    Attributes:
        name: as in the documentation; upper and lower case are alike.
        takes: the kind of its text, or its words, in Markdown.
        default: what holds without it, in Markdown; the text itself if it is one code span.
        meaning: what it does, in Markdown.
    """

    name: str
    takes: str
    default: str
    meaning: str


FLAG: Final = "`true`, `false`"

WRITING: Final = (
    Option("path", "path", "required", "base directory, or the argument of `save` and `start`"),
    Option(
        "format",
        "`parquet`, `orc`, `avro`, `arrow`, `sequencefile`, `json`, `csv`, `text`",
        "`parquet`",
        "format of the files; `json` is JSON lines, `text` takes one column",
    ),
    Option("bucketColumns", "columns", "none", "Hive partitions: `day,country` makes `day=…/country=…`"),
    Option("bucketColumnsInFile", FLAG, "`false`", "whether these columns are also in the files"),
    Option(
        "bucketTimeFormat",
        "Java pattern",
        "`yyyy-MM-dd--HH` if `bucketTimeColumn` is set",
        "directory by time; excludes `bucketColumns`",
    ),
    Option(
        "bucketTimeColumn",
        "column",
        "the time of writing",
        "timestamp or date column that names the directory; [nulls](part-files.md#buckets)",
    ),
    Option("timeZone", "zone", "the session's", "of time buckets, and of timestamps in `bucketColumns`"),
    Option("partSize", "size", "none", "closes a larger part: `128MiB`"),
    Option("maxRows", "number", "none", "closes a part with so many rows"),
    Option("partPrefix", "text", "`part`", "beginning of file names"),
    Option("partSuffix", "text", "the format's", "end of file names, such as `.snappy.parquet`"),
    Option(
        "uid",
        "name",
        "none; streams: the query id",
        "stable [name of the sink](recovery.md#who-may-write-here)",
    ),
    Option(
        "txnId",
        "name",
        "none",
        "batch: your name of this data, written once per path and `uid`. Another number of rows is refused "
        "(`OTHER_DATA`)",
    ),
    Option(
        "onRepeatedTxn",
        "`raise`, `skip`",
        "`raise`",
        "the same `txnId` with other data: `skip` keeps the first data and compares nothing",
    ),
    Option(
        "partitionOverwriteMode",
        "`static`, `dynamic`",
        "the session's, else `static`",
        "batch: `overwrite` replaces all data (`static`), or the buckets that get data (`dynamic`)",
    ),
    Option("table", "`database.table`", "none", "table to which partitions are [announced](publishing.md)"),
    Option("metastore", "`thrift://host:9083`, …", "none", "metastore of `table`; needs `filesink[hive]`"),
    Option("createTable", "`never`, `external`, `managed`", "`never`", "whether a missing `table` is made"),
    Option("onNewColumns", "`refuse`, `add`", "`refuse`", "`add` adds new columns to `table`"),
    Option(
        "onNewQuery",
        "`refuse`, `append`, `replace`",
        "`refuse`",
        "stream: `append` lets [a new checkpoint](recovery.md#who-may-write-here) in, `replace` in the place "
        "of all that is there",
    ),
    Option(
        "onOtherLayout",
        "`refuse`, `allow`",
        "`refuse`",
        "`allow` lets [another layout](save-modes.md#one-layout) in",
    ),
    Option("historyRetention", "duration", "`30 d`", "how long the [inventory](inventory.md) remembers"),
    Option(
        "readerGrace",
        "duration",
        "`0 ms`",
        "batch: how long replaced files [stay](save-modes.md#old-files-for-readers-who-hold-a-snapshot)",
    ),
    Option(
        "onReplayMismatch",
        "`raise`, `keep_first`",
        "`raise`",
        "stream: `keep_first` [keeps](exactly-once.md#when-a-batch-comes-again) the first batch",
    ),
    Option(
        "compression",
        "codec",
        "Parquet, Avro `snappy`; ORC, Arrow `zstd`; SequenceFile `zlib`; JSON, CSV, text `none`",
        "a codec of the [format](formats.md)",
    ),
    Option("compressionLevel", "number", "the codec's", "Parquet, Avro, JSON, CSV, text"),
    Option("rowGroupRows", "number", "`1048576`", "Parquet: rows of a row group"),
    Option("rowGroupSize", "size", "`64MiB`", "Parquet: memory of a row group"),
    Option("stripeSize", "size", "`64MiB`", "ORC: memory of a stripe"),
    Option("blockSize", "size", "`256KiB`", "Avro: block before compression"),
    Option("avroSchema", "JSON", "from the columns", "Avro: your schema; needs `filesink[avro]`"),
    Option("recordBatchSize", "size", "`16MiB`", "Arrow: memory of a record batch"),
    Option("delimiter", "text", "`,`", "CSV: between fields; `\\t` is a tab"),
    Option("header", FLAG, "`false`", "CSV: whether names of columns come first"),
    Option("quote", "character", '`"`', "CSV: around fields that need it"),
    Option(
        "dialect",
        "`rfc4180`, `spark`",
        "`rfc4180`",
        "CSV: [how](formats.md#json-lines-csv-and-text) quotes are escaped",
    ),
    Option("escape", "character", "that of the dialect", "CSV: before a quote inside quotes"),
    Option("quoteAll", FLAG, "`false`", "CSV: whether all fields are quoted"),
    Option("nullValue", "text", "nothing", "CSV: text of a null"),
    Option(
        "dateFormat", "pattern", "ISO 8601", "CSV: a [pattern](formats.md#json-lines-csv-and-text) of dates"
    ),
    Option("timestampFormat", "pattern", "ISO 8601", "CSV: of both kinds of timestamps"),
    Option("charset", "charset", "`UTF-8`", "CSV, text"),
    Option("keyColumn", "column", "none", "SequenceFile: column of keys"),
    Option("valueColumn", "column", "the other column", "SequenceFile: column of values"),
    Option(
        "compressionType", "`none`, `record`, `block`", "`block`", "SequenceFile: what is compressed together"
    ),
)
