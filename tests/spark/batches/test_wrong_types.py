"""The doors that take a DataFrame, with a real one and something wrong beside it."""

from __future__ import annotations

from inspect import Parameter
from typing import TYPE_CHECKING

import pytest

from filesink import BucketAssigner, ConfigError, FileSink
from formats import Encoder
from tests.package.wrong_types import WRONG, Call, untyped

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

#: What goes with an argument of ``write``.
NEEDED = {"partitions": {"mode": "overwrite_partitions"}, "on_repeated_txn": {"txn_id": "t"}}


@pytest.fixture
def sink(tmp_path: Path) -> FileSink:
    """A sink of lines."""
    builder = FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_uid("u").build()


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of one line."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    return spark.readStream.text(str(tmp_path / "in"))


@pytest.mark.parametrize("name", ["mode", "txn_id", "partitions", "on_repeated_txn"])
def test_a_batch_write(spark: SparkSession, sink: FileSink, name: str) -> None:
    """Every other argument is told to be wrong, or is used."""
    df = spark.createDataFrame([("a",)], "value string")
    parameter = Parameter(name, Parameter.KEYWORD_ONLY)
    required = {"df": df, **NEEDED.get(name, {})}
    assert untyped(Call(name="write", function=sink.write, parameter=parameter, required=required)) == {}


@pytest.mark.parametrize(
    "name", ["query_name", "at_end", "processing_time", "available_now", "once", "continuous", "batch_id"]
)
def test_a_stream(sink: FileSink, stream: DataFrame, tmp_path: Path, name: str) -> None:
    """No query is started, or it runs."""
    parameter = Parameter(name, Parameter.KEYWORD_ONLY)
    required = {"df": stream, "checkpoint_location": tmp_path / "checkpoint"}
    assert untyped(Call(name="start", function=sink.start, parameter=parameter, required=required)) == {}


def test_the_checkpoint_of_a_stream(sink: FileSink, stream: DataFrame) -> None:
    """What is no path is none, with a stream as well."""
    for name in WRONG.keys() - {"x"}:
        with pytest.raises(ConfigError) as raised:
            sink.start(stream, checkpoint_location=WRONG[name])
        assert raised.value.code == "CHECKPOINT", name


def test_a_batch_outside_of_a_query(spark: SparkSession, sink: FileSink) -> None:
    """foreach_batch is called by Spark only."""
    parameter = Parameter("batch_id", Parameter.KEYWORD_ONLY)
    required = {"df": spark.createDataFrame([("a",)], "value string")}
    call = Call(name="foreach_batch", function=sink.foreach_batch, parameter=parameter, required=required)
    assert untyped(call) == {}
