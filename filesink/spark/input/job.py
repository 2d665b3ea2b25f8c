"""The input of one epoch as a Spark job: one Python hop, executed exactly once.

Nothing here asks the DataFrame a question that would run it: no ``count``, no ``rdd``.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as all PySpark code does
from pyspark.sql.types import BinaryType, StructField, StructType

from filesink import errors
from filesink.api.epoch import always
from filesink.commit.task import WriteTask
from filesink.errors import ConfigError, FilesinkError, InternalError, SchemaError, StorageError
from filesink.ports import Losers, Task, TaskHost
from filesink.spark.input.arrow_batches import Crossing
from filesink.spark.input.column_names import by_place
from filesink.spark.input.digest import Digested
from filesink.spark.input.driver_python import drivers_python
from filesink.spark.input.local_properties import local_properties
from filesink.spark.input.pulse import pulse_of_this_task
from filesink.spark.input.short_decimals import as_numbers
from filesink.spark.input.task_number import number_of_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from filesink.api import Projection

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

# How a Python traceback of ours ends, inside the text of a Spark error: a message may have several lines.
_NEXT = r"\tat | ?SQLSTATE: |The above exception was |During handling of |Traceback \(|JVM st|Driver st|==="
_OURS = re.compile(
    rf"^filesink\.errors\.(?P<kind>\w+): \[(?P<code>\w+)\] (?P<message>.+?)\s*(?:\Z|^(?:{_NEXT}))",
    re.MULTILINE | re.DOTALL,
)

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkWriteJob:
    """Runs the tasks of an epoch; implements ``filesink.ports.WriteJob``.

    Attributes:
        name: of the sink, for those who look at Spark's jobs.
        df: the input.
        schema: its columns as Arrow has them.
        derived: columns that Spark computes for the writer.
        projection: what of all that crosses to the writer; ``None`` for everything.
        run_id: of the streaming query's run; ``""`` for a batch write.
        speculation: whether Spark may run twins of a task.
        digested: takes the digest of the input, if it is wanted.
        offsets: see ``WriteJob.offsets``.
        rows_before: of the micro-batch before; ``None`` if not known.
        wanted: see ``WriteJob.is_wanted``.
    """

    name: str
    df: DataFrame
    schema: pa.Schema
    derived: Mapping[str, str]
    projection: Projection | None
    run_id: str
    time_zone: str
    speculation: bool
    digested: Digested | None = None
    offsets: str = ""
    rows_before: int | None = None
    wanted: Callable[[], bool] = always

    def write(self, task: Task) -> list[bytes]:
        """See ``WriteJob.write``."""
        slot = _slot_of(task)
        if not self.run_id:  # it has no epoch yet
            with _abandoned_if_it_fails(task):
                return self._run(_one_result(task, number_of_tasks(self.df)), ", a batch write")
        return self._run(_one_result(task), "" if slot is None else f", epoch {slot}")

    def count_rows(self) -> int:
        """See ``WriteJob.count_rows``. The same plan as a write, so that a stateful query goes on."""
        counts = self._run(_one_result(_count), ", a replayed batch")
        return sum(int(count) for count in counts)

    def digest(self) -> str:
        """See ``WriteJob.digest``."""
        return "" if self.digested is None else self.digested.get()

    def losers(self) -> Losers:
        """See ``WriteJob.losers``."""
        return Losers.POSSIBLE if self.speculation else Losers.NONE

    def is_wanted(self) -> bool:
        """See ``WriteJob.is_wanted``."""
        return self.wanted()

    def _run(self, function: Batches, what: str) -> list[bytes]:
        df = self.df if self.digested is None else self.digested.observe(self.df)
        df = with_derived(df, self.derived)
        if self.projection is not None:
            df = df.select(*(F.expr(text).alias(name) for name, text in self.projection.columns.items()))
            function = _with_metadata(function, self.projection.metadata)
        crossing = Crossing.of(df, rows_before=self.rows_before)
        df, function = crossing.weighed(*by_place(df, function))
        if not crossing.few:
            df, function = as_numbers(df, function)
        results = StructType([StructField("result", BinaryType())])  # text would be parsed for each job
        try:
            with drivers_python(df.sparkSession):
                job = df.mapInArrow(function, results)
            context = df.sparkSession.sparkContext
            with local_properties(context, shown_as=self.name + what, wanted=crossing.limits()):
                rows = job.collect()
        except PicklingError as error:
            raise not_picklable(error) from error
        except PySparkException as error:
            ours = _other_python(error) or typed(error)
            if ours is None:
                raise
            _refuse_lacking(ours)
            raise ours from error
        return [bytes(row[0]) for row in rows]


def task_context() -> TaskContext:
    """The context of the running task."""
    context = TaskContext.get()
    if context is None:
        raise InternalError("Spark gave this task no TaskContext", code="NO_TASK_CONTEXT")
    return context


def _slot_of(task: Task) -> int | None:
    """The slot that a task of ours writes for."""
    owner = getattr(task, "__self__", None)
    return owner.slot if isinstance(owner, WriteTask) else None


@contextmanager
def _abandoned_if_it_fails(task: Task) -> Iterator[None]:
    """Have the sink remove what tasks of a batch write leave, whose id no other write has."""
    try:
        yield
    except Exception:
        owner = getattr(task, "__self__", None)
        if isinstance(owner, WriteTask):
            try:
                owner.sink.abandon(owner.sink_id)
            except Exception as error:  # noqa: BLE001 - why the write has failed is raised; this costs space
                log.warning("%s: what its tasks have left is still there: %s", owner.sink_id, error)
        raise


def _waits(task: Task) -> bool:
    """Whether a writer in it may wait for other threads."""
    owner = getattr(task, "__self__", None)
    return isinstance(owner, WriteTask) and owner.sink.writers_wait


def _one_result(task: Task, tasks: int | None = None) -> Batches:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = task_context()
        host = TaskHost(tasks=tasks)
        if _waits(task):
            yield _results()  # so that there is a stream of results, in which a pulse can be felt
            host = TaskHost(tasks=tasks, pulse=pulse_of_this_task())
        yield _results(task(context.partitionId(), context.attemptNumber(), batches, host=host))

    return run


def _results(*results: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(results, pa.binary())], ["result"])


def _with_metadata(function: Batches, metadata: Mapping[bytes, bytes]) -> Batches:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(batch.replace_schema_metadata(dict(metadata)) for batch in batches)

    return run


def _count(
    subtask: int,
    attempt: int,
    batches: Iterable[pa.RecordBatch],
    *,
    host: TaskHost = TaskHost(),  # noqa: B008
) -> bytes:
    del subtask, attempt, host
    return str(sum(batch.num_rows for batch in batches)).encode()


def with_derived(df: DataFrame, derived: Mapping[str, str]) -> DataFrame:
    """``df`` and the columns that Spark computes for the writer.

    Raises:
        SchemaError: Spark cannot resolve an expression, or ``df`` has a column of the same name.
    """
    if not derived:
        return df
    ours = {name.lower() for name in derived}
    taken = next((name for name in df.columns if name.lower() in ours), None)
    if taken is not None:  # which withColumns would replace
        raise SchemaError(
            f"column {taken!r} has the name of a column that the bucket assigner adds; rename it",
            code="RESERVED_COLUMN",
        )
    try:
        return df.withColumns({name: F.expr(text) for name, text in derived.items()})
    except AnalysisException as error:
        raise SchemaError(
            f"Spark cannot compute {', '.join(map(repr, derived.values()))}: {error.getMessage()}",
            code="EXPRESSION",
        ) from error


def check_derived(df: DataFrame, derived: Mapping[str, str]) -> None:
    """Raise ``SchemaError`` unless each of ``derived`` can be computed from one record alone.

    ``with_derived`` has accepted them. A generator would make several records of one, or none, and so
    does ``window()``, which leaves out records without a time.
    """
    for name, text in derived.items():
        plan = _plan(with_derived(df, {name: text}))
        # A generator or a window puts more between the rows and the columns selected from them.
        if not (plan.nodeName() == "Project" and plan.children().head().fastEquals(_plan(df))):
            raise SchemaError(
                f"{text!r} has no value for a record by itself: it holds a generator such as explode(), a "
                "window or a window function. Use functions of one record, or compute it in the DataFrame "
                "beforehand",
                code="EXPRESSION",
            )


def _plan(df: DataFrame) -> Any:
    """Spark's analysed plan of ``df``, in Java; Python has no other way to it."""
    return df._jdf.queryExecution().analyzed()  # noqa: SLF001


