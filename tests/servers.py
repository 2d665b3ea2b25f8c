"""Real servers, such as speak S3, on free ports of the loopback interface, stopped by their own process."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

KEY, SECRET = "filesink-tests", "not-a-secret"
_STARTS_WITHIN = 60.0  # seconds, on a machine that is busy with other tests
_ENDS_WITHIN = 30.0
_STARTS = 3  # with another port each time


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
    program = str(Path(__file__).with_name("moto_program.py"))
    with running(lambda port: [sys.executable, program, str(port)], logs / "moto.log") as port:
        yield S3Server(name="moto", port=port)


@contextlib.contextmanager
def rclone(root: Path, logs: Path) -> Iterator[S3Server]:
    """rclone: ignores If-None-Match, cannot copy parts, and forgets an upload that is completed."""
    program = Path(sys.executable).with_name("rclone")
    command = [str(program), "serve", "s3", str(root)]
    command += ["--auth-key", f"{KEY},{SECRET}", "--config", "/dev/null", "--vfs-cache-mode", "off"]
    with running(lambda port: [*command, "--addr", f"127.0.0.1:{port}"], logs / "rclone.log") as port:
        yield S3Server(
            name="rclone",
            port=port,
            extra={"conditional_writes": "one_driver"},
            # With a range it sends the checksum of the whole.
            config={"response_checksum_validation": "when_required"},
        )


@contextlib.contextmanager
def ftp(root: Path, logs: Path) -> Iterator[int]:
    """A server of FTP that shows ``root`` to who has ``KEY`` and ``SECRET``; its port."""
    command = [sys.executable, "-W", "ignore", "-m", "pyftpdlib", "-i", "127.0.0.1", "-d", str(root)]
    command += ["-u", KEY, "-P", SECRET]
    with running(lambda port: [*command, "-p", str(port)], logs / "ftp.log") as port:
        yield port


@contextlib.contextmanager
def sftp(root: Path, logs: Path) -> Iterator[int]:
    """A server of SFTP, as ``ftp``."""
    program = str(Path(__file__).with_name("sftp_program.py"))
    command = [sys.executable, program]
    with running(lambda port: [*command, str(port), str(root), KEY, SECRET], logs / "sftp.log") as port:
        yield port


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on right now; somebody may a moment later."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: Callable[[int], list[str]], log: Path, *, cwd: Path | None = None) -> Iterator[int]:
    """A server's process, from when it listens on; its port.

    If somebody else takes the port before the server does, such as another process of the tests, the
    server ends and is started anew with another one.

    Args:
        command: starts the server, given a port.
        log: gets what it prints.
        cwd: the directory it runs in.

    Raises:
        RuntimeError: it does not start.
    """
    for _ in range(_STARTS):
        port = free_port()
        with log.open("wb") as output:
            server = subprocess.Popen(command(port), stdout=output, stderr=subprocess.STDOUT, cwd=cwd)  # noqa: S603 - ours
        try:
            if _comes_up(server, port):
                yield port
                return
        finally:
            _stop(server)
    raise RuntimeError(f"the server did not start: {log.read_text()[-500:]}")


def _comes_up(server: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _STARTS_WITHIN
    while server.poll() is None and time.monotonic() < deadline:
        if _listens(server, port):
            return True
        time.sleep(0.05)
    return False


def _listens(server: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it is this process that listens there; a connection would not tell."""
    with contextlib.suppress(psutil.NoSuchProcess):
        found = psutil.Process(server.pid).net_connections("tcp")
        return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in found)
    return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
