"""Options of ``format("filesink")``: from Spark's dict of lower-cased names and texts to typed values.

Rules: everything is text, as in Spark; a name is told apart regardless of case; nothing is ignored.
What this door cannot do is refused by name and points to ``FileSink``. ``option_table`` says what
each option means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BaseBucketAssigner
from filesink.commit.checkpoints import check_checkpoint
from filesink.commit.replay import OnRepeatedTxn
from filesink.data_source.format_options import parse_format
from filesink.data_source.hive_table import HiveTable, table_of
from filesink.data_source.option_table import WRITING
from filesink.data_source.option_texts import Texts
from filesink.errors import ConfigError
from filesink.local_time import time_zone
from filesink.naming import OutputFileConfig
from filesink.parts.rolling import RollingPolicy
from filesink.save_mode import SaveMode
from filesink.sink import FileSink, FileSinkBuilder
from formats.api import BaseEncoder

#: Every option of ours, as users spell it.
NAMES = tuple(option.name for option in WRITING)
_SPARKS = ("checkpointLocation", "queryName")
# What users of Spark, SeaTunnel and Flink may try first.
_MEANT = {
    "sep": "delimiter",
    "fielddelimiter": "delimiter",
    "enableheaderwrite": "header",
    "encoding": "charset",
    "codec": "compression",
    "compresscodec": "compression",
    "fileformattype": "format",
    "partitionby": "bucketColumns",
    "bucketby": "bucketColumns",
    "batchsize": "maxRows",
    "maxrecordsperfile": "maxRows",
    "rollsize": "partSize",
    "sinkrollingpolicyfilesize": "partSize",
    "filenameextension": "partSuffix",
    "filenameexpression": "partPrefix",
    "txnappid": "uid",
    "txnversion": "txnId",
    "tablename": "table",
    "metastoreuri": "metastore",
    "metastoreuris": "metastore",
    "hivemetastoreuris": "metastore",
    "create": "createTable",
    "createtableifnotexists": "createTable",
    "mergeschema": "onNewColumns",
    "schemaevolution": "onNewColumns",
}
# A part of an unknown name, and the feature it stands for.
_REFUSED = {
    "compact": "compaction",
    "interval": "rolling without data",
    "rollingpolicy": "a rolling policy of your own",
    "listener": "a listener",
    "export": "an export",
    "notification": "a notification",
    "retention": "retention",
    "partitioncommit": "announcing partitions by their time",
    "watermark": "announcing partitions by their time",
    "catalog": "publishing to Spark's catalog",
    "expression": "buckets by an expression",
    "encoder": "an encoder of your own",
    "assigner": "a bucket assigner of your own",
    "writerfactory": "a format of your own",
}
_REPEATED = {"raise": OnRepeatedTxn.RAISE, "skip": OnRepeatedTxn.SKIP}
_OVERWRITE_MODES = {"static": SaveMode.OVERWRITE, "dynamic": SaveMode.OVERWRITE_PARTITIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSourceOptions:
    """What a user has chosen.

    Attributes:
        builder: everything that ``FileSink`` can choose, too.
        txn_id: the user's name for the data of a batch write, or ``""``.
        on_repeated_txn: what happens if ``txn_id`` comes back with other data.
        time_zone: for buckets; ``None`` for the session's.
        by_clock: whether the moment of writing names buckets.
        overwrite_mode: what ``.mode("overwrite")`` does; ``None`` for what the session says.
        table: the table to which partitions are announced, if any.
    """

    builder: FileSinkBuilder
    txn_id: str
    on_repeated_txn: OnRepeatedTxn
    time_zone: str | None
    by_clock: bool
    overwrite_mode: SaveMode | None
    table: HiveTable | None


def parse_options(options: Mapping[str, str]) -> DataSourceOptions:
    """The options of one write.

    Args:
        options: as Spark hands them over, Spark's own and the path included.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``UNKNOWN_OPTION``, ``USE_FILESINK``, ``CONFLICT``, ``BAD_VALUE`` …
    """
    given = Texts({name.lower(): text for name, text in options.items()})
    _check_names(given.texts)
    policy = RollingPolicy.on_checkpoint_rolling_policy(given.size("partSize"), given.number("maxRows"))
    names = OutputFileConfig(**given.given(part_prefix="partPrefix", part_suffix="partSuffix"))
    builder = _with_format(given, _path(given)).with_bucket_assigner(_assigner(given))
    builder = builder.with_rolling_policy(policy).with_output_file_config(names)
    check_checkpoint(given.get("checkpointLocation", ""), builder.base_path)
    zone, txn_id = given.get("timeZone"), given.get("txnId")
    if zone is not None:
        time_zone(zone)
    if txn_id == "":
        raise given.bad("txnId", "your name for the data, or left out")
    return DataSourceOptions(
        builder=_with_identity(given, builder),
        txn_id=txn_id or "",
        on_repeated_txn=_repeated(given),
        time_zone=zone,
        by_clock=bool(given.get("bucketTimeFormat")) and not given.get("bucketTimeColumn"),
        overwrite_mode=_overwrite_mode(given),
        table=table_of(given, builder.base_path),
    )


def check_batch_write(options: Mapping[str, str]) -> None:
    """Raise ``ConfigError`` (``CONFLICT``) for an option of Spark's that means nothing for a batch."""
    for name in _SPARKS:
        if any(given.lower() == name.lower() for given in options):
            raise ConfigError(
                f"option '{name}' is for streams, and this is a batch write, which it does not make "
                "repeatable. Remove it; 'txnId' has a batch written once",
                code="CONFLICT",
            )


