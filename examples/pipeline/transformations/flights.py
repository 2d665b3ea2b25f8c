"""A pipeline's flow into a sink: what is new among the source's files goes to the flights, once."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

OUTPUT = Path(os.environ["PIPELINE_OUTPUT"])  # a pipeline has no parameters of its own
SCHEMA = "id bigint, day date, carrier string"

dp.create_sink(
    name="flights",
    format="filesink",
    options={
        "path": str(OUTPUT / "flights"),
        "uid": "flights",
        "bucketColumns": "day",
        # A full refresh starts a new query, which reads everything again.
        "onNewQuery": os.environ.get("ON_NEW_QUERY", "refuse"),
    },
)


@dp.append_flow(target="flights", name="new_flights")
def new_flights() -> DataFrame:
    """The source, file by file."""
    spark = SparkSession.active()
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(OUTPUT / "source"))
