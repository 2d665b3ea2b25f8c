"""Topics of Kafka, by Spark's source.

Spark's ``from_json`` makes a row of nulls of what is no JSON, passes over what follows an object, and takes
no array. So a message is read inside an array, with a column for what does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import pyarrow as pa
from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from filesink.errors import DataError
from filesink.jobs.model.column_types import ddl, quoted, sql_text
from filesink.jobs.model.options import Names, option
from filesink.jobs.model.schema import Schema
from filesink.jobs.model.secret import SecretSettings
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Source
from filesink.jobs.plugins.sources.spark import reader_of, revealed
from filesink.spark.input.exploding import exploded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_Lower = BeforeValidator(lambda given: given.lower() if isinstance(given, str) else given)


class KafkaOptions(PluginOptions):
    """Of Kafka, by SeaTunnel's words."""

    without_effect = {
        "commit_on_checkpoint": "offsets are in the checkpoint",
        "consumer.group": "Spark makes one",
    }

    servers: str = option(doc="Brokers, with commas.", words=("bootstrap.servers",))
    topics: Names = option(doc="Topics.", words=("topic",))
    pattern: bool = option(default=False, doc="Whether 'topic' is a regular expression.")
    start_mode: Annotated[Literal["earliest", "latest", "group_offsets"], _Lower] = option(
        "group_offsets", doc="Where a first run begins; group_offsets is the latest."
    )
    format: Literal["json", "text"] = option("json", doc="Of values.")
    schema_: Schema | None = option(None, doc="The columns of JSON.", words=("schema",))
    on_malformed: Annotated[Literal["fail", "skip"], _Lower] = option(
        "fail",
        doc="What becomes of a message that is no JSON of these columns.",
        words=("format_error_handle_way",),
    )
    config: SecretSettings = option(SecretSettings(), doc="Of the client.", words=("kafka.config",))

    @model_validator(mode="after")
    def _json_has_columns(self) -> KafkaOptions:
        if self.format == "json" and self.schema_ is None:
            raise PydanticCustomError("schema", "needs 'schema', since JSON has none")
        if self.format == "text" and self.schema_ is not None:
            raise PydanticCustomError(
                "schema", "text is one column, 'content'; leave 'schema' out, and cut it by Split or Sql"
            )
        return self


class KafkaSource(Source):
    """Topics of Kafka, by Spark's source, whose package comes by ``spark.jars.packages``."""

    name = "Kafka"
    limits = ("rows",)
    options_type = KafkaOptions
    options: KafkaOptions

    def read(self, run: Run) -> Frames:
        """See ``Source.read``."""
        chosen = self.options
        is_stream = run.env.is_stream
        start = "earliest" if chosen.start_mode == "earliest" or not is_stream else "latest"
        settings = {f"kafka.{name}": value for name, value in revealed(chosen.config, run).items()}
        settings |= {
            "kafka.bootstrap.servers": chosen.servers,
            "subscribePattern" if chosen.pattern else "subscribe": ",".join(chosen.topics),
            "startingOffsets": start,
        }
        if is_stream and run.env.rows_per_second:
            most = run.env.rows_per_second * max(run.env.checkpoint_interval // 1000, 1)
            settings["maxOffsetsPerTrigger"] = str(most)
        messages = reader_of(run).format("kafka").options(**settings).load()
        if chosen.schema_ is None:
            return {"": messages.selectExpr("CAST(value AS STRING) AS content")}
        return {"": rows_of(messages, chosen.schema_, chosen.on_malformed)}


def rows_of(messages: DataFrame, schema: Schema, on_malformed: Literal["fail", "skip"]) -> DataFrame:
    """A row for each object in messages of JSON: one, or each of an array; none for a value that is null."""
    found = sql_text(f"m ARRAY<{ddl(pa.struct(schema.arrow))}>, bad STRING")
    parsed = f"from_json({_WRAPPED}, {found}, map('columnNameOfCorruptRecord', 'bad')) AS parsed"
    is_good = f"is_valid_utf8(content) AND parsed.bad IS NULL AND {_HAS_ROWS}"
    otherwise = _RAISES if on_malformed == "fail" else "array()"
    rows = f"CASE WHEN content IS NULL THEN array() WHEN {is_good} THEN parsed.m ELSE {otherwise} END AS rows"
    columns = [f"record.{quoted(name)} AS {quoted(name)}" for name in schema.arrow.names]
    texts = messages.selectExpr("CAST(value AS STRING) AS content", "topic", "partition", "offset")
    arrays = texts.selectExpr("*", parsed).selectExpr(rows)
    return exploded(arrays, "rows", place="place", entry="record").selectExpr(*columns)


_IS_ARRAY = "startswith(ltrim(content), '[')"
_WRAPPED = f"concat(if({_IS_ARRAY}, '{{\"m\":', '{{\"m\":['), content, if({_IS_ARRAY}, '}}', ']}}'))"
_HAS_ROWS = (
    "parsed.m IS NOT NULL AND NOT exists(parsed.m, one -> one IS NULL) "
    f"AND ({_IS_ARRAY} OR size(parsed.m) = 1)"
)


def _raises() -> str:
    """An expression that raises in the task; the driver finds the error again in Spark's text.

    Its class comes apart from it: Spark shows the plan as well, where no number stands yet.
    """
    error = DataError(
        "the message at offset %d of partition %d of topic %s is no JSON object, or has a value that its "
        "column cannot have. Nothing of its epoch became visible. Correct 'schema', or pass over such "
        "messages with format_error_handle_way = skip",
        code="MALFORMED_MESSAGE",
    )
    name, text = sql_text(f"{DataError.__module__}.{DataError.__qualname__}"), sql_text(f"\n%s: {error}\n")
    return f"raise_error(format_string({text}, {name}, offset, partition, topic))"


_RAISES = _raises()
