"""One life: a driver from its checkpoint on, whose tasks are processes of their own; or a client."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle

from filesink import FilesinkError
from filesink.commit.epoch import EpochLoop
from filesink.commit.replay import EpochOptions
from filesink.ledger.identity import stream_sink_id
from filesink.ledger.record import MicroBatch
from filesink.ports import Losers, Ports, SerialRunner
from filesink.system import SystemClock, SystemIds
from property_tests.torture.destination import Destination, Place
from property_tests.torture.steps import CLIENT, DRIVER, TASK, Death, Steps

QUERY = "0a0b0c0d-0000-4000-8000-000000000002"
_ATTEMPTS = 4  # of a task, as Spark makes them


@dataclass(frozen=True, kw_only=True)
class Life:
    """What one process does.

    Attributes:
        role: ``DRIVER`` or ``CLIENT``.
        place: where it writes, or takes; ``place["directory"]`` has the checkpoint, too.
        batches: of the stream, counted from its very beginning.
        tasks: of each batch.
        is_last: whether the input ends with the last batch.
        death: what happens meanwhile.
    """

    place: Place
    role: str = DRIVER
    batches: int = 0
    tasks: int = 1
    is_last: bool = True
    death: Death | None = None

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Life:
        """What ``to_json`` has made."""
        found = json.loads(text)
        death = found.pop("death")
        if death is not None:
            death = Death(**death | {"signal": signal.Signals(death["signal"])})
        return Life(**found, death=death)


@dataclass(frozen=True, kw_only=True)
class End:
    """How a life has ended.

    Attributes:
        how: ``"done"``; ``"failed"``, by an error with a type of ours; ``"broke"``, by any other;
            or ``"killed"``.
        why: the error.
        trace: see ``steps``.
        killed_tasks: tasks that died.
    """

    how: str
    why: str = ""
    trace: str = ""
    killed_tasks: int = 0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a driver has a process do: one attempt of a task."""

    task: bytes
    subtask: int
    attempt: int
    rows: Sequence[int]
    death: Death | None
    driver: int
    trace: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What has become of it: ``result``, or an error, ``broke`` if of no type of ours; nothing if killed."""

    result: bytes = b""
    why: str = ""
    broke: str = ""
    trace: str = ""
    is_struck: bool = False


class TaskFailedError(FilesinkError):
    """All attempts of a task have failed, each by an error with a type of ours."""


class Tasks:
    """The batch of an epoch, run by other processes; implements ``filesink.ports.WriteJob``.

    Args:
        rows: those of each partition.
        schema: theirs.
        host: who runs attempts: takes an ``Order`` and gives an ``Answer``.
        steps: those of the driver.
    """

    time_zone = "UTC"
    offsets = ""

    def __init__(
        self, rows: Sequence[Sequence[int]], schema: pa.Schema, *, host: Connection, steps: Steps
    ) -> None:
        self._rows = rows
        self._host = host
        self._steps = steps
        self.schema = schema
        self.run_id = f"run-{os.getpid()}"
        self.killed = 0

    def write(self, task: Callable[..., bytes]) -> list[bytes]:
        """See ``WriteJob.write``."""
        pickled: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
        return [self._result(pickled, subtask) for subtask in range(len(self._rows))]

    def _result(self, task: bytes, subtask: int) -> bytes:
        why = ""
        for attempt in range(_ATTEMPTS):
            order = Order(
                task=task, subtask=subtask, attempt=attempt, rows=self._rows[subtask],
                death=self._steps.death, driver=os.getpid(), trace=self._steps.trace,
            )  # fmt: skip
            self._host.send(order)
            answer: Answer = self._host.recv()
            if answer.broke:
                raise RuntimeError(answer.broke)
            if not answer.result and not answer.why:
                self.killed += 1
                self._steps.death = None
                continue
            self._steps.trace = answer.trace
            if answer.is_struck:
                self._steps.death = None
            if answer.result:
                return answer.result
            why = answer.why
        raise TaskFailedError(f"task {subtask}: {why}", code="TASK")

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``."""
        return sum(map(len, self._rows))

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return ""

    def losers(self) -> Losers:
        """See ``WriteJob.losers``; attempts are seen in the results."""
        return Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return True


def attempt(destination: Destination, order: Order) -> Answer:
    """One attempt of a task, in its process."""
    steps = Steps(order.death, here=TASK, driver=order.driver, trace=order.trace)
    destination.watch(steps)
    result, why, broke = b"", "", ""
    try:
        task: Callable[[int, int, Iterable[pa.RecordBatch]], bytes] = cloudpickle.loads(order.task)
        result = task(order.subtask, order.attempt, batches_of(order.rows, steps.counted(destination.batch)))
    except FilesinkError as error:
        why = str(error)
    except BaseException:  # noqa: BLE001 - told to the driver, who fails
        broke = traceback.format_exc()
    struck = order.death is not None and steps.death is None
    return Answer(result=result, why=why, broke=broke, trace=steps.trace, is_struck=struck)


def batches_of(
    rows: Sequence[int], batch: Callable[[Sequence[int]], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Two record batches of a partition, and an empty one, each read when it is asked for."""
    half = len(rows) // 2
    for some in (rows[:half], rows[half:half], rows[half:]):
        yield batch(some)


def live(destination: Destination, life: Life, host: Connection) -> End:
    """One life, in its process."""
    steps = Steps(life.death, here=life.role, driver=os.getpid())
    destination.watch(steps)
    killed: list[Tasks] = []
    how, why = "done", ""
    try:
        if life.role == CLIENT:
            destination.take(life.place)
        else:
            _query(destination, life, lambda rows, schema: _noted(killed, rows, schema, host, steps))
    except FilesinkError as error:
        how, why = "failed", f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - told to whoever has asked, who fails
        how, why = "broke", traceback.format_exc()
    return End(how=how, why=why, trace=steps.trace, killed_tasks=sum(tasks.killed for tasks in killed))


def _noted(
    noted: list[Tasks], rows: Sequence[Sequence[int]], schema: pa.Schema, host: Connection, steps: Steps
) -> Tasks:
    noted.append(Tasks(rows, schema, host=host, steps=steps))
    return noted[-1]


def _query(
    destination: Destination, life: Life, tasks_of: Callable[[Sequence[Sequence[int]], pa.Schema], Tasks]
) -> None:
    """Each batch that the checkpoint does not have, and the end of the input."""
    sink, schema = destination.sink(life.place), destination.batch([0]).schema
    sink.prepare(schema)
    ports = Ports(clock=SystemClock(), ids=SystemIds(), runner=SerialRunner())
    ledger = sink.open_ledger(stream_sink_id(sink.uid, QUERY))
    with (
        destination.query(life.place),
        closing(EpochLoop(sink, ledger, ports=ports, options=EpochOptions())) as loop,
    ):
        for number in range(life.batches):
            done = _commit(life.place, number)
            if not done.exists():
                rows = range(number * destination.rows_in_batch, (number + 1) * destination.rows_in_batch)
                partitions = [rows[task :: life.tasks] for task in range(life.tasks)]
                cause = MicroBatch(query_id=QUERY, batch_id=number, fingerprint=f"{number:064x}")
                loop.run(cause, tasks_of(partitions, schema))
                done.touch()
        if life.is_last:
            loop.finish()


def committed(place: Place) -> int:
    """How many batches the checkpoint has."""
    return len([*_checkpoint(place).glob("commit-*")])


def _commit(place: Place, batch: int) -> Path:
    return _checkpoint(place) / f"commit-{batch}"


def _checkpoint(place: Place) -> Path:
    return Path(place["directory"])
