"""A PostgreSQL of the tests' own on the loopback interface, which they may kill and start again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from tests.servers import free_port

_STARTS_WITHIN = 60.0  # seconds
_ADMIN = "postgres"
#: Crashes of the tests are those of processes, not of the machine: nothing has to be on the disk.
_SETTINGS = {
    "fsync": "off",
    "max_prepared_transactions": "20",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
}


def binaries() -> Path | None:
    """Where the server's programs are: the newest of Debian's, or those on PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


class TestServer:
    """One server. It refuses to run as root, and then runs as ``postgres``.

    Args:
        directory: its own; it makes ``data`` there.
        programs: where the server's programs are.
        settings: other than the usual ones.
    """

    __test__ = False

    def __init__(self, directory: Path, programs: Path, settings: Mapping[str, str]) -> None:
        self._settings = {**_SETTINGS, **settings}
        self._data = directory / "data"
        self._log = directory / "log"
        self._programs = programs
        self._as = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        self.port = free_port()
        if self._as:
            shutil.chown(directory, "postgres", "postgres")
        initdb = ["initdb", "-D", str(self._data), "-U", _ADMIN, "-A", "trust", "--no-locale", "-E", "UTF8"]
        self._run([*initdb, "--no-sync"])
        # Who is called so has to know a password.
        rules = "host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (self._data / "pg_hba.conf").write_text(rules)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def conninfo(self) -> str:
        """How to get in."""
        return f"host=127.0.0.1 port={self.port} user={_ADMIN} dbname=postgres"

    def start(self) -> None:
        """Start it, after a crash as well; returns when it takes connections."""
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        program = str(self._programs / "postgres")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - ours
                [program, "-D", str(self._data), "-p", str(self.port), *settings],
                stdout=log, stderr=log, cwd="/", **self._as,
            )  # fmt: skip
        deadline = time.monotonic() + _STARTS_WITHIN
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.conninfo).close()
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server did not start: {self._log.read_text()[-1000:]}")

    def crash(self) -> None:
        """Stop it at once, as ``pg_ctl stop -m immediate``: no process of it does anything more."""
        self._stop(signal.SIGQUIT)

    @property
    def pid(self) -> int:
        """Its first process."""
        assert self._process is not None
        return self._process.pid

    def has_died(self) -> bool:
        """Whether somebody else has stopped it."""
        assert self._process is not None
        return self._process.poll() is not None

    def stop(self) -> None:
        """Stop it for good."""
        self._stop(signal.SIGQUIT)

    def log(self) -> str:
        """What it has written down."""
        return self._log.read_text()

    def _stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()

    def _run(self, command: list[str]) -> None:
        program = [str(self._programs / command[0]), *command[1:]]
        subprocess.run(program, check=True, capture_output=True, cwd="/", **self._as)  # noqa: S603 - ours


@contextlib.contextmanager
def running(**settings: str) -> Iterator[TestServer]:
    """A server that runs, with ``settings``; the test is skipped where none is installed."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL here; Debian and Ubuntu: apt-get install -y postgresql")
    # Not below pytest's directories, which only their owner may enter.
    with tempfile.TemporaryDirectory(prefix="filesink-postgres-") as directory:
        server = TestServer(Path(directory), programs, settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
