"""Runs items of work as a Spark job, for what is too large for the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from filesink.errors import ConfigError
from filesink.spark.input.driver_python import drivers_python
from filesink.spark.input.job import typed
from filesink.spark.input.local_properties import local_properties

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """One task per item; implements ``filesink.ports.TaskRunner``.

    Args:
        session: whose tasks.
        name: for Spark's UI.
        work: what a job does, with ``{}`` for the number of its items.
    """

    session: SparkSession
    name: str = "filesink"
    work: str = "a merge of {} items"

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See ``TaskRunner.run``. A retried or duplicated item runs twice; the first result counts.

        Raises:
            ConfigError: ``SESSION_STOPPED``.
        """
        wanted = list(items)
        if not wanted:
            return []
        what = self.work.format(len(wanted))
        if is_stopped(self.session):
            raise ConfigError(
                f"a Spark job is needed for {what}, and the session of its query was stopped; this "
                "epoch has published nothing. Make a new session, then start the query again or call "
                "finish()",
                code="SESSION_STOPPED",
            )
        context = self.session.sparkContext
        try:
            results = context.parallelize(wanted, len(wanted)).map(function)
            with drivers_python(self.session):
                results._jrdd  # noqa: B018, SLF001 - made now; else with the job, which may take long
            with local_properties(context, shown_as=f"{self.name}, {what}"):
                return results.collect()
        except (PySparkException, Py4JError) as error:
            raise typed(error) or error from error


def active_runner(name: str, *, work: str) -> SparkRunner | None:
    """The tasks of the application that this process drives, if it drives one; see ``SparkRunner``."""
    session = SparkSession.getActiveSession()
    return None if session is None or is_stopped(session) else SparkRunner(session, name, work)


def is_stopped(session: SparkSession) -> bool:
    """Whether the application of a session has ended; asks no JVM, which may be gone."""
    return session.sparkContext._jsc is None  # noqa: SLF001 - PySpark looks there itself
