"""Listeners of a stream that Spark runs, on the driver."""

from __future__ import annotations

import pytest
from pyspark.sql.functions import count, lit
from pyspark.sql.streaming import StreamingQueryListener

import filesink
from filesink import Encoder, EpochBegan, EpochComplete, FileSink, RollingPolicy
from tests.spark.outside import eventually

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
    assert progress["sink"].metrics == {}
    assert progress["observedMetrics"].keys() == {"mine"}
    assert query.reports[0].rows == 4


def test_nor_has_it_for_those_of_the_data_source(spark, tmp_path):
    """Which only lets Spark count the rows."""
    source = tmp_path / "in"
    spark.range(4).selectExpr("cast(id as string) value").write.text(str(source))
    filesink.register(spark)
    query = (
        spark.readStream.text(str(source))
        .writeStream.format("filesink")
        .options(format="text", path=str(tmp_path / "out"), checkpointLocation=str(tmp_path / "cp"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    [progress] = [one for one in query.recentProgress if one["numInputRows"]]
    assert progress["sink"]["numOutputRows"] == 4
    assert progress["sink"].metrics == {}
    assert not progress["observedMetrics"]


def test_what_a_function_observes_of_its_batch_does_not_come_to_spark(spark, tmp_path):
    """It belongs to the job of the function: only the input of the query is observed."""
    source = tmp_path / "in"
    spark.range(4).selectExpr("cast(id as string) value").write.text(str(source))

    def each(batch, _number):
        batch.observe("inside", count(lit(1)).alias("rows")).write.format("noop").mode("append").save()

    query = (
        spark.readStream.text(str(source))
        .observe("outside", count(lit(1)).alias("rows"))
        .writeStream.foreachBatch(each)
        .option("checkpointLocation", str(tmp_path / "cp"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    [progress] = [one for one in query.recentProgress if one["numInputRows"]]
    assert progress["observedMetrics"].keys() == {"outside"}


class Heard(StreamingQueryListener):
    """Takes down which epochs were complete when Spark told of their micro-batch."""

    def __init__(self, epochs):
        self.epochs = epochs
        self.found = []

    def onQueryStarted(self, event):  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event):  # noqa: N802 - Spark's name
        key = str(event.progress.id), event.progress.batchId
        self.found.append((event.progress.batchId, self.epochs.get(key)))

    def onQueryIdle(self, event):  # noqa: N802 - Spark's name
        pass

    def onQueryTerminated(self, event):  # noqa: N802 - Spark's name
        pass


def test_a_listener_of_spark_finds_the_epoch_of_its_micro_batch(spark, tmp_path):
    """By query and number; it is complete before Spark tells of the micro-batch."""
    source, epochs = tmp_path / "in", {}
    spark.range(6).selectExpr("cast(id as string) value").repartition(3).write.text(str(source))

    def keep(event):
        if isinstance(event, EpochComplete):
            epochs[event.query_id, event.batch_id] = event

    sink = (
        FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .with_listener(keep)
        .with_uid("joined")
        .build()
    )
    heard = Heard(epochs)
    spark.streams.addListener(heard)
    try:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
        query = sink.start(stream, checkpoint_location=str(tmp_path / "cp"), available_now=True)
        query.awaitTermination()
        eventually(lambda: len(heard.found) == 3)
    finally:
        spark.streams.removeListener(heard)
    assert [number for number, _ in heard.found] == [0, 1, 2]
    assert sum(event.rows for _, event in heard.found) == 6
    assert all(len(event.changes.files) == 1 for _, event in heard.found)
