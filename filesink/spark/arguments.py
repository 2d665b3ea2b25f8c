"""What users hand to a sink that Spark drives, looked at before anything is done with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import pyspark
from pyspark.sql import DataFrame

from filesink.api import Sink
from filesink.arguments import choice
from filesink.commit.replay import OnRepeatedTxn
from filesink.errors import ConfigError, VersionError
from filesink.save_mode import SaveMode
from filesink.spark.elsewhere import over_connect
from filesink.spark.query import AtEnd
from filesink.spark.runner import is_stopped

_OLDEST_SPARK = (4, 1)
_SURROGATE = re.compile("[\ud800-\udfff]")  # without its other half it has no bytes
_TRIGGERS = {"processing_time": "processingTime", "available_now": "availableNow", "once": "once"}
_ENDING = frozenset({"available_now", "once"})


def check_frame(df: object) -> None:
    """Raise unless a sink can be written with what is said to be a DataFrame.

    Raises:
        VersionError: Spark is too old.
        ConfigError: it is no DataFrame, one of Spark Connect, or one of a session that was stopped.
    """
    parts = pyspark.__version__.split(".")
    if (int(parts[0]), int(parts[1])) < _OLDEST_SPARK:
        raise VersionError(
            f"Spark {pyspark.__version__} found, 4.1 or newer is needed; install that", code="SPARK_VERSION"
        )
    if not isinstance(df, DataFrame):
        raise ConfigError(
            f"a sink takes a DataFrame of Spark, got {type(df).__name__}; make one with "
            "spark.createDataFrame(…)",
            code="BAD_VALUE",
        )
    if not hasattr(df, "_jdf"):
        raise over_connect()
    if is_stopped(df.sparkSession):
        raise ConfigError(
            "the session of this DataFrame was stopped; make a new one, and the DataFrame with it",
            code="SESSION_STOPPED",
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not _SURROGATE.search(value)


def check_txn_id(txn_id: object) -> None:
    """Raise ``ConfigError`` unless a txn_id is one; a record that has a number there is never read again."""
    if txn_id is not None and not _is_text(txn_id):
        raise ConfigError(
            "txn_id must be text, such as '2026-01', that is not empty and has no lone surrogate, or left "
            f"out; got {repr(txn_id)[:40]}, a value of type {type(txn_id).__name__}",
            code="BAD_VALUE",
        )


def on_repeated(given: object, txn_id: object) -> OnRepeatedTxn:
    """What ``on_repeated_txn`` says; a ``ConfigError`` if there is nothing that could repeat."""
    repeated = choice(OnRepeatedTxn, given, "on_repeated_txn")
    if repeated is not OnRepeatedTxn.RAISE and txn_id is None:
        raise ConfigError(
            f"on_repeated_txn={given!r} says what to do with a repeated txn_id, but there is no txn_id: give "
            "one, or leave on_repeated_txn out",
            code="CONFLICT",
        )
    return repeated


def check_mode(sink: Sink[Any, Any, Any], mode: SaveMode) -> None:
    """Raise ``ConfigError`` unless ``sink`` has ``mode``."""
    if mode not in sink.save_modes:
        raise ConfigError(
            f"{_door_of(sink)} cannot write in mode '{mode.value}'; it has "
            + ", ".join(f"'{known.value}'" for known in sink.save_modes),
            code="SAVE_MODE",
        )


def _door_of(sink: Sink[Any, Any, Any]) -> str:
    """What a user calls the sink: ``PostgresTiers`` stand behind ``PostgresSink``."""
    return re.sub("Tiers$", "Sink", type(sink).__name__)


def check_stream(df: object, checkpoint_location: object, query_name: object) -> None:
    """Raise unless a query over ``df`` can be started with these; see ``check_frame`` for other errors.

    Raises:
        ConfigError: ``BATCH``, ``CHECKPOINT``, ``BAD_VALUE``.
    """
    check_frame(df)
    if not (isinstance(checkpoint_location, str | PurePath) and str(checkpoint_location)):
        raise ConfigError(
            "exactly-once needs checkpoint_location: a directory of this query's own; got "
            f"{repr(checkpoint_location)[:40]}",
            code="CHECKPOINT",
        )
    if query_name is not None and not _is_text(query_name):
        raise ConfigError(
            f"query_name must be text that is not empty, or left out; got {repr(query_name)[:40]}",
            code="BAD_VALUE",
        )
    if isinstance(df, DataFrame) and not df.isStreaming:
        raise ConfigError("start() takes a streaming DataFrame; use write() for a batch", code="BATCH")


def spark_trigger(trigger: dict[str, Any]) -> dict[str, Any]:
    """A trigger as Spark's ``DataStreamWriter.trigger`` takes it.

    Raises:
        ConfigError: ``TRIGGER``, or ``SAVE_MODE`` for a save mode.
    """
    if "mode" in trigger:
        raise ConfigError(
            "a stream only adds to what is there, since each of its micro-batches would replace the last; "
            "remove 'mode', or use write(df, mode=…) for a batch",
            code="SAVE_MODE",
        )
    unknown = sorted(set(trigger) - set(_TRIGGERS))
    if unknown:
        raise ConfigError(
            f"trigger {unknown[0]!r} cannot be used: only micro-batches are exactly-once, and the names are "
            "Python's. Use processing_time='10 seconds', available_now=True or once=True",
            code="TRIGGER",
        )
    if len(trigger) > 1:
        raise ConfigError("give one trigger only: " + ", ".join(sorted(trigger)), code="TRIGGER")
    for name, value in trigger.items():
        if not (_is_text(value) if name == "processing_time" else value is True):
            wanted = "text, such as '10 seconds'" if name == "processing_time" else "True, or left out"
            raise ConfigError(f"trigger {name} must be {wanted}; got {repr(value)[:40]}", code="TRIGGER")
    return {_TRIGGERS[name]: value for name, value in trigger.items()} or {"processingTime": "0 seconds"}


def ends(trigger: Mapping[str, Any]) -> bool:
    """Whether a query with this trigger ends by itself."""
    return not _ENDING.isdisjoint(trigger)


def check_end(at_end: AtEnd, trigger: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` (``CONFLICT``) if the end of a query is chosen that has none."""
    if at_end is not AtEnd.PUBLISH and not ends(trigger):
        raise ConfigError(
            f"at_end={at_end.value!r} says what happens when the query ends by itself, and with this trigger "
            "it does not: what is open stays so until the next start. Leave at_end out, or use "
            "available_now=True or once=True",
            code="CONFLICT",
        )
