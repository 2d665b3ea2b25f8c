"""What Spark knows of a streaming query and tells nobody: identity, checkpoint, offsets.

Everything that is private to Spark's streaming is in this module, and has a test for each version of
Spark that is supported. Where something is absent, a typed error says so.

Measured on Spark 4.1 to 4.3: inside the function of ``foreachBatch`` the ids are local properties of
that thread only; the session of the batch is a clone whose ``streams`` does not know the query;
``sharedState().activeStreamingQueries()`` does. The entry ``offsets/<batch>`` is written before the
function is called and is byte-identical for every replay. A query that was stopped ends as one that
took all of its input does; only what its execution remembers tells the two apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from filesink.errors import ConfigError, InternalError, StorageError
from filesink.ledger.record import MicroBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"

_MOST_OFFSETS = 64 << 10  # bytes that go on record: those of a few thousand Kafka partitions
_BEFORE_OFFSETS = 2  # lines of an entry: its version, and the settings of the query


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIds:
    """Which run of which query a batch belongs to."""

    query_id: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """One run of a streaming query, with what does not change between its batches.

    Calls into the JVM cost about as much as publishing a file, so each is made once per run if it can: so is
    each step to the name of a class.
    """

    ids: RunIds
    checkpoint: str
    _files: Any  # Hadoop's FileSystem of the checkpoint
    _path: Any  # Hadoop's class Path
    _bytes_of: Any  # a function: all bytes of a stream

    def micro_batch(self, batch_id: int) -> tuple[MicroBatch, str]:
        """The identity of a batch, with the fingerprint of its offsets, and these. Called once per batch.

        Raises:
            ConfigError: ``TRIGGER``; the batch has no entry in the offset log.
            StorageError: ``OFFSET_LOG``; it cannot be read.
        """
        path = f"{self.checkpoint}/offsets/{batch_id}"
        with _as_ours(f"the offset log's entry '{path}' cannot be read"):
            data = self._read(path)
        if data is None:
            raise ConfigError(
                f"the offset log has no entry '{path}' while batch {batch_id} runs. Asynchronous progress "
                "tracking and continuous processing cannot be exactly-once: remove option "
                "'asyncProgressTrackingEnabled' and use a micro-batch trigger",
                code="TRIGGER",
            )
        batch = MicroBatch(
            query_id=self.ids.query_id, batch_id=batch_id, fingerprint=hashlib.sha256(data).hexdigest()
        )
        return batch, _offsets(data)

    def _read(self, path: str) -> bytes | None:
        """A file of the checkpoint; ``None`` if it is absent."""
        try:
            stream = self._files.open(self._path(path))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception.getClass().getName()):
                return None
            raise
        try:
            return bytes(self._bytes_of(stream))
        finally:
            stream.close()


def start_query(stream: DataStreamWriter, *, checkpoint: str, trigger: Mapping[str, Any]) -> StreamingQuery:
    """Start a stream whose function, output mode and name are set.

    Raises:
        ConfigError: ``TRIGGER`` or ``CHECKPOINT``; Spark does not take them.
    """
    try:
        ready = stream.option("checkpointLocation", checkpoint).trigger(**trigger)
    except PySparkException as error:
        words = str(error).partition("\n")[0]
        raise ConfigError(f"Spark does not take this trigger: {words}", code="TRIGGER") from error
    try:
        return ready.start()
    except Py4JJavaError as error:
        raise ConfigError(
            f"Spark cannot start a query with the checkpoint '{checkpoint}': {told_by_java(error)}",
            code="CHECKPOINT",
        ) from error


def is_active(session: SparkSession, query_id: str) -> bool:
    """Whether the query runs; may be called from any thread. A stopped JVM runs nothing."""
    try:
        return _lookup(session, query_id) is not None
    except (Py4JError, OSError):
        return False


def is_wanted(session: SparkSession, query_id: str) -> bool:
    """Whether the query runs and nobody has asked it to stop; may be called from any thread.

    ``stop()`` waits for the batch at work, during which Spark still lists the query.
    """
    try:
        execution = _lookup(session, query_id)
        return execution is not None and bool(execution.isActive())
    except (Py4JError, OSError):
        return False


def ended_by_itself(query: StreamingQuery) -> bool:
    """Whether a query with a trigger that ends took all of its input, and was not stopped before.

    Called once, after its end. A restart with another run, the session and anybody who looks at
    ``spark.streams.active`` may stop it. With a stopped JVM nobody knows, and that is no end.

    Raises:
        InternalError: this version of Spark does not say.
    """
    try:
        execution = query._jsq.streamingQuery()  # noqa: SLF001 - see the head of this file
        if str(execution.trigger().getClass().getSimpleName()).startswith("OneTime"):
            # It never looks whether there is more: one batch takes all, and is committed when it is done.
            return _latest(execution.offsetLog()) == _latest(execution.commitLog())
        return bool(execution.noNewData())
    except (Py4JNetworkError, OSError):
        return False
    except Py4JError as error:
        raise InternalError(
            f"Spark {pyspark.__version__} does not say whether query {query.id} ended by itself: open parts "
            "were left hidden. Call finish() if its input has ended, and please report this",
            code="NO_QUERY",
        ) from error


def _latest(log: Any) -> int | None:
    """The newest batch of an offset or commit log."""
    newest = log.getLatestBatchId()
    return int(newest.get()) if newest.isDefined() else None


def current_ids(df: DataFrame) -> RunIds:
    """The run whose batch is being processed in this thread. Called once per batch.

    Raises:
        InternalError: Spark does not say; the message says under which settings that happens.
    """
    context = df.sparkSession.sparkContext
    query_id, run_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(RUN_ID)
    if not query_id or not run_id:
        raise InternalError(
            f"Spark did not provide '{QUERY_ID}' in this thread. Call the sink from the function given to "
            "foreachBatch, in its own thread, without PYSPARK_PIN_THREAD=false and without Spark Connect",
            code="NO_QUERY_ID",
        )
    return RunIds(query_id=query_id, run_id=run_id)


def open_run(df: DataFrame, ids: RunIds) -> QueryRun:
    """What Spark knows of a run. Called once per run, at its first batch.

    Raises:
        InternalError: Spark does not list the query.
        ConfigError: ``OUTPUT_MODE`` or ``TRIGGER``; the query cannot be exactly-once.
    """
    session = df.sparkSession
    with _as_ours(f"Spark {session.version} does not tell of query {ids.query_id}"):
        execution = _lookup(session, ids.query_id)
    if execution is None:
        raise InternalError(
            f"Spark does not list query {ids.query_id} among its active ones; please report this with your "
            f"version of Spark ({session.version})",
            code="NO_QUERY",
        )
    with _as_ours(f"the checkpoint of query {ids.query_id} cannot be opened"):
        _require_exactly_once(execution)
        checkpoint = str(execution.resolvedCheckpointRoot())
        conf = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        apache = _jvm(session).org.apache
        path = apache.hadoop.fs.Path
        return QueryRun(
            ids=ids,
            checkpoint=checkpoint,
            _files=path(checkpoint).getFileSystem(conf),
            _path=path,
            _bytes_of=apache.commons.io.IOUtils.toByteArray,
        )


@contextmanager
def _as_ours(what: str) -> Iterator[None]:
    """What Java raises becomes an error of ours; nothing of the batch has been written then."""
    try:
        yield
    except Py4JJavaError as error:
        raise StorageError(
            f"{what}: {told_by_java(error)}. Nothing of this batch was written; once it can be read, the "
            "restart repeats the batch",
            code="OFFSET_LOG",
        ) from error
    except Py4JError as error:
        raise InternalError(
            f"{what}, since Java does not answer as it should. Start the query again; report this if it "
            f"happens again with Spark {pyspark.__version__}",
            code="NO_QUERY",
        ) from error


def told_by_java(error: Py4JJavaError) -> str:
    """Kind and words of a Java exception, in one line."""
    try:
        words = str(error.java_exception.toString())
    except (Py4JError, OSError):  # Java has ended meanwhile
        return type(error).__name__
    return " ".join(words.split())[:300]


def _require_exactly_once(execution: Any) -> None:
    if str(execution.getClass().getSimpleName()).startswith("AsyncProgress"):
        raise ConfigError(
            "asynchronous progress tracking logs the offsets of some batches only; the others could not be "
            "recognised after a restart. Remove option 'asyncProgressTrackingEnabled'",
            code="TRIGGER",
        )
    mode = str(execution.outputMode())
    if mode.lower() != "append":
        raise ConfigError(
            f"output mode '{mode}' writes rows again that were written before; only 'append' makes files "
            "that stay. Use .outputMode('append')",
            code="OUTPUT_MODE",
        )


def _offsets(entry: bytes) -> str:
    """The offsets in an entry of the offset log, a line for each source; ``""`` if they are too long."""
    lines = entry.decode(errors="replace").splitlines()[_BEFORE_OFFSETS:]
    return "\n".join(lines) if len(entry) <= _MOST_OFFSETS else ""


def _lookup(session: SparkSession, query_id: str) -> Any:
    queries = session._jsparkSession.sharedState().activeStreamingQueries()  # noqa: SLF001
    return queries.get(_jvm(session).java.util.UUID.fromString(query_id))


def _jvm(session: SparkSession) -> Any:
    return session.sparkContext._jvm  # noqa: SLF001 - see the head of this file
