"""Listeners of a stream that Spark runs, on the driver."""

from __future__ import annotations

import pytest
from pyspark.sql.functions import count, lit

from filesink import Encoder, EpochBegan, EpochComplete, FileSink, RollingPolicy

pytestmark = pytest.mark.spark


def test_a_stream_tells_its_epochs(spark, tmp_path):
    """Micro-batches in their order, then the end of input, with Spark's numbers."""
    source = tmp_path / "in"
    spark.range(6).selectExpr("cast(id as string) value").repartition(3).write.text(str(source))
    events = []
    sink = (
        FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size="1 GiB"))
        .with_listener(events.append)
        .with_uid("heard")
        .build()
    )
    stream = spark.readStream.option("maxFilesPerTrigger", 2).text(str(source))
    query = sink.start(stream, checkpoint_location=str(tmp_path / "cp"), available_now=True)
    query.awaitTermination()
    began = [(event.kind, event.batch_id) for event in events if isinstance(event, EpochBegan)]
    done = [event for event in events if isinstance(event, EpochComplete)]
    assert began == [("micro-batch", 0), ("micro-batch", 1), ("finish", None)]
    assert [(event.kind, event.batch_id) for event in done] == began
    assert sum(event.rows for event in done) == 6
    assert {event.query_id for event in done} == {query.id, None}
    assert done[0].offsets
    assert sum(file.rows for event in done for file in event.changes.files) == 6
    assert {event.destination for event in events} == {str(tmp_path / "out")}


def test_the_progress_of_spark_has_no_place_for_our_figures(spark, tmp_path):
    """As docs/operations.md says: an unknown number of rows, and what the query itself observes."""
    source = tmp_path / "in"
    spark.range(4).selectExpr("cast(id as string) value").write.text(str(source))
    stream = spark.readStream.text(str(source)).observe("mine", count(lit(1)).alias("rows"))
    sink = FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder()).with_uid("u").build()
    query = sink.start(stream, checkpoint_location=str(tmp_path / "cp"), available_now=True)
    query.awaitTermination()
    [progress] = [one for one in query.recentProgress if one["numInputRows"]]
    assert progress["sink"]["numOutputRows"] == -1
    assert progress["observedMetrics"].keys() == {"mine"}
    assert query.reports[0].rows == 4
