"""Small files of a stream are merged before anybody sees them: with Spark, and by a Spark job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from compaction import FileCompactor, FileCompactStrategy, RewritingFileCompactor
from examples import flights
from filesink import BucketAssigner, FileSink, FileSinkBuilder, OutputFileConfig, RollingPolicy, StateError
from formats import Encoder, ParquetWriterFactory
from tests.spark import inputs, outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from compaction import InputFile
    from filesink.parts.file_format import FileFormat
    from formats.api import BinaryOutput

pytestmark = pytest.mark.spark
BASE_PATH = BucketAssigner.base_path_bucket_assigner()


@pytest.fixture
def flights_source(tmp_path: Path, batches: int) -> Path:
    """All flights of a year in as many files as there will be batches."""
    directory = tmp_path / "flights"
    directory.mkdir()
    table = flights.load()
    size = -(-table.num_rows // batches)
    for number in range(batches):
        pq.write_table(table.slice(number * size, size), directory / f"{number:02}.parquet")
    return directory


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("batches", [3, pytest.param(30, marks=pytest.mark.nightly)])
def test_micro_batches_of_flights_make_one_file(
    spark: SparkSession, flights_source: Path, batches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows with and without compaction, in many files and in one; merged by a Spark job.

    One query feeds both sinks, so that its own work is done once.
    """
    monkeypatch.setattr(RewritingFileCompactor, "on_driver", 0)
    plain = FileSink.for_bulk_format(tmp_path / "plain", ParquetWriterFactory())
    merged = FileSink.for_bulk_format(tmp_path / "merged", ParquetWriterFactory()).enable_compact(
        FileCompactStrategy(checkpoints=batches), FileCompactor.record_wise_file_compactor()
    )
    sinks = [builder.with_bucket_assigner(BASE_PATH).build() for builder in (plain, merged)]

    def both(df: DataFrame, batch_id: int) -> None:
        for sink in sinks:
            sink.foreach_batch(df, batch_id)

    schema = spark.read.parquet(str(flights_source)).schema
    df = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(flights_source))
    writer = df.writeStream.foreachBatch(both).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert [sink.finish() for sink in sinks] == [None, None]
    assert len(outside.visible(tmp_path / "plain")) == batches
    assert len(outside.visible(tmp_path / "merged")) == 1
    assert outside.hidden(tmp_path / "merged") == []
    before, after = (sorted_table(tmp_path / name) for name in ("plain", "merged"))
    assert before.num_rows == 336_776
    assert before.equals(after)


def sorted_table(base: Path) -> pa.Table:
    """All rows below ``base``, in the order of all their columns."""
    table = pq.read_table(base)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def lines(spark: SparkSession, source: Path) -> DataFrame:
    """One id per line."""
    return inputs.flights(spark, source).selectExpr("lpad(id, 9, '0') AS value")


class Counting(RewritingFileCompactor):
    """A user's own: joins files of lines, and counts them. Always as a Spark job."""

    on_driver = 0

    def rewrite(self, inputs: Sequence[InputFile], output: BinaryOutput, form: FileFormat) -> int:
        """See ``RewritingFileCompactor.rewrite``."""
        del form
        lines = 0
        for file in inputs:
            with file.open() as stream:
                data = stream.read()
            output.write(data)
            lines += data.count(b"\n")
        return lines


def test_on_off_on(spark: SparkSession, tmp_path: Path) -> None:
    """A stream that is restarted with compaction, without, and with another one has each row once.

    The last compactor is a user's own, and merges in a Spark job. Forgetting compaction is refused.
    """
    base, source, checkpoint = tmp_path / "out", tmp_path / "source", tmp_path / "checkpoint"
    plain = FileSink.for_row_format(base, Encoder.simple_string_encoder()).with_bucket_assigner(BASE_PATH)
    plain = plain.with_uid("lines").with_output_file_config(OutputFileConfig(part_suffix=".txt"))
    plain = plain.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    compacting = plain.enable_compact(
        FileCompactStrategy(size_threshold="1MiB"), FileCompactor.concat_file_compactor()
    )
    own = plain.enable_compact(FileCompactStrategy(checkpoints=2), Counting())

    def run(builder: FileSinkBuilder, *files: int) -> int:
        for number in files:
            inputs.add_file(source, number, rows=20)
        query = builder.build().start(lines(spark, source), checkpoint_location=checkpoint)
        query.processAllAvailable()
        query.stop()
        return sum(report.metrics.get("merged_files_in", 0) for report in query.reports)

    run(compacting, 0)
    with pytest.raises(StateError, match="disable_compact"):
        plain.build().finish()
    assert outside.visible(base) == {}
    run(plain.disable_compact(), 1)
    plain.disable_compact().build().finish()
    assert outside.lines(base, ".txt") == expected(2)
    assert run(own, 2, 3) == 2
    own.build().finish()
    assert outside.lines(base, ".txt") == expected(4)
    assert len(outside.visible(base)) == 3
    assert outside.hidden(base) == []


def expected(files: int) -> list[str]:
    """The lines of the first files."""
    return [f"{number:09}" for number in range(files * 20)]
