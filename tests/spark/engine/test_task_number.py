"""What a writer is told of the number of its fellows, where Spark's plan says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink import SparkSink
from filesink.spark.input.task_number import number_of_tasks
from tests.sinks.letters import Letters, LetterWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Counting(Letters):
    """Each task puts its index, and how many there are, into a letter of its own."""

    def create_writer(self, context):
        return LetterWriter([f"{context.subtask_index} of {context.number_of_parallel_subtasks}"])


def repartitioned(spark: SparkSession) -> DataFrame:
    """Rows that are asked to be in five partitions."""
    return spark.range(0, 100, numPartitions=2).selectExpr("cast(id AS string) AS value").repartition(5)


def test_each_task_knows_how_many_there_are(spark: SparkSession, tmp_path: Path) -> None:
    """As many as were asked for have run; adaptive execution has not changed it."""
    (tmp_path / "box").mkdir()
    sink = Counting(tmp_path)
    SparkSink(sink).write(repartitioned(spark).filter("value <> ''"))
    told = [letter for letter in sink.arrived() if " of " in letter]
    assert told == [f"{index} of 5" for index in range(5)]


@pytest.mark.parametrize(
    "text",
    [
        "repartition('id')",
        "repartitionByRange(5, 'id')",
        "coalesce(1)",
        "limit(5)",
        "orderBy('id')",
        "distinct()",
    ],
)
def test_where_only_the_run_will_tell_it_is_not_known(spark: SparkSession, text: str) -> None:
    """No number is better than one that sizes, settings or values may change."""
    df = spark.range(0, 100, numPartitions=2).repartition(5)
    assert number_of_tasks(df) == 5
    assert number_of_tasks(eval(f"df.{text}", {"df": df})) is None  # noqa: S307 - our own words


def test_a_number_by_columns(spark: SparkSession) -> None:
    """Hashed to as many partitions as were asked for, with or without rows in each."""
    df = spark.range(0, 3).repartition(7, "id")
    assert number_of_tasks(df.selectExpr("id AS a").alias("x")) == 7
