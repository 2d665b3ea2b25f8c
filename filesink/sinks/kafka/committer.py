"""The second tier: has decided epochs in Kafka, however often it is asked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from functools import cached_property

import pyarrow as pa

from filesink.api import SinkCommitter
from filesink.errors import FilesinkError, InternalError, StagedDataLost, StorageError
from filesink.ports import Clock
from filesink.sinks.kafka.committables import Committable, EpochFiles, StagedFile
from filesink.sinks.kafka.session import Session
from filesink.sinks.kafka.settings import KafkaCluster
from filesink.sinks.kafka.writer import FORMAT
from filesink.sinks.store_ledger import StoreLedger
from filesink.storage.api import Store
from formats.errors import FormatError


class KafkaCommitter(SinkCommitter[Committable]):
    """Sends the files of epochs, and removes them when their marker is committed.

    Args:
        cluster: where to.
        directory: of the sink.
        clock: tells how long a transaction takes.
    """

    def __init__(self, cluster: KafkaCluster, directory: StoreLedger, *, clock: Clock) -> None:
        self._cluster = cluster
        self._directory = directory
        self._clock = clock
        self._session: Session | None = None

    def commit(self, committables: Sequence[Committable]) -> list[Committable]:
        """See ``SinkCommitter.commit``; epochs one after the other.

        Raises:
            ConcurrentDriverError: ``KAFKA_FENCED``; another driver sends for this sink.
            StagedDataLost: rows that are not sent are gone.
        """
        self.failure = None
        left: list[Committable] = []
        for epoch in committables:
            if not isinstance(epoch, EpochFiles):
                raise InternalError("rows of a task cannot be committed; please report this", code="STAGED")
            try:
                self._send(epoch)
            except FilesinkError as error:
                self._session = None
                if error.is_permanent:
                    raise
                self.failure = self.failure or error
                left.append(epoch)
            except BaseException:
                self._session = None
                raise
        return left

    def restore(self) -> None:
        """See ``SinkCommitter.restore``; another driver may have begun a session meanwhile."""
        self._session = None

    def abort(self, committables: Sequence[Committable]) -> None:
        """See ``SinkCommitter.abort``."""
        for one in committables:
            for file in one.files:
                self._store.discard(file.staged.path)

    @cached_property
    def _store(self) -> Store:
        return self._directory.open_store()

    def _send(self, epoch: EpochFiles) -> None:
        session = self._session_for(epoch)
        done = session.done_of(epoch)
        while done < len(epoch.files):
            end = epoch.end_from(done, self._cluster.most_bytes())
            with closing(self._batches(epoch, epoch.files[done:end])) as batches:
                session.send(epoch, end, batches)
            done = end
        for file in epoch.files:
            with suppress(StorageError):  # nobody needs it any more; swept by its name
                self._store.discard(file.staged.path)

    def _session_for(self, epoch: EpochFiles) -> Session:
        session = self._session
        if session is None or session.name != epoch.name or session.batch_bytes > epoch.batch_bytes:
            self._session = None  # ends the other one before its name is used again
            session = self._session = Session(self._cluster, epoch, self._clock)
        return session

    def _batches(
        self, epoch: EpochFiles, files: Sequence[StagedFile]
    ) -> Generator[pa.RecordBatch, None, None]:
        for file in files:
            with closing(self._store.open_staged(file.staged)) as opened:
                try:
                    yield from FORMAT.open_reader(opened)
                except FormatError as error:
                    raise StagedDataLost(
                        f"'{file.staged.path}' of {epoch} is damaged, with {file.rows:,} rows that are not "
                        f"in Kafka ({error.message}). Bring it back from a backup",
                        code="STAGED_DATA_LOST",
                    ) from error
