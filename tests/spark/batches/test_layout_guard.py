"""Every way in guards the layout of a path: a batch, a stream, and the data source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

import filesink
from filesink import FileSink, SchemaError
from formats import Encoder, ParquetWriterFactory
from tests.spark import outside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_another_layout_is_refused_at_every_door(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing of it becomes visible; ``allow`` lets it in."""
    base, source = tmp_path / "base", tmp_path / "source"
    FileSink.for_bulk_format(base, ParquetWriterFactory()).build().write(spark.range(3))
    spark.range(4).write.parquet(str(source))
    before = outside.everything(base)

    csv = FileSink.for_row_format(base, Encoder.csv()).with_uid("csv")
    text = spark.range(3).selectExpr("cast(id AS string) AS id")
    with pytest.raises(SchemaError, match="OTHER_LAYOUT"):
        csv.build().write(spark.range(3))
    with pytest.raises(SchemaError, match="column 'id' is int64 in files below the base path"):
        FileSink.for_bulk_format(base, ParquetWriterFactory()).build().write(text, txn_id="day")
    assert outside.everything(base) == before

    stream = spark.readStream.schema("id LONG").parquet(str(source))
    query = csv.build().start(stream, checkpoint_location=tmp_path / "cp", available_now=True)
    with pytest.raises(StreamingQueryException, match="OTHER_LAYOUT"):
        query.awaitTermination()

    filesink.register(spark)
    writer = stream.writeStream.format("filesink").option("format", "csv").option("uid", "door")
    writer = writer.option("checkpointLocation", str(tmp_path / "cp-door")).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="OTHER_LAYOUT"):
        writer.start(str(base)).awaitTermination()
    assert set(outside.visible(base)) == {path for path in before if path.endswith(".parquet")}

    csv.with_uid("meant").on_other_layout("allow").build().write(spark.range(3))
    assert len(outside.visible(base)) > 1
    writer.option("checkpointLocation", str(tmp_path / "cp-meant")).option("onOtherLayout", "allow").start(
        str(base)
    ).awaitTermination()
