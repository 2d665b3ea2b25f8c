"""``format("filesink")`` over Spark Connect: what holds in a classic session holds here.

Written anew are tests that look into the JVM of the driver, and those of what a client does differently.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tests.spark import outside
from tests.spark.data_source.test_data_source import *  # noqa: F403
from tests.spark.data_source.test_data_source import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]  # test_connect.py is for each change

del test_both_doors_share_a_uid  # noqa: F821 - FileSink is refused over Connect; see test_connect.py


def test_a_failing_batch_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A partition fails: no row of the other is visible, and nothing hidden is left."""
    df = spark.range(0, 100, numPartitions=2).selectExpr("if(id = 99, raise_error('too much'), id) AS id")
    with pytest.raises(PySparkException, match="too much"):
        write(df, tmp_path / "out")
    assert outside.visible(tmp_path / "out") == {}
    assert outside.hidden(tmp_path / "out") == []


@pytest.mark.parametrize("mode", ["error", "ignore", None])
def test_save_modes_that_spark_refuses(spark: SparkSession, tmp_path: Path, mode: str | None) -> None:
    """As in a classic session, by another spelling: Connect's client does not know ``errorifexists``."""
    message = 'cannot be written in the ".*" mode. Please use either the "Append" or "Overwrite" mode'
    with pytest.raises(AnalysisException, match=message):
        spark.range(1).write.format("filesink").mode(mode).save(str(tmp_path / "out"))


DYNAMIC = {"partitionOverwriteMode": "dynamic"}


@pytest.mark.parametrize(
    ("options", "setting", "expected"),
    [({}, "static", [12]), (DYNAMIC, "static", [0, 12]), ({}, "dynamic", [0, 12])],
)
def test_overwrite(spark: SparkSession, tmp_path: Path, options, setting: str, expected: list[int]) -> None:
    """Everything or the buckets that get data are replaced, as the option or the session says."""
    columns = "id long, half string"
    write(spark.createDataFrame([(0, "low"), (11, "high")], columns), tmp_path, bucketColumns="half")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", setting)
    door = spark.createDataFrame([(12, "high")], columns).write.format("filesink")
    door.option("bucketColumns", "half").options(**options).mode("overwrite").save(str(tmp_path))
    assert outside.parquet_ids(tmp_path) == expected
