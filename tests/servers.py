"""Real servers that speak S3, on free ports of the loopback interface, stopped by their own process."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KEY, SECRET = "filesink-tests", "not-a-secret"
_STARTS_WITHIN = 60.0  # seconds, on a machine that is busy with other tests


@dataclass(frozen=True)
class S3Server:
    """A server, and what a sink has to be told about it."""

    name: str
    port: int
    extra: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """Storage options of this server."""
        return {
            "key": KEY,
            "secret": SECRET,
            "endpoint_url": f"http://127.0.0.1:{self.port}",
            "client_kwargs": {"region_name": "us-east-1"},
            # Fewer attempts than by default: some tests provoke errors that no attempt can cure.
            "config_kwargs": {
                "s3": {"addressing_style": "path"},
                "retries": {"mode": "adaptive", "total_max_attempts": 2},
                **self.config,
            },
            **self.extra,
        }

    def client(self) -> Any:
        """A client of the tests' own."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.options["endpoint_url"],
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, max_pool_connections=32),
        )

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"t-{uuid.uuid4().hex[:20]}"
        self.client().create_bucket(Bucket=name)
        return name


@contextlib.contextmanager
def moto(logs: Path) -> Iterator[S3Server]:
    """moto: knows If-None-Match; answers a repeated completion with success."""
    port = free_port()
    program = str(Path(__file__).with_name("moto_program.py"))
    with running([sys.executable, program, str(port)], logs / "moto.log", port):
        yield S3Server(name="moto", port=port)


@contextlib.contextmanager
def rclone(root: Path, logs: Path) -> Iterator[S3Server]:
    """rclone: ignores If-None-Match, cannot copy parts, and forgets an upload that is completed."""
    port = free_port()
    program = Path(sys.executable).with_name("rclone")
    command = [str(program), "serve", "s3", str(root), "--addr", f"127.0.0.1:{port}"]
    command += ["--auth-key", f"{KEY},{SECRET}", "--config", "/dev/null", "--vfs-cache-mode", "off"]
    with running(command, logs / "rclone.log", port):
        yield S3Server(
            name="rclone",
            port=port,
            extra={"conditional_writes": "one_driver"},
            # With a range it sends the checksum of the whole.
            config={"response_checksum_validation": "when_required"},
        )


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], log: Path, port: int) -> Iterator[None]:
    """A server's process, from its first answer on."""
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603 - our own
    try:
        _wait_for(port, server, log)
        yield
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the server did not start: {log.read_text()[-500:]}")
        time.sleep(0.05)
