"""A standalone cluster of Spark on this machine: master and workers, each with a directory of its own.

Everything listens on the loopback interface alone, and whatever was started is killed with the block, by its
process id.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
_STARTS_WITHIN = 90.0  # seconds, on a busy machine


class Daemon:
    """A process of Spark's, and all that it starts.

    Args:
        main: its class below ``org.apache.spark.deploy``.
        directory: where it runs and logs.
    """

    def __init__(self, main: str, directory: Path, *arguments: str) -> None:
        directory.mkdir(parents=True)
        self.name = directory.name
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments]
        with (directory / "log").open("w") as log:
            self._process = subprocess.Popen(
                command, cwd=directory, stdout=log, stderr=log, env=environment(), start_new_session=True
            )

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def is_above(self, pid: int) -> bool:
        """Whether it has started this process, be it through others."""
        return pid in tree(self._process.pid)

    def kill(self) -> int:
        """SIGKILL for it, its executors and their Pythons; how many processes that were."""
        return kill_tree(self._process)


class Cluster:
    """A master and two workers of one core each; ``start_worker`` adds another.

    Args:
        directory: where the directories of the processes are made.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port, self._page = free_port(), free_port()
        self._daemons: list[Daemon] = []
        self.url = f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        try:
            ports = ("--port", str(self._port), "--webui-port", str(self._page))
            self._start("master.Master", "master", "--host", HOST, *ports)
            self.start_worker()
            self.start_worker()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()

    def start_worker(self) -> Daemon:
        """One more, once the master knows it."""
        before, name = self.workers(), f"worker-{len(self._daemons)}"
        size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", "work")
        worker = self._start("worker.Worker", name, "--host", HOST, *size, self.url)
        self.wait_for_workers(before + 1)
        return worker

    def worker_above(self, pid: int) -> Daemon:
        """The one that runs this process."""
        return next(daemon for daemon in self._daemons if daemon.is_above(pid))

    def oldest_worker(self) -> Daemon:
        """The first of those that live."""
        return next(daemon for daemon in self._daemons[1:] if daemon.is_alive())

    def workers(self) -> int:
        """How many are alive, as the master's page says; 0 while there is no master."""
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://{HOST}:{self._page}/json/") as page,
        ):
            return int(json.load(page)["aliveworkers"])
        return 0

    def wait_for_workers(self, number: int) -> None:
        """Until the master counts so many."""
        wait_until(lambda: self.workers() == number, what=f"{number} workers")

    def _start(self, main: str, name: str, *arguments: str) -> Daemon:
        daemon = Daemon(main, self._directory / name, *arguments)
        self._daemons.append(daemon)
        return daemon


def environment() -> dict[str, str]:
    """What Spark's programs need to know; workers do not find the version of pip's Spark by themselves."""
    return {
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # JVMs that live for a minute
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_SCALA_VERSION": "2.13",
    }


def kill_tree(process: subprocess.Popen[bytes]) -> int:
    """SIGKILL for a process of ours and all below it; how many there were."""
    pids = tree(process.pid) if process.poll() is None else []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    return len(pids)


def tree(root: int) -> list[int]:
    """A process and all below it, from the top."""
    command = ["ps", "-A", "-o", "pid=,ppid="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    found = [root] if root in parents else []
    for pid in found:  # grows meanwhile
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_until(holds: Callable[[], bool], *, what: str, seconds: float = _STARTS_WITHIN) -> None:
    """Until it does; ends the program otherwise."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.1)
