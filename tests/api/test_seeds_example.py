"""The example of FLIP-177: a writer over an asynchronous client, which hands completions to its mailbox."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from filesink.api import SinkWriter, WriterContext
from filesink.commit.task import TaskResult, WriteTask
from filesink.errors import LetterError
from tests.fakes import records
from tests.sinks.letters import Letters

MOST = 4
VALUES = [str(number) for number in range(50)]


@dataclass
class Client:
    """Answers from threads of its own; counts what it was asked at one time."""

    pool: ThreadPoolExecutor
    fails: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    at_once: int = 0
    most: int = 0
    arrived: list[str] = field(default_factory=list)

    def send(self, value: str, done: Callable[[Exception | None], None]) -> None:
        """Come back at once; call ``done`` later, from another thread."""
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        self.pool.submit(self._answer, value, done)

    def _answer(self, value: str, done: Callable[[Exception | None], None]) -> None:
        with self.lock:
            self.at_once -= 1
            self.arrived.append(value)
        done(OSError("the service hung up") if value == self.fails else None)


class AsyncWriter(SinkWriter[None, str]):
    """At most ``MOST`` values are on their way; no lock, since all but ``send`` is in one thread."""

    def __init__(self, client: Client, context: WriterContext) -> None:
        self._client = client
        self._mailbox = context.mailbox
        self._pending: set[str] = set()
        self._done: list[str] = []

    def write(self, batch, context):
        for value in batch["value"].to_pylist():
            while len(self._pending) >= MOST:
                context.mailbox.yield_()
            self._pending.add(value)
            self._client.send(value, lambda error, value=value: self._answered(value, error))

    def _answered(self, value: str, error: Exception | None) -> None:
        """In a thread of the client."""
        self._mailbox.execute(lambda: self._complete(value, error), f"the answer to value {value}")

    def _complete(self, value: str, error: Exception | None) -> None:
        if error is not None:
            raise error
        self._pending.remove(value)
        self._done.append(value)

    def prepare_commit(self, epoch):
        del epoch
        while self._pending:
            self._mailbox.yield_()
        return self._done


@dataclass(frozen=True)
class Asynchronous(Letters):
    """Letters that are sent by the client."""

    client: Client | None = None

    def create_writer(self, context):
        return AsyncWriter(self.client, context)


@pytest.fixture
def pool():
    """Threads of the client."""
    with ThreadPoolExecutor(8) as threads:
        yield threads


def run(client: Client, tmp_path) -> list[str]:
    """One task over all values, ten to a batch; what it reports."""
    sink = Asynchronous(tmp_path, client=client)
    task = WriteTask(sink=sink, sink_id="s", slot=0, driver_ms=0, time_zone="UTC")
    batches = [records(*VALUES[start : start + 10]) for start in range(0, len(VALUES), 10)]
    result = TaskResult.from_bytes(task.run(0, 0, batches))
    return sink.committable_codec.decode(1, result.committables.data)


def test_every_value_is_completed_and_few_are_in_flight(pool, tmp_path) -> None:
    """A writer that is blocked in ``write`` gets its completions, and so makes room for itself."""
    client = Client(pool)
    assert sorted(run(client, tmp_path)) == sorted(VALUES)
    assert sorted(client.arrived) == sorted(VALUES)
    assert client.most <= MOST


def test_a_failed_completion_fails_the_task(pool, tmp_path) -> None:
    """By its description; no value is reported as done that is not."""
    with pytest.raises(LetterError, match=r"'the answer to value 17', .* OSError: the service hung up"):
        run(Client(pool, fails="17"), tmp_path)
