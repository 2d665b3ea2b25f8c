"""A stream whose batches replace the partitions that they have rows for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filesink import BucketAssigner, FileSink, ParquetWriterFactory
from tests.spark import outside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def test_a_stream_replaces_the_partitions_of_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that comes again, since its commit was lost, replaces nothing that is there."""
    base, source, checkpoint = tmp_path / "out", tmp_path / "in", tmp_path / "checkpoint"
    spark.range(3).selectExpr("id", "'old' AS part").write.parquet(str(source / "0"))

    def run() -> None:
        assigner = BucketAssigner.partition_bucket_assigner("part")
        sink = FileSink.for_bulk_format(base, ParquetWriterFactory()).with_bucket_assigner(assigner).build()

        def replace(batch: DataFrame, batch_id: int) -> None:
            sink.write(batch, mode="overwrite_partitions", txn_id=f"parts-{batch_id}")

        rows = spark.readStream.schema("id bigint, part string").parquet(str(source / "*"))
        writer = rows.writeStream.foreachBatch(replace).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    more = "id", "if(id < 12, 'old', 'new') AS part"
    spark.range(10, 15).selectExpr(*more).coalesce(1).write.parquet(str(source / "1"))
    run()
    before = outside.visible(base)
    assert outside.parquet_ids(base) == [10, 11, 12, 13, 14]  # not 0, 1, 2 of "old"
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    run()
    assert outside.visible(base) == before
