"""Runs items of work as a Spark job, for merges too large for the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from filesink.spark.job import typed

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """One task per item; implements ``filesink.ports.TaskRunner``."""

    session: SparkSession

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See ``TaskRunner.run``. A retried or duplicated item runs twice; the first result counts."""
        work = list(items)
        if not work:
            return []
        context = self.session.sparkContext
        try:
            return context.parallelize(work, len(work)).map(function).collect()
        except (PySparkException, Py4JError) as error:
            raise typed(error) or error from error
