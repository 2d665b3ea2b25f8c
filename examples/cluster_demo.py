"""A cluster in which workers and drivers die: every flight is there exactly once, whoever counts.

    python examples/cluster_demo.py [--output demo-output/cluster] [--ship installed] [--store directory]

Starts Spark's standalone master with two workers, and a small S3 server, on this machine. A job streams the
flights in three micro-batches:

    0   a worker is killed in the midst of a task
    1   a worker is killed when the epoch is decided and not yet published
    2   the driver is killed there, and the job submitted again

It does so for each way to bring filesink to the workers, and on both stores. SIGKILL is for a worker, its
executor and their Pythons; another worker takes its place. The rows are compared with the source, by a reader
that knows nothing of filesink.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import filesink
import flights
import s3_server
from cluster import packing, readers
from cluster.standalone import HOST, SPARK_HOME, Cluster, environment, kill_tree, wait_until

JOB = Path(__file__).resolve().parent / "cluster" / "job.py"
BUCKET = "demo"
#: Which way is shown with which store, unless asked for others.
SHOWN = (("installed", "directory"), ("archive", "s3"), ("artifact", "directory"))
_STARTED = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipping:
    """How workers come to have filesink.

    Attributes:
        python: what they run.
        submit: arguments of ``spark-submit``.
        job: arguments of the job.
    """

    python: str
    submit: tuple[str, ...] = ()
    job: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where the rows go, and how a stranger reads them.

    Attributes:
        base: the sink's base path.
        read: all rows that are visible.
        options: of the store, for filesink.
    """

    base: str
    read: Callable[[], pa.Table]
    options: dict[str, Any] = field(default_factory=dict)


class Story:
    """One stream and what happens to it.

    Args:
        cluster: where it runs.
        shipping: how the workers get filesink.
        to: where the rows go.
        source: what it reads.
        directory: for its checkpoint, signals and log; shared by all processes.
    """

    def __init__(
        self, cluster: Cluster, shipping: Shipping, to: Destination, *, source: Path, directory: Path
    ) -> None:
        self._cluster, self._shipping, self._to = cluster, shipping, to
        self._source, self._directory = source, directory
        self._signals = directory / "signals"
        self._signals.mkdir(parents=True)

    def tell(self) -> bool:
        """Kill and restart; whether every row is there once."""
        with self._submitted() as driver:
            self._kill_in_a_task(driver)
            self._kill_a_worker_after_deciding(driver)
            self._kill_the_driver_after_deciding(driver)
        with self._submitted() as driver:
            if driver.wait(300):
                sys.exit(f"the job failed, see {self._directory / 'driver.log'}")
        return self._is_good()

    def _kill_in_a_task(self, driver: subprocess.Popen[bytes]) -> None:
        self._wait_for("task", driver)
        worker = self._cluster.worker_above(int((self._signals / "task").read_text()))
        count = worker.kill()
        say(f"micro-batch 0: SIGKILL for {worker.name} in the midst of a task, {count} processes")
        self._replace()

    def _kill_a_worker_after_deciding(self, driver: subprocess.Popen[bytes]) -> None:
        self._wait_for("decided-1", driver)
        rows = self._to.read().num_rows
        worker = self._cluster.oldest_worker()
        count = worker.kill()
        say(f"micro-batch 1: decided, {rows:,} rows visible; SIGKILL for {worker.name}, {count} processes")
        (self._signals / "go-1").touch()
        self._replace()

    def _kill_the_driver_after_deciding(self, driver: subprocess.Popen[bytes]) -> None:
        self._wait_for("decided-2", driver)
        before = self._to.read().num_rows
        count = kill_tree(driver)
        after = self._to.read().num_rows
        (self._signals / "go-2").touch()
        say(f"micro-batch 2: decided, {before:,} rows visible; SIGKILL for the driver, {count} processes")
        say(f"nobody runs: {after:,} of {flights.ROWS:,} rows visible; the job is submitted again")

    def _replace(self) -> None:
        self._cluster.wait_for_workers(1)
        worker = self._cluster.start_worker()
        say(f"the master counts one worker; {worker.name} takes its place")

    def _wait_for(self, signal: str, driver: subprocess.Popen[bytes]) -> None:
        def is_there() -> bool:
            if driver.poll() is not None:
                sys.exit(f"the job ended before '{signal}', see {self._directory / 'driver.log'}")
            return (self._signals / signal).exists()

        wait_until(is_there, what=f"the signal '{signal}'")

    def _is_good(self) -> bool:
        more, fewer = readers.differences(self._to.read(), flights.load())
        checked = filesink.fsck(self._to.base, self._to.options or None)
        say(f"a reader finds {more} rows too many and misses {fewer} of {flights.ROWS:,}; fsck: {checked}")
        return more == fewer == 0 and checked.is_good

    @contextlib.contextmanager
    def _submitted(self) -> Iterator[subprocess.Popen[bytes]]:
        places = ("--source", str(self._source), "--base", self._to.base, "--signals", str(self._signals))
        job = (str(JOB), *places, "--checkpoint", str(self._directory / "checkpoint"), *self._shipping.job)
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self._cluster.url]
        for setting in (
            f"spark.driver.host={HOST}",
            "spark.ui.enabled=false",
            "spark.sql.session.timeZone=UTC",
        ):
            command += ["--conf", setting]
        with (self._directory / "driver.log").open("a") as log:
            driver = subprocess.Popen(
                [*command, *self._shipping.submit, *job],
                cwd=self._directory, stdout=log, stderr=log, start_new_session=True,
                env={
                    **environment(),
                    "PYSPARK_PYTHON": self._shipping.python,
                    "PYSPARK_DRIVER_PYTHON": sys.executable,
                    "STORAGE_OPTIONS": json.dumps(self._to.options),
                },
            )  # fmt: skip
        try:
            yield driver
        finally:
            kill_tree(driver)