def _repeated(given: Texts) -> OnRepeatedTxn:
    name = "onRepeatedTxn"
    if given.get(name, "").lower() == OnRepeatedTxn.REPLACE.value:
        raise ConfigError(
            f"option '{name}': 'replace' is not possible with format('filesink'), whose tasks only count the "
            "rows of a known txnId; use FileSink.write(df, txn_id=…, on_repeated_txn='replace')",
            code="USE_FILESINK",
        )
    chosen = given.choice(name, _REPEATED, default="raise")
    if chosen is OnRepeatedTxn.SKIP and given.get("txnId") is None:
        raise ConfigError(
            f"option '{name}' is about a repeated txnId: give 'txnId', too, or leave '{name}' out",
            code="CONFLICT",
        )
    return chosen


def _overwrite_mode(given: Texts) -> SaveMode | None:
    name = "partitionOverwriteMode"
    return None if given.get(name) is None else given.choice(name, _OVERWRITE_MODES, default="")


def _with_identity(given: Texts, builder: FileSinkBuilder) -> FileSinkBuilder:
    uid, retention = given.get("uid"), given.get("historyRetention")
    builder = builder if uid is None else builder.with_uid(uid)
    builder = builder if retention is None else builder.with_history_retention(retention)
    grace = given.get("readerGrace")
    builder = builder if grace is None else builder.with_reader_grace(grace)
    builder = builder.on_new_query(cast("Any", given.get("onNewQuery", "refuse")))
    builder = builder.on_replay_mismatch(cast("Any", given.get("onReplayMismatch", "raise")))
    return builder.on_other_layout(cast("Any", given.get("onOtherLayout", "refuse")))


def _check_names(options: Mapping[str, str]) -> None:
    known = {name.lower() for name in (*NAMES, *_SPARKS)}
    if str(options.get("asyncprogresstrackingenabled", "false")).lower() != "false":
        raise ConfigError(
            "asynchronous progress tracking cannot be exactly-once; remove option "
            "'asyncProgressTrackingEnabled'",
            code="TRIGGER",
        )
    for name in options:
        if name not in known and not name.startswith("asyncprogresstracking"):
            raise _unknown(name)


def _unknown(name: str) -> ConfigError:
    plain = "".join(letter for letter in name if letter.isalnum())
    meant = _MEANT.get(plain)
    if meant is None:
        for part, feature in _REFUSED.items():
            if part in plain:
                return ConfigError(
                    f"option '{name}': {feature} is not possible with format('filesink'), whose commit keeps "
                    "nothing between epochs and runs no code of yours; use FileSink.for_row_format(…) or "
                    "FileSink.for_bulk_format(…) instead",
                    code="USE_FILESINK",
                )
        by_plain = {known.lower(): known for known in NAMES}
        close = get_close_matches(plain, by_plain, n=1)
        meant = by_plain[close[0]] if close else None
    hint = f"did you mean '{meant}'?" if meant else f"known are {', '.join(NAMES)}"
    return ConfigError(f"'{name}' is not an option of format('filesink'); {hint}", code="UNKNOWN_OPTION")


def _path(given: Texts) -> str:
    path = given.get("path")
    if not path:
        raise ConfigError(
            "option 'path' is required and missing: call .save('/data/out') or .start('/data/out'), or set "
            ".option('path', …). Tables of a catalog are not supported: Spark hands on neither their options "
            "nor their location. In SQL, use CREATE TEMPORARY VIEW … USING filesink OPTIONS (path '…')",
            code="PATH_REQUIRED",
        )
    return path


def _with_format(given: Texts, path: str) -> FileSinkBuilder:
    code = parse_format(given)
    if isinstance(code, BaseEncoder):
        return FileSink.for_row_format(path, code)
    return FileSink.for_bulk_format(path, code)


def _assigner(given: Texts) -> BaseBucketAssigner:
    columns = given.get("bucketColumns")
    by_time = given.given(format_str="bucketTimeFormat", column="bucketTimeColumn")
    if columns is not None and by_time:
        raise ConfigError(
            "'bucketColumns' and 'bucketTimeFormat' or 'bucketTimeColumn' exclude each other: a record has "
            "one bucket. Remove one of them",
            code="CONFLICT",
        )
    if by_time:
        return BucketAssigner.date_time_bucket_assigner(**by_time)
    if columns is None:
        if given.get("bucketColumnsInFile") is not None:
            raise ConfigError(
                "'bucketColumnsInFile' needs 'bucketColumns'; add it or remove both", code="CONFLICT"
            )
        return BucketAssigner.base_path_bucket_assigner()
    assigner = BucketAssigner.partition_bucket_assigner(*(name.strip() for name in columns.split(",")))
    return assigner.with_columns_in_file() if given.flag("bucketColumnsInFile") else assigner
