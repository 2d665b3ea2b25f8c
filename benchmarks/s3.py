"""S3 without a JVM: upload throughput, completing many files, memory of many open parts.

The server is rclone's, on this machine: near, where its own work and that of the client are all there
is to measure, and far, behind a proxy with a round trip and a limit to each connection.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import s3fs
from botocore.config import Config

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the servers are those of the tests

from filesink.commit.committer import FileCommitter
from filesink.parts.committables import PendingFile
from filesink.ports import SerialRunner
from filesink.storage.open import open_store
from paired import Contender, compare, keep, seconds
from tests.servers import S3Server, rclone, running

MIB = 1 << 20
PART = 8 * MIB
THREADS = 10
FILE = 64 * MIB
ROUND_TRIP_MS = 20
CONNECTION_MB = 85  # a second; what Amazon tells to reckon with for each request


def main() -> None:
    """Start the servers, then measure."""
    arguments = _arguments()
    if arguments.open_parts:
        print(peak_of(arguments.open_parts, arguments.endpoint, arguments.bucket))
        return
    with tempfile.TemporaryDirectory() as place, server_below(Path(place)) as server:
        with slowly(server) as far:
            upload(server, arguments)
            upload(far, arguments)
            clients(far, arguments)
            completions(far, arguments)
        memory(server)


def upload(server: S3Server, arguments: argparse.Namespace) -> None:
    """The same bytes by our store, by hand, and by s3fs; one file after the other."""
    bucket, data = server.new_bucket(), os.urandom(FILE)
    options = {**server.options, "part_size": PART, "max_concurrency": THREADS}
    store = open_store(f"s3://{bucket}/ours", options)
    ours = Contender(name="filesink", measure=partial(_repeat, partial(_ours, store, data), arguments))
    by_hand = partial(_by_hand, _client(server), bucket, data)
    for name, write in (
        ("boto3 by hand, 10 threads", by_hand),
        ("s3fs open('wb')", partial(_by_s3fs, _s3fs(server), bucket, data)),
    ):
        baseline = Contender(name=name, measure=partial(_repeat, write, arguments))
        title = f"S3 upload of {arguments.files} x 64 MiB, {server.name}, against {name}"
        compare(title, baseline=baseline, ours=ours, unit="s", rounds=arguments.rounds)


def clients(server: S3Server, arguments: argparse.Namespace) -> None:
    """boto3 in threads against aiobotocore through s3fs: the calls that a sink makes."""
    bucket = server.new_bucket()
    fs = _s3fs(server)
    compare(
        "S3 clients, 400 files of 64 KiB as uploads of one part",
        baseline=Contender(
            name="aiobotocore by s3fs", measure=partial(seconds, partial(_small_by_s3fs, fs, bucket))
        ),
        ours=Contender(
            name="boto3", measure=partial(seconds, partial(_small_by_boto3, _client(server), bucket))
        ),
        unit="s",
        rounds=arguments.rounds,
    )


def completions(server: S3Server, arguments: argparse.Namespace) -> None:
    """The commit of 1,000 pending files, and the same one after the other."""
    bucket = server.new_bucket()

    def measure(commit: Callable[[Any], FileCommitter]) -> float:
        store = open_store(f"s3://{bucket}/out", server.options)
        with ThreadPoolExecutor(32) as pool:
            pending = list(pool.map(partial(_pending, store), range(arguments.pending)))
        committer = commit(store)
        committer.commit([])  # a driver that goes on has seen its last epoch through
        return seconds(lambda: committer.commit(pending))

    compare(
        f"S3 completing {arguments.pending} pending files",
        baseline=Contender(
            name="one by one", measure=partial(measure, lambda store: FileCommitter(store, SerialRunner()))
        ),
        ours=Contender(
            name="as committed", measure=partial(measure, lambda store: FileCommitter(store, store.runner))
        ),
        unit="s",
        rounds=1,  # a serial commit takes a minute and more
        warm_ups=0,
    )


def memory(server: S3Server) -> None:
    """The peak of a process with 200 open files, each with a part almost full."""
    bucket = server.new_bucket()
    command = [sys.executable, __file__, "--open-parts", "200", "--bucket", bucket]
    command += ["--endpoint", server.options["endpoint_url"]]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    limit = 512 * MIB + 200 * 5 * MIB
    found = {"peak": f"{peak / MIB:,.0f} MiB", "limit": f"{limit / MIB:,.0f} MiB"}
    print(f"\nPeak memory of 200 open parts of 5 MiB: {found['peak']} (limit {found['limit']})")
    keep("S3 memory of 200 open parts", {"facts": found})


def peak_of(files: int, endpoint: str, bucket: str) -> int:
    """Bytes; run in a process of its own."""
    options = {**S3Server(name="", port=0).options, "endpoint_url": endpoint, "part_size": 5 * MIB}
    store = open_store(f"s3://{bucket}/out", {**options, "conditional_writes": "one_driver"})
    outputs = [store.create(f".h{number}", target=f"t{number}") for number in range(files)]
    for _ in range(3):  # two parts of each are sent, the third waits
        for output in outputs:
            for _ in range(5):
                output.write(bytes(MIB - 1))
    peak = _peak_so_far()
    for output in outputs:
        output.discard()
    store.sync()
    return peak


def _peak_so_far() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None  # noqa: S101 - Linux has had it for ever
    return int(found[1]) * 1024


def _ours(store: Any, data: bytes) -> None:
    target = f"t{uuid.uuid4()}"
    output = store.create(f".{target}", target=target)
    for start in range(0, len(data), MIB):
        output.write(memoryview(data)[start : start + MIB])
    store.publish(output.close(), target)


def _by_hand(client: Any, bucket: str, data: bytes) -> None:
    key = f"hand/{uuid.uuid4()}"
    upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]

    def send(number: int) -> dict[str, Any]:
        piece = memoryview(data)[(number - 1) * PART : number * PART]
        made = client.upload_part(
            Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=bytes(piece)
        )
        return {"PartNumber": number, "ETag": made["ETag"]}

    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(send, range(1, -(-len(data) // PART) + 1)))
    client.complete_multipart_upload(
        Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}
    )


def _by_s3fs(fs: Any, bucket: str, data: bytes) -> None:
    with fs.open(f"{bucket}/s3fs/{uuid.uuid4()}", "wb") as output:
        for start in range(0, len(data), MIB):
            output.write(memoryview(data)[start : start + MIB])


def _small_by_boto3(client: Any, bucket: str) -> None:
    body = bytes(64 << 10)

    def upload(number: int) -> None:
        key = f"small/{uuid.uuid4()}-{number}"
        made = client.create_multipart_upload(Bucket=bucket, Key=key)
        names = {"Bucket": bucket, "Key": key, "UploadId": made["UploadId"]}
        part = client.upload_part(PartNumber=1, Body=body, **names)
        parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
        client.complete_multipart_upload(MultipartUpload={"Parts": parts}, **names)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(upload, range(400)))


def _small_by_s3fs(fs: Any, bucket: str) -> None:
    body = bytes(64 << 10)
    at_once = asyncio.Semaphore(32)

    async def upload(number: int) -> None:
        async with at_once:
            key = f"small/{uuid.uuid4()}-{number}"
            made = await fs._call_s3("create_multipart_upload", Bucket=bucket, Key=key)  # noqa: SLF001
            names = {"Bucket": bucket, "Key": key, "UploadId": made["UploadId"]}
            part = await fs._call_s3("upload_part", PartNumber=1, Body=body, **names)  # noqa: SLF001
            parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
            await fs._call_s3(  # noqa: SLF001
                "complete_multipart_upload", MultipartUpload={"Parts": parts}, **names
            )

    async def all_of_them() -> None:
        await asyncio.gather(*(upload(number) for number in range(400)))

    s3fs.core.sync(fs.loop, all_of_them)


def _pending(store: Any, number: int) -> PendingFile:
    target = f"part-{uuid.uuid4()}-{number}"
    output = store.create(f".{target}", target=target)
    output.write(b"x" * 1000)
    return PendingFile(bucket="", target=target, staged=output.close(), rows=1, size=1000)


def _repeat(write: Callable[[], None], arguments: argparse.Namespace) -> float:
    return seconds(lambda: [write() for _ in range(arguments.files)])


def _client(server: S3Server) -> Any:
    options = server.options
    return boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        config=Config(s3={"addressing_style": "path"}, max_pool_connections=32),
        **options["client_kwargs"],
    )


def _s3fs(server: S3Server) -> Any:
    options = server.options
    return s3fs.S3FileSystem(
        key=options["key"],
        secret=options["secret"],
        endpoint_url=options["endpoint_url"],
        client_kwargs=options["client_kwargs"],
        config_kwargs={"s3": {"addressing_style": "path"}, "max_pool_connections": 32},
        skip_instance_cache=True,
    )


@contextlib.contextmanager
def server_below(place: Path) -> Iterator[S3Server]:
    """A server of rclone, its files in a directory of ``place``."""
    data = place / "data"
    data.mkdir()
    with rclone(data, place) as server:
        yield replace(server, name="near")


@contextlib.contextmanager
def slowly(server: S3Server) -> Iterator[S3Server]:
    """The same server, farther away."""
    program = str(Path(__file__).with_name("slow_proxy.py"))
    numbers = list(map(str, (server.port, ROUND_TRIP_MS / 2, CONNECTION_MB)))
    with running(lambda port: [sys.executable, program, str(port), *numbers], Path(os.devnull)) as port:
        yield replace(server, name="far", port=port)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3, help="pairs to measure")
    parser.add_argument("--files", type=int, default=4, help="of 64 MiB each, one after the other")
    parser.add_argument("--pending", type=int, default=1000, help="files to complete")
    parser.add_argument("--open-parts", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", default="", help=argparse.SUPPRESS)
    parser.add_argument("--bucket", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
