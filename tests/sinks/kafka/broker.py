"""A Kafka of the tests' own on the loopback interface, which they may kill and start again.

One process is broker and controller (KRaft). Its jars are fetched by Maven, once for an environment.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.fetched import fetched
from tests.servers import free_port

VERSION = "4.1.2"
_POM = Path(__file__).parent / "programs" / "pom.xml"
_FETCH = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_STARTS_WITHIN = 90.0  # seconds, on a machine that is busy with other tests
_STARTS = 3  # with other ports each time
#: Who comes in by SASL, and may do what it was granted; who comes in plainly may do anything.
USER, PASSWORD = "loader", "not-a-secret"
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "default.replication.factor": "1",
    "num.recovery.threads.per.data.dir": "2",
    "log.cleaner.backoff.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    # A broker that was killed and is back has to wait until its predecessor counts as dead.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
}
_QUIET = "-Dlog4j2.level=WARN"


class Broker:
    """One broker.

    Args:
        directory: its own.
        jars: where its jars are.
        settings: other than the usual ones.
    """

    def __init__(self, directory: Path, jars: Path, settings: Mapping[str, str]) -> None:
        self._directory = directory
        self._jars = jars
        self._settings = {**_SETTINGS, **settings}
        self._log = directory / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = self.sasl_port = 0

    @property
    def servers(self) -> str:
        """How to get in."""
        return f"127.0.0.1:{self.port}"

    @property
    def sasl_servers(self) -> str:
        """How to get in with a password."""
        return f"127.0.0.1:{self.sasl_port}"

    def create(self) -> None:
        """Start it for the first time: as soon as all of its ports are free."""
        for _ in range(_STARTS):
            shutil.rmtree(self._directory / "data", ignore_errors=True)
            self._configure()
            with contextlib.suppress(RuntimeError):
                self.start()
                return
        raise RuntimeError(f"the broker did not start: {self.log()[-2000:]}")

    def start(self) -> None:
        """Start it, after a crash as well; returns when it answers."""
        command = ["java", "-Xmx512m", _QUIET, "-cp", f"{self._jars}/*", "kafka.Kafka"]
        command.append(str(self._directory / "server.properties"))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)  # noqa: S603 - ours
        patience = {"reconnect.backoff.max.ms": 100, "log_level": 0}
        admin = AdminClient({"bootstrap.servers": self.servers, **patience})
        deadline = time.monotonic() + _STARTS_WITHIN
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(KafkaException):
                if admin.list_topics(timeout=1).brokers:
                    return
        self.stop()
        raise RuntimeError(f"the broker did not start: {self.log()[-2000:]}")

    def crash(self) -> None:
        """Kill it: what is in the system's cache stays."""
        self.stop()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def has_died(self) -> bool:
        """Whether somebody else has killed it."""
        assert self._process is not None
        return self._process.poll() is not None

    def stop(self) -> None:
        """Stop it for good."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def log(self) -> str:
        """What it has written down."""
        return self._log.read_text()

    def _configure(self) -> None:
        self.port, self.sasl_port, controller = free_port(), free_port(), free_port()
        data = self._directory / "data"
        data.mkdir()
        listeners = f"PLAIN://127.0.0.1:{self.port},SASL://127.0.0.1:{self.sasl_port}"
        settings = {
            **self._settings,
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(data),
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        (self._directory / "server.properties").write_text("\n".join(lines))
        # What `kafka-storage format` would do, with another start of a JVM.
        ids = {"cluster.id": _id(), "directory.id": _id(), "node.id": "1", "version": "1"}
        (data / "meta.properties").write_text("\n".join(f"{name}={value}" for name, value in ids.items()))


def _id() -> str:
    """Kafka's way to write a UUID."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Broker]:
    """A broker that runs, with ``settings`` (``_`` for ``.``); the test is skipped where none can be had."""
    for tool in ("mvn", "java"):
        if shutil.which(tool) is None:
            pytest.skip(f"a broker of Kafka needs {tool}, which is not installed")
    command = ["mvn", "-q", "-B", "-f", str(_POM), _FETCH, "-DincludeScope=runtime"]
    jars = fetched(f"kafka-{VERSION}", lambda home: [*command, f"-DoutputDirectory={home}"])
    with tempfile.TemporaryDirectory(prefix="filesink-kafka-") as directory:
        broker = Broker(
            Path(directory), jars, {name.replace("_", "."): value for name, value in settings.items()}
        )
        broker.create()
        try:
            yield broker
        finally:
            broker.stop()
