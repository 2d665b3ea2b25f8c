"""What is new among the source's files goes to the sink, once."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

OUTPUT = Path(os.environ.get("PIPELINE_OUTPUT", "/tmp/filesink-pipeline"))  # noqa: S108 - an example's

dp.create_sink(
    name="flights",
    format="filesink",
    options={
        "path": str(OUTPUT / "flights"),
        "uid": "flights",
        "bucketColumns": "day",
        # Only for a full refresh, which reads everything again; see README.md.
        "onNewQuery": os.environ.get("ON_NEW_QUERY", "refuse"),
    },
)


@dp.append_flow(target="flights", name="new_flights")
def new_flights() -> DataFrame:
    """The source, file by file."""
    stream = SparkSession.active().readStream.schema("id bigint, day date, carrier string")
    return stream.option("maxFilesPerTrigger", 1).parquet(str(OUTPUT / "source"))
