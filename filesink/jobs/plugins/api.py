"""The contract of plugins.

A source gives tables, a transform makes tables of tables, a sink takes them. Most have one table; its name
matters only to those that have several.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from filesink.errors import JobError
from filesink.jobs.model.env import Env
from filesink.jobs.model.options import Names, Options, option
from filesink.jobs.model.secret import Secret

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: DataFrames by the names of their tables.
Frames: TypeAlias = "Mapping[str, DataFrame]"


class PluginOptions(Options):
    """What every plugin has."""

    output: str = option("", doc="The name of what it makes.", words=("plugin_output", "result_table_name"))
    input: Names = option((), doc="The names of what it takes.", words=("plugin_input", "source_table_name"))
    parallelism: int | None = option(None, doc="Its tasks.", unit="tasks", ge=1, le=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one plugin.

    Attributes:
        spark: the session.
        job: unique, of the job; one that is restored keeps it.
        vertex: the id of the plugin in its plan.
        directory: of this plugin alone, in any store; kept across restarts.
        parallelism: tasks of a source.
        env: of the job.
        say: prints a line for people.
        reveal: the value of a secret; to be called as late as possible, and never logged.
        is_rolled_back: whether its stream is a new one, which goes on from a copy of an older checkpoint.
        queries: for a way back, the ids of all queries that this sink has had.
    """

    spark: SparkSession
    job: str
    vertex: str
    directory: str
    parallelism: int
    env: Env
    say: Callable[[str], None]
    reveal: Callable[[Secret], str]
    is_rolled_back: bool = False
    queries: frozenset[str] = frozenset()

    @property
    def trigger(self) -> dict[str, Any]:
        """When micro-batches begin, as ``start`` of filesink's sinks takes it."""
        if self.env.resumes:
            return {"available_now": True}
        return {"processing_time": f"{max(self.env.checkpoint_interval, 1)} milliseconds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A streaming query, and what a savepoint has to know of it.

    Attributes:
        query: Spark's, or a ``SinkQuery``.
        checkpoint: its directory, below that of the sink.
        path: the base path of the files that it writes; ``""`` if it writes none.
        finish: called once the query has ended for a savepoint: makes visible what it has left open.
        version: of the inventory of ``path``; called after ``finish``.
    """

    query: Any
    checkpoint: str
    path: str = ""
    finish: Callable[[], object] = lambda: None
    version: Callable[[], int | None] = lambda: None


class Plugin(ABC):
    """A plugin with its options; made when a job is planned, so the constructor opens nothing.

    Attributes:
        name: in job files; case does not matter.
        words: other names.
        options_type: a class of options.
    """

    name: ClassVar[str]
    words: ClassVar[Sequence[str]] = ()
    options_type: ClassVar[type[PluginOptions]] = PluginOptions

    def __init__(self, options: Any) -> None:
        self.options = options

    @property
    def notes(self) -> Sequence[str]:
        """What somebody who reads the plan should know, each a sentence."""
        return ()


class Source(Plugin):
    """Gives tables.

    Attributes:
        limits: which of ``rows`` and ``bytes`` a second its streams obey, see ``env``.
        resumes: whether a stream of it may be a batch, see ``job.batch.resumable``: one that ends with what
            was there when it began.
    """

    limits: ClassVar[Sequence[str]] = ()
    resumes: ClassVar[bool] = False

    @abstractmethod
    def read(self, run: Run) -> Frames:
        """The tables, streaming ones if ``run.env.is_stream``. Called once for each sink and run."""


class Transform(Plugin):
    """Makes tables of tables."""

    @abstractmethod
    def apply(self, frames: Frames, run: Run) -> Frames:
        """The tables that come of ``frames``; lazy, nothing is executed."""


class Sink(Plugin):
    """Takes tables."""

    @abstractmethod
    def write(self, frames: Frames, run: Run) -> int | None:
        """Write batch tables; returns when they are there.

        Called again after a failure, in the same run of a job or a later one. Returns the number of rows, or
        ``None`` where nobody has counted them.
        """

    def check(self, frames: Frames, run: Run) -> None:
        """Raise what ``write`` or ``start`` would raise of such columns; for dry runs, writes nothing."""
        del frames, run

    def start(self, frames: Frames, run: Run) -> Sequence[Started]:
        """Start streaming queries; returns them. By default this kind of sink takes no streams."""
        del frames, run
        raise NotImplementedError

    def plan_roll_back(self, run: Run, path: str, version: int) -> None:
        """Raise ``JobError`` (``JOB_REFUSED``) if ``roll_back`` cannot be done. By default it cannot."""
        del run, path, version
        raise JobError(f"sink {self.name} cannot take back what it has written", code="JOB_REFUSED")

    def roll_back(self, run: Run, path: str, version: int) -> None:
        """Take back what this sink has written since; called while none of its queries runs, maybe again.

        Args:
            run: as for ``start``.
            path: of a savepoint, see ``Started``.
            version: likewise.
        """
        self.plan_roll_back(run, path, version)


class OneTableTransform(Transform):
    """A transform that does the same to each table."""

    def apply(self, frames: Frames, run: Run) -> Frames:
        """See ``Transform.apply``."""
        del run
        return {name: self.changed(frame) for name, frame in frames.items()}

    @abstractmethod
    def changed(self, frame: DataFrame) -> DataFrame:
        """What comes of one table."""
