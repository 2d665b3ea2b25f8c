"""A driver of one release, in a process of its own: does what it reads, and says how it ended.

    python release_driver.py DIRECTORY

Imports the packages that PYTHONPATH names first. ``DIRECTORY`` gets ``base``, ``in`` and ``checkpoint``.
A line is one of these, and the answer is ``done``, or the name of the error's class:

    stream ID…       adds an input file, if there are ids, and runs the query to its end
    batch TXN ID…    writes a batch once
    overwrite ID…    replaces everything
    retain           drops what is beyond a byte
    recover
    die              the next publication ends the process
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import filesink
from filesink import FileSink
from filesink.errors import FilesinkError
from filesink.storage.local.store import LocalStore
from formats import Encoder

DIRECTORY = Path(sys.argv[1])
BASE = str(DIRECTORY / "base")


def main() -> None:
    """Serve the lines of stdin, one at a time."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    sink = FileSink.for_row_format(BASE, Encoder.simple_string_encoder()).with_uid("u").build()
    _say("ready")
    for line in sys.stdin:
        _say(_answer(spark, sink, line.split()))
    spark.stop()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _answer(spark: SparkSession, sink: FileSink, words: list[str]) -> str:
    try:
        _do(spark, sink, *words)
    except Exception as error:  # noqa: BLE001 - whatever it is, the test asks what it was
        sys.stderr.write(f"{error}\n")
        cause = error if isinstance(error, FilesinkError) else error.__cause__ or error
        return type(cause).__name__
    return "done"


def _do(spark: SparkSession, sink: FileSink, what: str, *words: str) -> None:
    match what:
        case "stream":
            _input(words)
            rows = spark.readStream.text(str(DIRECTORY / "in"))
            query = sink.start(rows, checkpoint_location=str(DIRECTORY / "checkpoint"), available_now=True)
            query.awaitTermination()
        case "batch":
            sink.write(_rows(spark, words[1:]), txn_id=words[0])
        case "overwrite":
            sink.write(_rows(spark, words), mode="overwrite")
        case "retain":
            filesink.retain(BASE, filesink.Retention(max_bytes=1))
        case "recover":
            sink.recover()
        case "die":
            LocalStore.publish = lambda *_: os._exit(9)


def _rows(spark: SparkSession, ids: tuple[str, ...]) -> DataFrame:
    return spark.createDataFrame([(one,) for one in ids], "value string")


def _input(ids: tuple[str, ...]) -> None:
    (DIRECTORY / "in").mkdir(exist_ok=True)
    if ids:
        draft = DIRECTORY / f".{ids[0]}"
        draft.write_text("\n".join(ids))
        draft.rename(DIRECTORY / "in" / f"{ids[0]}.txt")


if __name__ == "__main__":
    main()
