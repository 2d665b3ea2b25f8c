"""The advice for checkpoints on a local disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from filesink.spark.local_checkpoints import FASTER, SETTING, advise

pytestmark = pytest.mark.spark


@pytest.fixture
def unset(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that has chosen nothing; those of other tests have."""
    before = spark.conf.get(SETTING)
    spark.conf.unset(SETTING)
    yield spark
    spark.conf.set(SETTING, before)


def test_one_line_names_the_setting(
    unset: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says which, and what for; whoever has chosen a file manager hears nothing."""
    if unset.sparkContext._jvm.org.apache.hadoop.util.NativeCodeLoader.isNativeCodeLoaded():
        pytest.skip("Hadoop has its native library here, and starts no processes")
    with caplog.at_level(logging.INFO, "filesink"):
        advise(unset, str(tmp_path))
        unset.conf.set(SETTING, FASTER)
        advise(unset, str(tmp_path))
    assert [f"{SETTING}={FASTER}" in line for line in caplog.messages] == [True]


@pytest.mark.parametrize("checkpoint", ["nothing://has.this/scheme", "hdfs://[", ":"])
def test_what_is_not_local_or_no_path_at_all_is_left_to_spark(
    unset: SparkSession, checkpoint: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark refuses it in its own words when the query starts."""
    with caplog.at_level(logging.INFO, "filesink"):
        advise(unset, checkpoint)
    assert not caplog.messages
