"""Streams of small Parquet files: flights with an id, a day and a carrier."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id bigint, day date, carrier string"
_FIRST_DAY = 15_706  # 2013-01-01, in days since 1970
_FIRST_FILE = 1_700_000_000  # seconds since 1970
_CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ")


def add_file(source: Path, number: int, *, rows: int, days: int = 4) -> None:
    """Put file ``number`` of a source there at once; its ids begin at ``number * rows``."""
    source.mkdir(parents=True, exist_ok=True)
    ids = range(number * rows, (number + 1) * rows)
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([_FIRST_DAY + i % days for i in ids], pa.int32()).cast(pa.date32()),
            "carrier": pa.array([_CARRIERS[i % len(_CARRIERS)] for i in ids]),
        }
    )
    unfinished = source / f".{number}"
    pq.write_table(table, unfinished)
    os.utime(unfinished, times=(_FIRST_FILE + number, _FIRST_FILE + number))  # the order of a file source
    unfinished.rename(source / f"{number:04}.parquet")


def flights(spark: SparkSession, source: Path, *, files_per_batch: int = 1) -> DataFrame:
    """A stream over ``source``, one micro-batch per ``files_per_batch`` files."""
    source.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_per_batch).parquet(str(source))


def as_lines(df: DataFrame) -> DataFrame:
    """Each flight as one line of text that begins with its day."""
    return df.selectExpr("concat_ws(',', day, lpad(id, 9, '0'), carrier) AS value")
