"""What every door refuses before a byte is written, with one code whichever door it is. Needs no JVM.

Spark makes these calls on the driver, in a classic session, over Connect and for a pipeline alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructType

from filesink import ConfigError, FileSink, FilesinkError
from filesink.data_source.source import FileSinkDataSource
from filesink.errors import StorageError
from formats import ParquetWriterFactory
from tests.servers import KEY, SECRET, S3Server

ROWS = StructType().add("id", LongType())
Door = Callable[[dict[str, str]], object]


def source(options: dict[str, str]) -> FileSinkDataSource:
    """With the options as Spark hands them over."""
    return FileSinkDataSource({name.lower(): text for name, text in options.items()})


def batch(options: dict[str, str]) -> object:
    """``df.write.format("filesink")``, and INSERT INTO a view."""
    return source(options).writer(ROWS, overwrite=False)


def stream(options: dict[str, str]) -> object:
    """``df.writeStream.format("filesink")``, and a sink of a pipeline."""
    return source(options).streamWriter(ROWS, overwrite=False)


def refusal(door: Door, options: dict[str, str]) -> FilesinkError:
    """What the door says."""
    with pytest.raises(FilesinkError) as refused:
        door(options)
    return refused.value


DOORS = pytest.mark.parametrize("door", [batch, stream])


@DOORS
@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ({"path": ""}, "PATH_REQUIRED", "path"),
        ({"partSizes": "1MiB"}, "UNKNOWN_OPTION", "'partSize'"),
        ({"inactivityInterval": "1 min"}, "USE_FILESINK", "FileSink.for_"),
        ({"compaction": "true"}, "USE_FILESINK", "FileSink.for_"),
        ({"partitionCommitTrigger": "partition-time"}, "USE_FILESINK", "FileSink.for_"),
    ],
    ids=str,
)
def test_options(tmp_path: Path, door: Door, options: dict[str, str], code: str, word: str) -> None:
    """No path, an option that does not exist, one of what only FileSink can do."""
    found = refusal(door, {"path": str(tmp_path / "out"), **options})
    assert isinstance(found, ConfigError)
    assert found.code == code
    assert word in found.message
    assert [*tmp_path.iterdir()] == []


def test_a_table_of_a_catalog_is_refused_when_it_is_made(tmp_path: Path) -> None:
    """And not with each row that goes into it later: Spark asks for its columns with what a table has."""
    options = {"path": str(tmp_path), "owner": "me"}
    assert refusal(lambda given: source(given).schema(), options).code == "CATALOG_TABLE"


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials in any place where botocore looks."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("nowhere")
def test_no_credentials() -> None:
    """Before anything is sent."""
    path = "s3a://bucket-of-nobody/out"
    sink = FileSink.for_bulk_format(path, ParquetWriterFactory()).build()
    found = [refusal(door, {"path": path}) for door in (batch, stream, lambda _: sink.sweep())]
    assert {type(one) for one in found} == {StorageError}
    assert {one.code for one in found} == {"NO_CREDENTIALS"}


def test_a_bucket_that_is_not_there(moto_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not made."""
    settings = {
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": moto_server.options["endpoint_url"],
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }
    monkeypatch.setattr(FileSinkDataSource, "settings", settings)
    path = "s3a://bucket-that-is-not-there/out"
    sink: Any = FileSink.for_bulk_format(path, ParquetWriterFactory())
    sink = sink.with_storage_options(**moto_server.options).build()
    found = [refusal(door, {"path": path}) for door in (batch, stream, lambda _: sink.sweep())]
    assert {one.code for one in found} == {"NO_BUCKET"}, found
    buckets = moto_server.client().list_buckets()["Buckets"]
    assert "bucket-that-is-not-there" not in {bucket["Name"] for bucket in buckets}
