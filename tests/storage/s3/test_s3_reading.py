"""What a sink has written to a bucket is read back, wherever in it, by others and by itself."""

from __future__ import annotations

import os
from typing import Any

import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from filesink.storage.address import StoreAddress
from filesink.storage.s3 import client as s3_client
from filesink.storage.s3 import session as s3_session
from property_tests.real_epochs import expected, run_query
from tests.servers import KEY, SECRET, S3Server
from tests.storage.s3.s3_site import S3Site


def reader(server: S3Server) -> pyarrow.fs.S3FileSystem:
    """Arrow's own client, which shares nothing with the sink's."""
    return pyarrow.fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        region="us-east-1",
        scheme="http",
        endpoint_override=f"127.0.0.1:{server.port}",
    )


@pytest.mark.parametrize("prefix", ["", "a b/é+c%20d/x=1", "100%/a&b;c'd(e)!~@,$#?"])
def test_a_directory_of_any_name_is_read_back(moto_server: S3Server, prefix: str) -> None:
    """The bucket itself, or a prefix whose characters mean something in a URL: every row once."""
    site = S3Site(moto_server, prefix=prefix)
    run_query("parquet", StoreAddress(base_path=site.path, storage_options=moto_server.options), batches=1)
    directory = f"{site.bucket}/{prefix}".rstrip("/")
    table = pq.read_table(directory, filesystem=reader(moto_server), partitioning=None)
    assert sorted(table["row"].to_pylist()) == expected(1)
    store, again = site.store(), []
    for path in site.visible():
        if not path.startswith("_"):
            with store.open_input(path) as opened:
                again += pq.ParquetFile(opened).read(columns=["row"])["row"].to_pylist()
    assert sorted(again) == expected(1)


def test_whoever_pays_says_so_with_every_request(moto_server: S3Server) -> None:
    """A bucket of somebody else refuses any request that does not; retries and listings count as well."""
    site = S3Site(moto_server, prefix="out", options={"requester_pays": True})
    options = {**moto_server.options, **site.options}
    asked: dict[str, Any] = {}

    def note(request: Any, event_name: str, **_: object) -> None:
        asked.setdefault(event_name.rpartition(".")[2], request.headers.get("x-amz-request-payer"))

    client = s3_session.client_of(s3_client.options_of(options), os.getpid())
    client.meta.events.register("before-send.s3", note)
    try:
        run_query("lines", StoreAddress(base_path=site.path, storage_options=options), batches=2)
        site.store().delete("nothing")
    finally:
        client.meta.events.unregister("before-send.s3", note)
    assert {"CompleteMultipartUpload", "ListObjectsV2", "ListMultipartUploads", "UploadPart"} <= set(asked)
    assert set(asked.values()) <= {"requester", b"requester"}, asked
