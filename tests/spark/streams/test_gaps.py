"""A checkpoint that is newer than the base path: rows would be missing, and nobody would know."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from filesink import BucketAssigner, FileSink, IdentityError
from formats import Encoder

pytestmark = pytest.mark.spark


def test_a_base_path_older_than_the_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Batches that went to a base path which was then restored from a backup are not lost in silence."""
    sink = FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).with_uid("lines")
    feed(spark, tmp_path, sink.build(), "one")
    shutil.copytree(tmp_path / "out", tmp_path / "backup", copy_function=shutil.copy2)
    feed(spark, tmp_path, sink.build(), "two")
    shutil.rmtree(tmp_path / "out")
    shutil.move(tmp_path / "backup", tmp_path / "out")
    with pytest.raises(StreamingQueryException) as failed:
        feed(spark, tmp_path, sink.build(), "three")
    assert isinstance(failed.value.__cause__, IdentityError)
    assert failed.value.__cause__.code == "BATCHES_MISSING"
    feed(spark, tmp_path, sink.on_new_query("append").build(), "four")
    parts = [path for path in (tmp_path / "out").iterdir() if path.name.startswith("part-")]
    assert sorted(line for part in parts for line in part.read_text().split()) == ["four", "one", "three"]


def feed(spark: SparkSession, tmp_path: Path, sink: FileSink, line: str) -> None:
    """Stream one more line through ``sink``."""
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / f"{line}.txt").write_text(f"{line}\n")
    stream = spark.readStream.text(str(tmp_path / "in"))
    sink.start(stream, checkpoint_location=tmp_path / "checkpoint", available_now=True).awaitTermination()
