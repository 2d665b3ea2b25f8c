"""The second tier: has decided epochs in Kafka, however often it is asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from filesink.api import SinkCommitter
from filesink.errors import ConcurrentDriverError, FilesinkError, InternalError
from filesink.ports import Clock, TaskRunner
from filesink.sinks.kafka.committables import Committable, EpochFiles
from filesink.sinks.kafka.sender import Sender, SendInTask
from filesink.sinks.kafka.settings import KafkaCluster
from filesink.sinks.store_ledger import StoreLedger

log = logging.getLogger("filesink.kafka")


class KafkaCommitter(SinkCommitter[Committable]):
    """Sends the files of epochs, and removes them when their marker is committed.

    Args:
        cluster: where to.
        directory: of the sink.
        clock: tells how long a transaction takes.
        tasks: who can send several shares of an epoch at once, if anybody; asked for each such epoch.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        directory: StoreLedger,
        *,
        clock: Clock,
        tasks: Callable[[], TaskRunner | None],
    ) -> None:
        self._sender = Sender(cluster, directory, clock=clock)
        self._in_task = SendInTask(cluster, directory)
        self._directory = directory
        self._tasks = tasks

    def commit(self, committables: Sequence[Committable]) -> list[Committable]:
        """See ``SinkCommitter.commit``; the shares of one epoch, by tasks or one after the other.

        Raises:
            ConcurrentDriverError: ``KAFKA_FENCED``; another driver sends for this sink.
            StagedDataLost: rows that are not sent are gone.
        """
        self.failure = None
        shares = [_checked(one) for one in committables]
        if self._sent_by_tasks(shares):
            return []
        left: list[Committable] = []
        for share in shares:
            try:
                self._sender.send(share)
            except FilesinkError as error:
                if error.is_permanent:
                    raise
                self.failure = self.failure or error
                left.append(share)
        return left

    def restore(self) -> None:
        """See ``SinkCommitter.restore``; another driver may have begun a session meanwhile."""
        self._sender.end_session()

    def abort(self, committables: Sequence[Committable]) -> None:
        """See ``SinkCommitter.abort``."""
        store = self._directory.open_store()
        for one in committables:
            for file in one.files:
                store.discard(file.staged.path)

    def _sent_by_tasks(self, shares: Sequence[EpochFiles]) -> bool:
        """Whether tasks have sent all of them."""
        runner = self._tasks() if len(shares) > 1 else None
        if runner is None:
            return False
        self._sender.end_session()  # a task begins one under the same name
        try:
            runner.run(self._in_task, shares)
        except ConcurrentDriverError:
            raise
        except Exception as error:  # noqa: BLE001 - markers tell what was sent, and the driver sends the rest
            # The text of any other error may show a row.
            why = error if isinstance(error, FilesinkError) else type(error).__name__
            log.warning("%s: tasks could not send all of it, so the driver goes on: %s", shares[0], why)
            return False
        return True


def _checked(one: Committable) -> EpochFiles:
    if not isinstance(one, EpochFiles):
        raise InternalError("rows of a task cannot be committed; please report this", code="STAGED")
    return one
