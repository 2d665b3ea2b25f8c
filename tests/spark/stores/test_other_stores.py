"""Spark writes to HDFS and Azure: a batch, and a stream whose parts stay open across micro-batches."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from azure.storage.blob import BlobServiceClient

from filesink import BucketAssigner, FileSink
from filesink.storage.api import Kind, Store
from filesink.storage.open import open_store
from formats import Encoder, ParquetWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.storage.hdfs.mini_hdfs import MiniHdfs

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Place = tuple[str, dict[str, Any]]


@pytest.fixture(params=["hdfs", "webhdfs", "azure"])
def place(request: pytest.FixtureRequest) -> Place:
    """A base path of a real server, and the options to reach it."""
    name = f"c{uuid.uuid4().hex}"
    if request.param == "azure":
        connection: str = request.getfixturevalue("azure_connection")
        BlobServiceClient.from_connection_string(connection).create_container(name)
        return f"az://{name}/out", {"connection_string": connection}
    cluster: MiniHdfs = request.getfixturevalue("hdfs_cluster")
    if request.param == "hdfs":
        return f"hdfs://127.0.0.1:{cluster.rpc_port}/{name}", {}
    return f"webhdfs://127.0.0.1:{cluster.web_port}/{name}", {"user": "root"}


def visible(store: Store, directory: str = "") -> dict[str, bytes]:
    """What a reader lists who skips names that begin with '.' or '_'."""
    found: dict[str, bytes] = {}
    for entry in store.list(directory):
        path = f"{directory}/{entry.name}".lstrip("/")
        if entry.name[0] in "._":
            continue
        if entry.kind is Kind.DIRECTORY:
            found |= visible(store, path)
        else:
            found[path] = store.read(path) or b""
    return found


def test_a_batch_arrives_once(spark: SparkSession, place: Place) -> None:
    """Every row is in a Parquet file of its bucket; writing it again under its id does nothing."""
    path, options = place
    sink = (
        FileSink.for_bulk_format(path, ParquetWriterFactory())
        .with_bucket_assigner(BucketAssigner.partition_bucket_assigner("part"))
        .with_storage_options(**options)
        .with_uid("batch")
        .build()
    )
    rows = spark.range(100).selectExpr("id", "id % 2 as part")
    assert sink.write(rows, txn_id="one").rows == 100
    assert sink.write(rows, txn_id="one").already_committed
    files = visible(open_store(path, options))
    assert {name.partition("/")[0] for name in files} == {"part=0", "part=1"}
    assert all(data.startswith(b"PAR1") for data in files.values())


def test_a_stream_arrives_once(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    """Two runs of a query, each with open parts that are put together in the end: every row once."""
    path, options = place
    source = tmp_path / "source"
    for run in range(2):
        spark.range(run * 10, run * 10 + 10, 1, 1).selectExpr("cast(id as string)").write.mode("append").text(
            str(source)
        )
        sink = (
            FileSink.for_row_format(path, Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_storage_options(**options)
            .with_uid("stream")
            .build()
        )
        stream = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(source))
        query = sink.start(stream, checkpoint_location=tmp_path / "checkpoint", available_now=True)
        query.awaitTermination()
    lines = b"".join(visible(open_store(path, options)).values()).split()
    assert sorted(map(int, lines)) == list(range(20))
