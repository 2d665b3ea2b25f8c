"""Options of ``format("filesink")``: from Spark's dict of lower-cased names and texts to typed values.

Rules: everything is text, as in Spark; a name is told apart regardless of case; nothing is ignored.
What this door cannot do is refused by name and points to ``FileSink``. ``docs/data-source.md`` lists
the options; a test compares it with ``NAMES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, cast, overload

from filesink.buckets import BucketAssigner
from filesink.errors import ConfigError
from filesink.local_time import time_zone
from filesink.naming import OutputFileConfig
from filesink.rolling import RollingPolicy
from filesink.save_mode import SaveMode
from filesink.sink import FileSink, FileSinkBuilder
from formats.api import Encoder
from formats.errors import FormatError
from formats.parquet import ParquetWriterFactory

_FORMATS = {
    "parquet": ("compression", "compressionLevel", "rowGroupRows", "rowGroupSize"),
    "json": (),
    "csv": ("delimiter", "header", "quote", "escape", "quoteAll", "nullValue"),
    "text": ("charset",),
}
_OWN = (
    "path", "format", "bucketColumns", "bucketColumnsInFile", "bucketTimeFormat", "bucketTimeColumn",
    "timeZone", "partSize", "maxRows", "partPrefix", "partSuffix", "uid", "txnId", "onNewQuery",
    "onReplayMismatch", "partitionOverwriteMode",
)  # fmt: skip
#: Every option of ours, as users spell it.
NAMES = (*_OWN, *(name for names in _FORMATS.values() for name in names))
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
    "txnappid": "uid",
    "txnversion": "txnId",
}
# A part of an unknown name, and the feature it stands for.
_REFUSED = {
    "compact": "compaction",
    "interval": "rolling without data",
    "rollingpolicy": "a rolling policy of your own",
    "partitioncommit": "announcing partitions by their time",
    "watermark": "announcing partitions by their time",
    "catalog": "publishing to Spark's catalog",
    "expression": "buckets by an expression",
    "encoder": "an encoder of your own",
    "assigner": "a bucket assigner of your own",
    "writerfactory": "a format of your own",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSourceOptions:
    """What a user has chosen.

    Attributes:
        builder: everything that ``FileSink`` has too.
        txn_id: the user's name for the data of a batch write, or ``""``.
        time_zone: for buckets; ``None`` for the session's.
        overwrite_mode: what ``.mode("overwrite")`` does.
    """

    builder: FileSinkBuilder
    txn_id: str
    time_zone: str | None
    overwrite_mode: SaveMode


def parse_options(options: Mapping[str, str]) -> DataSourceOptions:
    """The options of one write.

    Args:
        options: as Spark hands them over, Spark's own and the path included.

    Raises:
        ConfigError: ``PATH_REQUIRED``, ``UNKNOWN_OPTION``, ``USE_FILESINK``, ``CONFLICT``, ``BAD_VALUE`` …
    """
    given = _Texts({name.lower(): text for name, text in options.items()})
    _check_names(given.texts)
    policy = RollingPolicy.on_checkpoint_rolling_policy(given.get("partSize"), given.number("maxRows"))
    names = OutputFileConfig(**given.given(part_prefix="partPrefix", part_suffix="partSuffix"))
    builder = _with_format(given, _path(given)).with_bucket_assigner(_assigner(given))
    builder = builder.with_rolling_policy(policy).with_output_file_config(names)
    zone, txn_id = given.get("timeZone"), given.get("txnId")
    if zone is not None:
        time_zone(zone)
    if txn_id == "":
        raise given.bad("txnId", "your name for the data, or left out")
    return DataSourceOptions(
        builder=_with_identity(given, builder),
        txn_id=txn_id or "",
        time_zone=zone,
        overwrite_mode=_overwrite_mode(given),
    )


def _overwrite_mode(given: _Texts) -> SaveMode:
    match given.get("partitionOverwriteMode", "static").lower():
        case "static":
            return SaveMode.OVERWRITE
        case "dynamic":
            return SaveMode.OVERWRITE_PARTITIONS
        case _:
            raise given.bad("partitionOverwriteMode", "'static' or 'dynamic'")


def _with_identity(given: _Texts, builder: FileSinkBuilder) -> FileSinkBuilder:
    uid = given.get("uid")
    if uid is not None:
        builder = builder.with_uid(uid)
    builder = builder.on_new_query(cast("Any", given.get("onNewQuery", "refuse")))
    return builder.on_replay_mismatch(cast("Any", given.get("onReplayMismatch", "raise")))


@dataclass(frozen=True, slots=True)
class _Texts:
    """Options by their lower-cased names."""

    texts: Mapping[str, str]

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    def get(self, name: str, default: str | None = None) -> str | None:
        return self.texts.get(name.lower(), default)

    def flag(self, name: str) -> bool:
        match self.get(name, "false").lower():
            case "true":
                return True
            case "false":
                return False
            case _:
                raise self.bad(name, "'true' or 'false'")

    def number(self, name: str) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self.bad(name, "a whole number")
        return int(text)

    def given(self, **names: str) -> dict[str, str]:
        """Those that were given, under the names of the parameters they are for."""
        found = {parameter: self.get(name) for parameter, name in names.items()}
        return {parameter: text for parameter, text in found.items() if text is not None}

    def bad(self, name: str, wanted: str) -> ConfigError:
        return ConfigError(
            f"option '{name}' must be {wanted}, got {repr(self.get(name))[:80]}", code="BAD_VALUE"
        )


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


def _path(given: _Texts) -> str:
    path = given.get("path")
    if not path:
        raise ConfigError(
            "option 'path' is required and missing: call .save('/data/out') or .start('/data/out'), or set "
            ".option('path', …). Tables are not supported: saveAsTable() and toTable() name no path",
            code="PATH_REQUIRED",
        )
    return path


def _with_format(given: _Texts, path: str) -> FileSinkBuilder:
    name = given.get("format", "parquet").lower()
    if name not in _FORMATS:
        raise given.bad("format", f"one of {', '.join(_FORMATS)}")
    for other, options in _FORMATS.items():
        for option in options:
            if other != name and given.get(option) is not None:
                raise ConfigError(
                    f"option '{option}' belongs to format '{other}', and the format is '{name}'; remove it",
                    code="CONFLICT",
                )
    try:
        if name == "parquet":
            return FileSink.for_bulk_format(path, _parquet(given))
        return FileSink.for_row_format(path, _encoder(name, given))
    except FormatError as error:
        raise ConfigError(f"format '{name}': {error.message}", code="BAD_VALUE") from error


def _parquet(given: _Texts) -> ParquetWriterFactory:
    texts: dict[str, Any] = given.given(compression="compression", row_group_size="rowGroupSize")
    numbers = {"compression_level": "compressionLevel", "row_group_rows": "rowGroupRows"}
    for parameter, name in numbers.items():
        if (number := given.number(name)) is not None:
            texts[parameter] = number
    if "compression" in texts:
        texts["compression"] = texts["compression"].lower()
    return ParquetWriterFactory(**texts)


def _encoder(name: str, given: _Texts) -> Encoder:
    match name:
        case "json":
            return Encoder.json_lines()
        case "text":
            return Encoder.simple_string_encoder(**given.given(charset="charset"))
        case _:
            texts: dict[str, Any] = given.given(
                delimiter="delimiter", quote="quote", escape="escape", null_value="nullValue"
            )
            if texts.get("delimiter") == "\\t":  # as Spark spells it
                texts["delimiter"] = "\t"
            mode: Literal["all", "minimal"] = "all" if given.flag("quoteAll") else "minimal"
            return Encoder.csv(header=given.flag("header"), quote_mode=mode, **texts)


def _assigner(given: _Texts) -> BucketAssigner:
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
