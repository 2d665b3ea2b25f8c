"""The Spark that all benchmarks run on: two cores, nothing else switched on, errors only."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from filesink.spark.input.arrow_batches import Crossing
from filesink.spark.input.local_properties import local_properties

_LOGGING = Path(__file__).resolve().parents[1] / "examples" / "log4j2.properties"


def start_spark(**settings: str) -> SparkSession:
    """A fresh local session; ``settings`` may have ``_`` for each dot of Spark's names."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark starts whatever python3 is on PATH
    # Spark matches the error of a foreachBatch that stop() has interrupted against a pattern that
    # recurses for each letter; with the usual stack it prints a StackOverflowError.
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("filesink benchmarks")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.extraJavaOptions", f"-Xss16m -Dlog4j2.configurationFile=file:{_LOGGING}")
        .config("spark.sql.parquet.compression.codec", "snappy")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for name, value in settings.items():
        builder = builder.config(name if "." in name else name.replace("_", "."), value)
    return builder.getOrCreate()


def batches_like_ours(rows: DataFrame) -> AbstractContextManager[None]:
    """Jobs inside hand ``rows`` to Python in batches as large as those of the sink."""
    limits = Crossing.of(rows).limits()
    return local_properties(rows.sparkSession.sparkContext, shown_as="a benchmark", wanted=limits)
