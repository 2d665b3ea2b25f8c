"""The two readers that Spark calls: one for a batch, one for a stream.

What runs where, seen on Spark 4.3 (every process is another one):

    driver    DataSource(options).schema()            once per ``load``
              reader(schema), partitions()            once per execution of a batch
              streamReader(schema)                    once per run of a stream, for all of its batches
    task      read(partition)                         of a pickle of the reader, which was made for that alone

On Spark 4.1 ``latestOffset`` is told neither where the batch begins nor how much it may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from filesink.data_source.reading.columns import batch_schema
from filesink.data_source.reading.limits import AvailableNow, read_limit, wanted
from filesink.source.files import FileSplit
from filesink.source.reading.plan import ReadPlan
from filesink.source.reading.splits import read
from filesink.system import SystemClock, SystemIds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from filesink.source.source_plan import SourcePlan
    from filesink.source.streams import FileStream


class Given(Enum):
    """What the user has said of the columns."""

    SCHEMA = "schema"
    NOTHING = "nothing"  # they are those that the files had when the source was loaded


class SplitsPartition(InputPartition):
    """The splits of one task, and how they are read."""

    def __init__(self, plan: ReadPlan, splits: Sequence[FileSplit]) -> None:
        super().__init__(None)
        self.plan = plan
        self.splits = splits

    def read(self) -> Iterator[pa.RecordBatch]:
        """Their records."""
        return read(self.plan, self.splits)


class BatchReader(DataSourceReader):
    """Reads what is there when the batch is planned.

    Args:
        plan: what the user has chosen.
        schema: of the rows.
    """

    def __init__(self, plan: SourcePlan, schema: StructType) -> None:
        self._plan = plan
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """See ``DataSourceReader.partitions``; lists the files."""
        plan, tasks = self._plan.batch(batch_schema(self._schema))
        return [] if plan is None else [SplitsPartition(plan, splits) for splits in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See ``DataSourceReader.read``."""
        return _read(partition)


class StreamReader(DataSourceStreamReader, AvailableNow):
    """Reads each file once, in micro-batches.

    Args:
        plan: what the user has chosen.
        schema: of the rows.
        given: whether the user has chosen the columns, too.
    """

    def __init__(self, plan: SourcePlan, schema: StructType, *, given: Given = Given.SCHEMA) -> None:
        self._plan = plan
        self._schema = schema
        self._given = given
        self._made: FileStream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}  # tasks have no use for it

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as all below
        """See ``DataSourceStreamReader.initialOffset``."""
        return dict(self._stream.initial())

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """See ``DataSourceStreamReader.getDefaultReadLimit``."""
        return read_limit(self._plan.following.limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """See ``SupportsTriggerAvailableNow``."""
        self._stream.fix_end()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """See ``DataSourceStreamReader.latestOffset``; on Spark 4.1 without arguments."""
        chosen = self._plan.following.limit
        if start is None:
            return dict(self._stream.latest_of_all(chosen))
        return dict(self._stream.latest(start, wanted(limit, chosen)))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """See ``DataSourceStreamReader.partitions``."""
        files = [*self._stream.files(start, end)]
        if not files:
            return []
        first = self._stream.first_file() if self._plan.reading.code is None else None
        plan = self._plan.read_plan(batch_schema(self._schema), [first or files[0]])
        return [SplitsPartition(plan, splits) for splits in self._plan.tasks(plan, files)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See ``DataSourceStreamReader.read``."""
        return _read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """See ``DataSourceStreamReader.commit``."""
        self._stream.finish(end)

    @property
    def _stream(self) -> FileStream:
        if self._made is None:
            columns = None if self._given is Given.SCHEMA else self._schema.fieldNames()
            self._made = self._plan.stream(clock=SystemClock(), ids=SystemIds(), columns=columns)
        return self._made


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    # Spark stands in with a partition of its own where there is none.
    return partition.read() if isinstance(partition, SplitsPartition) else iter(())
