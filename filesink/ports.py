"""What the rest of the package may not do by itself: tell time, make random ids, run things.

Whoever needs one of these takes it as a constructor argument, so that a whole sink can be run
under a simulated clock and scheduler. The real ones are in ``filesink.system``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")


class Clock(Protocol):
    """Wall-clock time of the driver. Tasks get a clock that runs on from the driver's."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; only used between retries."""
        ...


class Ids(Protocol):
    """A source of ids that never repeat, in this process or any other."""

    def uuid(self) -> str:
        """A random version-4 UUID in its usual 36 characters."""
        ...


class TaskRunner(Protocol):
    """Runs a function over items, somewhere: in this thread, in a pool, as a Spark job."""

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Results in the order of ``items``.

        Every item is attempted and every call has returned before this returns or raises, so no
        work goes on behind the caller's back. The first error in item order is raised.
        """
        ...


class SerialRunner:
    """Runs everything in the calling thread; what simulations and small jobs use."""

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See ``TaskRunner.run``."""
        results: list[R] = []
        first_error: BaseException | None = None
        for item in items:
            try:
                results.append(function(item))
            except Exception as error:  # noqa: BLE001 - raised below, after every item was attempted
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return results


class NotedRunner:
    """Remembers whether it was used: attempts of a job may leave something behind.

    Args:
        runner: does the work.
    """

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner
        self.used = False

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """See ``TaskRunner.run``."""
        self.used = True
        return self._runner.run(function, items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Whose program a driver is; each ``""`` if it is not known."""

    application: str = ""
    user: str = ""
    host: str = ""


class Audience(Protocol):
    """Who is told of epochs: ``filesink.api.events.Listeners``."""

    @property
    def destination(self) -> str:
        """What events call the sink."""
        ...

    def changes(self, committables: Sequence[Any], stay: Sequence[Any], /) -> Any:
        """What readers see of ``committables``, of which ``stay`` is for later epochs."""
        ...

    def tell(self, event: Any) -> None:
        """Tell all of them. Never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside world of a driver, who it is, and who is told; ``None`` if nobody listens."""

    clock: Clock
    ids: Ids
    runner: TaskRunner
    who: Who = Who()
    audience: Audience | None = None


class Losers(Enum):
    """Whether attempts whose results were not used may have left files behind."""

    NONE = "none"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHost:
    """What an engine knows of a task that it runs, and the task cannot know.

    Attributes:
        tasks: how many there are, or ``None``.
        pulse: see ``filesink.api.Mailbox``.
    """

    tasks: int | None = None
    pulse: Callable[[], None] = lambda: None


class Task(Protocol):
    """Works on one partition, in an executor."""

    def __call__(
        self, subtask: int, attempt: int, batches: Iterable[pa.RecordBatch], *, host: TaskHost = ...
    ) -> bytes:
        """Take ``batches`` in and return the result; ``attempt`` counts from 0."""
        ...


class WriteJob(Protocol):
    """The input of one epoch, as an engine runs it. Each method runs the input once."""

    @property
    def run_id(self) -> str:
        """Differs for every run of a query, also of the same one; ``""`` for batch writes."""
        ...

    @property
    def time_zone(self) -> str:
        """The time zone of the session, as Spark's own functions use it."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of the input, without those that are derived for the writers."""
        ...

    @property
    def offsets(self) -> str:
        """What the sources of a micro-batch have read, for the record; ``""`` if nobody knows."""
        ...

    def write(self, task: Task) -> list[bytes]:
        """Run ``task`` for each partition; one result of each."""
        ...

    def count_rows(self) -> int:
        """Run the input to its end and count its rows; nothing is written."""
        ...

    def digest(self) -> str:
        """A hash of the rows in any order; ``""`` if it is not wanted. Called after the input ran."""
        ...

    def losers(self) -> Losers:
        """Whether twins may have run; asked after ``write``. Retries are seen in the results."""
        ...

    def is_wanted(self) -> bool:
        """Whether anybody still waits for the epoch: a stage that waits asks it, see ``EpochContext``."""
        ...