def typed(error: BaseException) -> FilesinkError | None:
    """The error of ours that a task raised, found again in Spark's text of it."""
    found = list(_OURS.finditer(str(error)))
    kind = getattr(errors, found[-1]["kind"], None) if found else None
    if not (isinstance(kind, type) and issubclass(kind, FilesinkError)):
        return None
    return kind(found[-1]["message"], code=found[-1]["code"])


def _refuse_lacking(error: FilesinkError) -> None:
    """Say, in one short error, that a task has no credentials; the driver has proved that it has."""
    if isinstance(error, StorageError) and error.code == "NO_CREDENTIALS":
        raise StorageError(
            f"{error.message}. The driver has credentials, but its tasks find none: they do not see the "
            "driver's environment variables, nor the profiles of its host. Use storage options, "
            "spark.hadoop.fs.s3a.access.key and secret.key, or a role of the hosts. Nothing became visible",
            code=error.code,
        ) from None  # Spark's text repeats it for each attempt


def _other_python(error: BaseException) -> ConfigError | None:
    """The error for tasks that run in a Python without filesink; ``None`` for any other failure."""
    if "No module named 'filesink'" not in str(error):
        return None
    return ConfigError(
        "the Python that runs Spark's tasks has no filesink: Spark takes the first python3 on PATH unless it "
        f"is told. Set PYSPARK_PYTHON to the Python of this driver ({sys.executable}) before the session "
        "starts, and install filesink on every host",
        code="WORKER_PYTHON",
    )


def not_picklable(error: BaseException) -> ConfigError:
    """The error for user code that cannot be sent to the tasks."""
    return ConfigError(
        "the sink cannot be sent to the tasks: an encoder, assigner or policy holds something that cannot be "
        f"pickled, such as a SparkSession, a lock or an open file ({type(error).__name__}). Make it "
        "inside the method that uses it",
        code="NOT_PICKLABLE",
    )
