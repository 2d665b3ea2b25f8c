"""A small S3 server on this machine, for those who have none at hand; needs moto and flask.

The server runs as a process of its own and is stopped with the block.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import boto3

_KEY, _SECRET = "demo", "not-a-secret"
_STARTS_WITHIN = 60.0  # seconds


@contextlib.contextmanager
def running(bucket: str) -> Iterator[dict[str, Any]]:
    """Storage options of a new server with one empty bucket; it keeps everything in memory."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    server = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        options = {
            "key": _KEY,
            "secret": _SECRET,
            "endpoint_url": f"http://127.0.0.1:{port}",
            "client_kwargs": {"region_name": "us-east-1"},
        }
        client(options).create_bucket(Bucket=bucket)
        yield options
    finally:
        server.terminate()
        server.wait(30)


def client(options: dict[str, Any]) -> Any:
    """A client that has nothing to do with the sink."""
    return boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        **options["client_kwargs"],
    )


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        time.sleep(0.05)
