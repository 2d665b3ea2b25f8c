"""Sources that Spark itself reads: JDBC, tables, and any ``format``. Kafka stands beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from filesink.jobs.model.options import option
from filesink.jobs.model.schema import Schema
from filesink.jobs.model.secret import Secret, SecretSettings
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Source


class SparkOptions(PluginOptions):
    """Of any source of Spark's."""

    format: str = option("", doc="Spark's name of the source, such as parquet, delta or rate.")
    table: str = option("", doc="A table of Spark's catalog, in place of 'format'.")
    path: str = option("", doc="What is loaded.")
    settings: SecretSettings = option(SecretSettings(), doc="Options of the source.", words=("options",))
    schema_: Schema | None = option(None, doc="Its columns, if it does not know them.", words=("schema",))

    @model_validator(mode="after")
    def _one_of_both(self) -> SparkOptions:
        if bool(self.format) == bool(self.table):
            raise PydanticCustomError("format", "needs 'format' or 'table', and not both")
        return self


class SparkSource(Source):
    """Whatever Spark reads by ``format`` or as a table."""

    name = "Spark"
    options_type = SparkOptions
    options: SparkOptions

    def read(self, run: Run) -> Frames:
        """See ``Source.read``."""
        chosen = self.options
        reader = reader_of(run)
        if chosen.table:
            return {chosen.table: reader.table(chosen.table)}
        reader = reader.format(chosen.format).options(**revealed(chosen.settings, run))
        if chosen.schema_ is not None:
            reader = reader.schema(chosen.schema_.ddl)
        return {"": reader.load(chosen.path) if chosen.path else reader.load()}


class JdbcOptions(PluginOptions):
    """Of a database, by SeaTunnel's words."""

    without_effect = {"connection_check_timeout_sec": "Spark's JDBC source waits as the driver does"}
    refused = {
        "table_list": "one source reads one table; write a source for each",
        "table_path_list": "one source reads one table; write a source for each",
    }

    url: str = option(doc="Of JDBC; user and password do not stand in it.")
    driver: str = option("", doc="The class of the driver.")
    user: str = option("", doc="Who logs in.", words=("user", "username"))
    password: Secret | None = option(None, doc="A reference.")
    query: str = option("", doc="What is read.")
    table_path: str = option("", doc="A table, in place of 'query'.")
    partition_column: str = option("", doc="A column of numbers or times that cuts the table.")
    lower_bound: str = option("", doc="Of that column.", words=("partition_lower_bound",))
    upper_bound: str = option("", doc="Of that column.", words=("partition_upper_bound",))
    partitions: int | None = option(None, doc="In how many pieces.", words=("partition_num",), ge=1)
    fetch_size: int = option(0, doc="Rows a round trip.", unit="rows", ge=0)
    properties: SecretSettings = option(SecretSettings(), doc="Of the driver.")

    @model_validator(mode="after")
    def _one_of_both(self) -> JdbcOptions:
        if bool(self.query) == bool(self.table_path):
            raise PydanticCustomError("query", "needs 'query' or 'table_path', and not both")
        if self.partition_column and not (self.lower_bound and self.upper_bound):
            raise PydanticCustomError(
                "bounds", "needs partition_lower_bound and partition_upper_bound beside partition_column"
            )
        return self


class JdbcSource(Source):
    """A table or a query of a database, by Spark's JDBC source. Its driver comes by ``spark.jars``."""

    name = "Jdbc"
    options_type = JdbcOptions
    options: JdbcOptions

    def read(self, run: Run) -> Frames:
        """See ``Source.read``."""
        chosen = self.options
        table = chosen.table_path or f"({chosen.query}) AS it"
        settings: dict[str, Any] = {
            "url": chosen.url,
            "dbtable": table,
            "driver": chosen.driver,
            "user": chosen.user,
        }
        if chosen.partition_column:
            settings |= {
                "partitionColumn": chosen.partition_column,
                "lowerBound": chosen.lower_bound,
                "upperBound": chosen.upper_bound,
                "numPartitions": chosen.partitions or run.parallelism,
            }
        if chosen.fetch_size:
            settings["fetchsize"] = chosen.fetch_size
        if chosen.password is not None:
            settings["password"] = run.reveal(chosen.password)
        given = {name: value for name, value in settings.items() if value != ""}
        reader = run.spark.read.format("jdbc").options(**revealed(chosen.properties, run)).options(**given)
        return {chosen.table_path: reader.load()}


def revealed(settings: Mapping[str, Secret | str], run: Run) -> dict[str, str]:
    """Settings with the values of their secrets."""
    return settings_of(settings, run.reveal)


def settings_of(settings: Mapping[str, Secret | str], reveal: Callable[[Secret], str]) -> dict[str, str]:
    """The same, where there is no run yet."""
    return {name: reveal(value) if isinstance(value, Secret) else value for name, value in settings.items()}


def reader_of(run: Run) -> Any:
    """Spark's reader of a stream or of a batch, as the job is."""
    return run.spark.readStream if run.env.is_stream else run.spark.read
