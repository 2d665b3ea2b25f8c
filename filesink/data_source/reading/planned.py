"""A data source that reads what a ``FileSource`` says, known to Spark by a name of its own.

Options of a data source are texts that Spark shows; a plan holds functions, and options of stores that are
shown to nobody. So it travels in the class, which Spark keeps as a pickle.
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, ClassVar

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from filesink.arguments import instance_of
from filesink.data_source.reading.columns import spark_schema
from filesink.data_source.reading.readers import BatchReader, Given, StreamReader
from filesink.errors import ConfigError
from filesink.source.source_plan import SourcePlan
from filesink.spark.input.driver_python import drivers_python

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class PlannedSource(DataSource):
    """Reads by a plan. Each plan has a class of its own, derived from this one."""

    format_name: ClassVar[str]
    plan: ClassVar[SourcePlan]
    _given = Given.SCHEMA

    @classmethod
    def name(cls) -> str:
        """What is given to ``format(…)``."""
        return cls.format_name

    def schema(self) -> StructType:
        """See ``DataSource.schema``; called by ``load`` if the user has given none."""
        self._given = Given.NOTHING
        return spark_schema(self.plan.schema())

    def reader(self, schema: StructType) -> BatchReader:
        """See ``DataSource.reader``."""
        return BatchReader(self.plan, schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """See ``DataSource.streamReader``."""
        return StreamReader(self.plan, schema, given=self._given)


def check_session(spark: object) -> None:
    """Raise ``ConfigError`` (``BAD_VALUE``) unless ``spark`` is a session, classic or not."""
    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        instance_of(spark, SparkSession, name="spark")


def register_plan(spark: SparkSession, plan: SourcePlan) -> str:
    """Make ``plan`` known to a session; returns the name to give to ``format(…)``.

    Raises:
        ConfigError: ``NOT_PICKLABLE``; an enumerator, an assigner or a format of the user cannot be sent to
            tasks.
    """
    try:
        pickled: bytes = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever a user's class raises when it is pickled; nothing was read
        raise ConfigError(
            f"this source cannot be sent to Spark's tasks ({type(error).__name__}): an enumerator, a split "
            "assigner or a format of yours holds a connection, a lock or the session. Make that when it is "
            "used",
            code="NOT_PICKLABLE",
        ) from error
    name = f"filesink-{hashlib.sha256(pickled).hexdigest()[:12]}"
    kind = type("PlannedSource", (PlannedSource,), {"format_name": name, "plan": plan})
    is_remote = not hasattr(spark, "_jsparkSession")
    with nullcontext() if is_remote else drivers_python(spark):  # a server has chosen its Python itself
        spark.dataSource.register(kind)
    return name
