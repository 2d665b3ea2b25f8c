"""No public call answers a value of a wrong type with an error of Python's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compaction import FileCompactor, FileCompactStrategy
from filesink import (
    CollectSink,
    ConfigError,
    FileSink,
    FileSource,
    SparkCatalog,
    SparkSink,
    StreamFormat,
    SuccessFilePolicy,
)
from filesink.ledger.record import BatchWrite
from filesink.storage.address import StoreAddress
from formats import Encoder
from tests.fakes import World, records
from tests.package.wrong_types import WRONG, Call, calls, refused, untyped
from tests.sinks.letters import Letters

BUILDER = FileSink.for_row_format("/nowhere/base", Encoder.simple_string_encoder())
GOOD = {
    "base_path": "base",
    "form": Encoder.simple_string_encoder(),
    "table": "db.t",
    "metastore": SparkCatalog(),
    "catalog": {"type": "sql", "uri": "sqlite://", "warehouse": "warehouse"},
    "IcebergExport.table": "lake.t",
    "uris": "thrift://host:9083",
    "policies": [SuccessFilePolicy()],
    "extractor": "$day 00:00:00",
    "file_names": "${transactionId}",
    "watermark_column": "ts",
    "strategy": FileCompactStrategy(checkpoints=2),
    "compactor": FileCompactor.concat_file_compactor(),
    # With a real one: tests/spark/batches/test_wrong_types.py.
    "df": None,
    "checkpoint_location": "checkpoint",
    "batch_id": 0,
}
#: Calls that look at the value, and then need Spark, or something that was written to the path.
NOT_HERE = {
    *("FileSink.for_hive_table", "FileSink.foreach_batch", "FileSink.start", "FileSink.write"),
    *("FileSink.plan_sweep", "FileSink.recover", "FileSink.sweep"),
    *("CollectSink.foreach_batch", "CollectSink.results", "CollectSink.start", "CollectSink.write"),
    *("SparkSink.foreach_batch", "SparkSink.start", "SparkSink.write"),
    *("plan_erase", "erase"),  # of Parquet
    *("plan_copy", "copy"),  # once
    *("plan_rollback", "rollback"),  # to a version before ``adopt``, which comes first
    "BucketAssigner.table_bucket_assigner",  # of the only column
    *("FileSource.for_bulk_file_format", "FileSource.for_record_stream_format"),  # of no path at all
}
SOURCE = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "base")
INSTANCES = {
    "FileSinkBuilder": BUILDER,
    "FileSink": BUILDER.build(),
    "CollectSink": CollectSink("/nowhere/base"),
    "SparkSink": SparkSink(Letters(Path("/nowhere"))),
    "FileSourceBuilder": SOURCE,
    "FileSource": SOURCE.build(),
}
ALL = tuple(calls(GOOD, INSTANCES))


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to be in, with the base path of a sink that has written."""
    monkeypatch.chdir(tmp_path)
    world = World(open_store=StoreAddress(base_path=str(tmp_path / "base")))
    world.store().prepare()
    world.driver().run(BatchWrite(), world.job(records("1")))
    return tmp_path / "base"


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize("call", ALL, ids=str)
def test_a_wrong_value_is_refused_in_our_own_words(call: Call) -> None:
    """It is refused, or it can be written with: by then an error of ours has said what is wrong."""
    assert untyped(call) == {}


def test_every_room_is_looked_at() -> None:
    """The calls of all three packages are among them."""
    names = {str(call) for call in ALL}
    assert {
        "plan(bucket)",
        "ExcelWriterFactory(sheet_name)",
        "FileSink.write(df)",
        "DeadLetters(limit)",
    } <= names


@pytest.mark.usefixtures("base")
def test_nothing_else_is_wrong() -> None:
    """A call that is refused for another reason would say nothing of the value it is given."""
    assert {call.name for call in ALL if refused(call)} == NOT_HERE


@pytest.mark.parametrize("wrong", list(WRONG.values()), ids=list(WRONG))
def test_what_is_written_is_a_data_frame(wrong: object) -> None:
    """Each door says so before it looks at the base path."""
    sink = BUILDER.build()
    for door in (sink.write, lambda df: sink.foreach_batch(df, 0), start_of(sink)):
        with pytest.raises(ConfigError, match="takes a DataFrame of Spark, got"):
            door(wrong)


def start_of(sink: FileSink) -> Any:
    """The door of streams, with all else as it should be."""
    return lambda df: sink.start(df, checkpoint_location="/nowhere/checkpoint")


def test_classes_that_were_not_called() -> None:
    """The commonest slip of all has an error that says what to do."""
    with pytest.raises(ConfigError, match="the class FileCompactStrategy; call it"):
        BUILDER.enable_compact(FileCompactStrategy, FileCompactor.concat_file_compactor())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"made by FileSink\.for_row_format"):
        FileSink("/data/x")  # type: ignore[arg-type]