def main() -> int:
    """Run the demo; the exit status is 0 if every flight is there exactly once, each time."""
    arguments = _arguments()
    output = arguments.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    flights.prepare(output / "source")
    shown = SHOWN if arguments.ship is None else ((arguments.ship, arguments.store),)
    good = True
    with Cluster(output / "cluster") as cluster:
        say(f"{cluster.url} has {cluster.workers()} workers, each with a directory of its own")
        for ship, store in shown:
            directory = output / f"{ship}-{store}"
            with destination(store, directory) as to:
                say(f"filesink comes to the workers as '{ship}', rows go to {to.base}")
                story = Story(
                    cluster, shipping(ship, output / ship), to, source=output / "source", directory=directory
                )
                good &= story.tell()
    say("every flight is there exactly once" if good else "FAILED")
    return 0 if good else 1


def shipping(ship: str, directory: Path) -> Shipping:
    """Prepare what workers need; ``directory`` is for what is made."""
    directory.mkdir()
    if ship == "installed":
        return Shipping(python=sys.executable)
    if ship == "archive":
        unpacked = (
            "--archives",
            f"{packing.archive(directory)}#site",
            "--conf",
            "spark.executorEnv.PYTHONPATH=./site",
        )
        return Shipping(python=str(packing.empty_python(directory / "python")), submit=unpacked)
    python = packing.python_without_filesink(directory / "python")
    return Shipping(python=str(python), job=("--artifact", str(packing.zip_file(directory))))


@contextlib.contextmanager
def destination(store: str, directory: Path) -> Iterator[Destination]:
    """A shared directory, or a bucket of a server that lives as long as the block."""
    if store == "directory":
        base = directory / "flights"
        yield Destination(base=str(base), read=lambda: readers.rows_in_directory(base))
        return
    with s3_server.running(BUCKET) as options:
        client = s3_server.client(options)
        yield Destination(
            base=f"s3://{BUCKET}/flights",
            read=lambda: readers.rows_in_bucket(client, BUCKET, "flights"),
            options=options,
        )


def say(text: str) -> None:
    """Print what happened, and when."""
    print(f"{time.monotonic() - _STARTED:6.1f} s  {text}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("demo-output/cluster"), help="where to put all")
    parser.add_argument("--ship", choices=("installed", "archive", "artifact"), help="one way instead of all")
    parser.add_argument(
        "--store", choices=("directory", "s3"), default="directory", help="with --ship: where to"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
