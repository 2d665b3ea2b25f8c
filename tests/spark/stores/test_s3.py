"""Exactly once on S3, whatever is killed, for whoever lists the bucket."""

from __future__ import annotations

import io
import json
import random
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.servers import S3Server
from tests.spark import inputs, outside
from tests.spark.drivers import Driver
from tests.spark.programs.s3_stream import s3_sink
from tests.storage.s3.s3_site import S3Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 4, 400


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["lines", pytest.param("parquet", marks=pytest.mark.nightly)])
def test_every_row_once_on_s3(kind: str, tmp_path: Path, moto_server: S3Server) -> None:
    """A driver is killed at a random moment, its JVM first; the next one goes on where it stopped.

    At the end nothing hidden and no upload of ours is left, and the uploads of others, one of them
    with a name like ours, are as they were.
    """
    for number in range(FILES):
        inputs.add_file(tmp_path / "source", number, rows=ROWS)
    site = S3Site(moto_server, prefix="out")
    foreign = begin_foreign_uploads(site)
    arguments = ("s3_stream", kind, tmp_path, site.path, json.dumps(moto_server.options))
    with Driver(*arguments, log=tmp_path / "log") as first:
        first.wait_for("started")
        outside.eventually(lambda: bool(records(site)), seconds=120)
        time.sleep(random.uniform(0, 2))  # noqa: S311 - a moment, not a secret
        first.kill_jvm()
        published = data(site)
        with Driver(*arguments, log=tmp_path / "log") as second:
            second.wait_for("done")
            assert second.wait() == 0
    sink = s3_sink(kind, site.path, moto_server.options)
    sink.recover()
    visible = data(site)
    assert published.items() <= visible.items()
    assert ids(kind, visible) == list(range(FILES * ROWS))
    assert sorted((upload["Key"], upload["UploadId"]) for upload in site.uploads()) == sorted(foreign)
    assert [path for path in site.names() if ".inprogress." in path] == []


def begin_foreign_uploads(site: S3Site) -> list[tuple[str, str]]:
    """Uploads of another program, and of a filesink that has another identity."""
    keys = ["out/theirs.parquet", "out/part-0123abcd-0000-8000-8000-000000000001-0.parquet", "elsewhere/x"]
    return [
        (key, site.client.create_multipart_upload(Bucket=site.bucket, Key=key)["UploadId"]) for key in keys
    ]


def records(site: S3Site) -> list[str]:
    """Epochs that are complete."""
    return [path for path in site.names() if path.endswith(".complete")]


def data(site: S3Site) -> dict[str, bytes]:
    """What readers take for data: no name on the way begins with ``.`` or ``_``."""
    names = [path for path in site.names() if not any(name[0] in "._" for name in path.split("/"))]
    return site.read(names)


def ids(kind: str, files: dict[str, bytes]) -> list[int]:
    """What a reader finds, sorted."""
    if kind == "parquet":
        tables = [pq.ParquetFile(io.BytesIO(data)).read() for data in files.values()]
        return sorted(number for table in tables for number in table["id"].to_pylist())
    return sorted(json.loads(line)["id"] for data in files.values() for line in data.splitlines())


@pytest.mark.timeout(300)
def test_a_batch_on_the_other_server(tmp_path: Path, rclone_server: S3Server, spark) -> None:
    """The data source and the sink write to a second implementation; pyarrow reads what is there."""
    inputs.add_file(tmp_path, 0, rows=100)
    df = spark.read.parquet(str(tmp_path))
    site = S3Site(rclone_server, prefix="out")
    sink = s3_sink("parquet", site.path, rclone_server.options)
    assert sink.write(df, txn_id="1").rows == 100
    assert sink.write(df, txn_id="1").already_committed
    assert ids("parquet", data(site)) == list(range(100))
