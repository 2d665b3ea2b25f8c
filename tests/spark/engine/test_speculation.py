"""Twins of a task, as speculation starts them on a cluster of several hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pyspark
import pytest

from filesink import FileSink
from formats import Encoder
from tests.servers import free_port
from tests.spark import outside
from tests.spark.drivers import Driver
from tests.spark.programs.speculative_write import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_SPARK_HOME = Path(pyspark.__file__).parent
_HOSTS = ("127.0.0.2", "127.0.0.3")  # Spark starts no twin on the host of its sibling


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A standalone master and two workers, each on an address of its own; the master's URL."""
    for host in _HOSTS:
        check_host(host)
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        stack.enter_context(daemon(tmp_path, "master.Master", "--host", "127.0.0.1", "--port", port))
        for host in _HOSTS:
            work = ("--cores", 1, "--memory", "2g", "--work-dir", tmp_path / host)
            stack.enter_context(daemon(tmp_path, "worker.Worker", "--host", host, *work, master))
        yield master


def check_host(host: str) -> None:
    """Skip the test where the address cannot be used."""
    try:
        free_port(host)
    except OSError as error:
        pytest.skip(f"{host} cannot be bound ({error.strerror}), and twins need several hosts")


class daemon:  # noqa: N801 - reads as a function
    """A process of a standalone cluster, for the length of a block."""

    def __init__(self, directory: Path, main: str, *arguments: object) -> None:
        java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ['PATH']}")
        assert java is not None
        command = [java, "-Xmx256m", "-cp", f"{_SPARK_HOME}/jars/*", f"org.apache.spark.deploy.{main}"]
        options = ("--webui-port", "0")
        with (directory / f"{main}.log").open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603 - Spark's own daemons
                [*command, *options, *map(str, arguments)],
                stdout=log,
                stderr=log,
                # A worker looks for the version when it starts an executor, and pip's Spark does not say.
                env={**os.environ, "SPARK_HOME": str(_SPARK_HOME), "SPARK_SCALA_VERSION": "2.13"},
            )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        """End it with the executors below it."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                child.kill()
        self._process.kill()
        self._process.wait()


def test_twins_write_each_row_once(cluster: str, tmp_path: Path) -> None:
    """The slow attempt loses to its twin; the rows stay single, and a sweep leaves nothing of the loser.

    Its file goes when the write ends, or with its worker. An executor that is killed removes nothing, and
    of a file that came after the write had ended only its age tells that it is dead.
    """
    (tmp_path / "attempts").mkdir()
    base = tmp_path / "out"
    with Driver("speculative_write", cluster, tmp_path, log=tmp_path / "log") as driver:
        driver.wait_for("done")
        driver.wait()
    assert {"0-0", "0-1"} <= {path.name for path in (tmp_path / "attempts").iterdir()}
    assert outside.lines(base, ".txt") == [f"{number:040}" for number in range(ROWS)]
    swept = FileSink.for_row_format(base, Encoder.simple_string_encoder()).build()

    def is_clean() -> bool:
        swept.sweep(older_than="1 ms")
        return outside.hidden(base) == []

    outside.eventually(is_clean)
