"""The streaming query that ``start`` returns, and the two threads that stand beside it.

The *timer* closes parts when no data comes. The *finisher* waits for the query and, if it ended by
itself, runs the sink's last epoch, see ``AtEnd``; ``awaitTermination`` and ``isActive`` wait for that too.
Spark's own ``onQueryTerminated`` comes after ``awaitTermination`` has returned, or never.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from filesink.errors import IdentityError
from filesink.spark.input.job import typed
from filesink.spark.query_internals import ended_by_itself

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

R = TypeVar("R")
log = logging.getLogger("filesink")


class AtEnd(Enum):
    """What becomes of open parts and of files that wait when a query ends by itself."""

    PUBLISH = "publish"
    KEEP = "keep"  # except what is due: the next run may be far off


class End(Enum):
    """How a run of a query has ended."""

    ENDED = "ended"  # by itself, or because somebody has stopped it
    FAILED = "failed"
    REFUSED = "refused"  # it was not allowed to begin, and has changed nothing


class RunWatch(Protocol):
    """Is told when a run of a query begins and ends."""

    def begins(self) -> Callable[[End], object]:
        """Called on the driver before Spark starts the query; what it raises keeps it from being started.

        What it returns is called once, in another thread, when the run is over and the sink's last epoch
        complete; not if the driver dies.
        """
        ...


class SinkQuery(StreamingQuery, Generic[R]):
    """Spark's ``StreamingQuery`` whose end includes the sink's.

    Args:
        query: Spark's own.
        name: of the sink.
        finish: runs the last epoch; ``None`` for a trigger that never ends by itself.
        release: lets go of what the sink holds for this query; called once, at its end.
        reports: the newest reports of the sink, oldest first.
        ended: see ``RunWatch``.
    """

    def __init__(
        self,
        query: StreamingQuery,
        *,
        name: str = "filesink",
        finish: Callable[[], object] | None,
        release: Callable[[], object],
        reports: Callable[[], Sequence[R]],
        ended: Callable[[End], object] = lambda _: None,
    ) -> None:
        jsq: JavaObject = query._jsq  # noqa: SLF001 - StreamingQuery has no other way to be extended
        super().__init__(jsq)
        self._name = name
        self._finish = finish
        self._release = release
        self._reports = reports
        self._ended = ended
        self._stopped = False
        self._failure: End | None = None
        self._error: Exception | None = None
        self._finisher = threading.Thread(
            target=self._wait_and_finish, name=f"filesink-finish-{query.runId}", daemon=True
        )
        self._finisher.start()

    @property
    def reports(self) -> Sequence[R]:
        """Reports of the last epochs of this sink, oldest first.

        At most 100, and fewer if they have more than 20,000 files together; the newest is always there.
        """
        return self._reports()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether the query runs or its end is still being carried out."""
        return bool(super().isActive) or self._finisher.is_alive()

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Wait for the end of the query and of the sink's last epoch.

        Args:
            timeout: seconds; ``None`` waits for ever.

        Returns:
            With a timeout, whether the end was reached.

        Raises:
            StreamingQueryException: the query failed; its cause is our own error, if it was one.
            FilesinkError: the finish epoch failed; what it had decided is published by the next start.
            Exception: so it did, with what a sink or policy of the user's has raised.
        """
        self._finisher.join(timeout)
        if self._finisher.is_alive():
            return False
        try:
            super().awaitTermination()  # has ended; raises what ended it
        except StreamingQueryException as error:
            raise error from (typed(error) or error.__cause__)
        if self._error is not None:
            raise self._error
        return None if timeout is None else True

    def exception(self) -> StreamingQueryException | None:
        """What the query failed with, or else its finish epoch; ``None`` if all went well."""
        failed = super().exception()
        if failed is None and self._error is not None:
            failed = StreamingQueryException(str(self._error))
            failed.__cause__ = self._error
        return failed

    def stop(self) -> None:
        """Stop the query. Open parts stay hidden until the next start, or ``sink.finish()``."""
        self._stopped = True
        super().stop()
        self._finisher.join()  # so that isActive is false as soon as this returns, as Spark's is

    def __repr__(self) -> str:
        try:
            what = f", query {self.name or self.id}: {self._state()}"
        except (Py4JError, OSError):  # Java cannot be asked any more
            what = ": Spark has stopped"
        return f"<SinkQuery {self._name}{what}>"

    def _state(self) -> str:
        if self.isActive:
            return "active"
        return "ended" if self.exception() is None else "failed, see exception()"

    def _wait_and_finish(self) -> None:
        for step in (self._wait, self._release, self._tell_end):
            try:
                step()
            except Exception as error:  # a policy, committer or sink of the user's may raise anything
                # An end that fails must not look like one that went well; awaitTermination() raises it.
                self._error = self._error or error
                log.exception(
                    "%s: the end of the query failed; start the query again, or call recover()", self._name
                )

    def _wait(self) -> None:
        try:
            super().awaitTermination()
        except (PySparkException, Py4JError, OSError) as error:
            if not self._stopped:
                self._failure = End.REFUSED if _is_refusal(error) else End.FAILED
            return  # awaitTermination tells the user; parts stay open for the restart
        if self._finish is None or self._stopped or not ended_by_itself(self):
            log.info(
                "%s: query stopped; open parts stay hidden until it is started again or finish() is called",
                self._name,
            )
            return
        self._finish()

    def _tell_end(self) -> None:
        self._ended(self._failure or (End.ENDED if self._error is None else End.FAILED))


def _is_refusal(error: Exception) -> bool:
    """Whether a run ended before its first epoch, since the sink belongs to another query."""
    found = typed(error)
    return isinstance(found, IdentityError) and found.code == "NEW_QUERY_OLD_DATA"


class UpkeepTimer:
    """Calls ``upkeep`` every so often for as long as ``is_active`` says so.

    Args:
        upkeep: closes what is due.
        is_active: whether the query still runs.
        interval: seconds.
        sink_id: whose parts they are.
    """

    def __init__(
        self,
        *,
        upkeep: Callable[[], object],
        is_active: Callable[[], bool],
        interval: float,
        sink_id: str = "",
    ) -> None:
        self._sink_id = sink_id
        self._upkeep = upkeep
        self._is_active = is_active
        self._interval = interval
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="filesink-upkeep", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the timer still runs."""
        return self._thread.is_alive()

    @property
    def needed(self) -> bool:
        """Whether the timer runs and its query, too."""
        return self.alive and self._is_active()

    def stop(self) -> None:
        """End the timer; an upkeep at work is waited for."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self._interval):
            if not self._is_active():
                return
            try:
                self._upkeep()
            except Exception as error:  # a policy or sink of the user's may raise anything, and not again
                # The ledger has what was decided; the next batch or the next start goes on from there.
                log.warning(
                    "sink %s: upkeep failed and will be tried again: %s: %s",
                    self._sink_id,
                    type(error).__name__,
                    error,
                    exc_info=True,
                )
