"""Writes and reads with ``format("filesink")`` in a session that has not registered it.

    python -m tests.spark.programs.found <base path>

Says ``done`` when all is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import filesink
from tests.spark import sessions, wheel_site


def main(base: Path) -> None:
    """A batch, a stream, and SQL."""
    wheel_site.offer(base)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    out = str(base / "out")
    spark.range(10).write.format("filesink").mode("append").save(out)
    spark.sql(f"CREATE TEMPORARY VIEW numbers USING filesink OPTIONS (path '{out}')")
    spark.sql("INSERT INTO numbers SELECT id + 10 FROM range(10)")
    assert spark.sql("SELECT sum(id) FROM numbers").first()[0] == sum(range(20))
    stream = spark.readStream.format("filesink").schema("id long").load(out).writeStream.format("filesink")
    query = (
        stream.option("checkpointLocation", str(base / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(base / "copy"))
    )
    query.awaitTermination()
    filesink.register(spark)  # which does no harm
    assert spark.read.format("filesink").load(str(base / "copy")).count() == 20
    sessions.say("done")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
