"""Sends staged files: in the driver, and in tasks of Spark.

Rules:
1. One session at a time, that of the epoch's transactional id. What is sent by its marker is not sent again.
2. Files are removed when the marker of their last one is committed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from filesink.errors import StagedDataLost, StorageError
from filesink.ports import Clock
from filesink.sinks.kafka.committables import EpochFiles, StagedFile
from filesink.sinks.kafka.session import Session
from filesink.sinks.kafka.settings import KafkaCluster
from filesink.sinks.kafka.writer import FORMAT
from filesink.sinks.store_ledger import StoreLedger
from filesink.storage.api import Store
from filesink.system import SystemClock
from formats.errors import FormatError


class Sender:
    """Sends epochs one after the other.

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

    def send(self, epoch: EpochFiles) -> None:
        """Send what is not yet sent of ``epoch``; after an error the next call asks the cluster again.

        Raises:
            ConcurrentDriverError: ``KAFKA_FENCED``; somebody else sends under this name.
            StagedDataLost: rows that are not sent are gone.
            FilesinkError: it is not known how much was sent.
        """
        try:
            self._send(epoch)
        except BaseException:
            self.end_session()
            raise

    def end_session(self) -> None:
        """Somebody else may begin one under the same name."""
        self._session = None

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
            self.end_session()  # before its name is used again
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


@dataclass(frozen=True, slots=True)
class SendInTask:
    """What a task of Spark does with its share of an epoch; it goes there with ``cluster``."""

    cluster: KafkaCluster
    directory: StoreLedger

    def __call__(self, epoch: EpochFiles) -> None:
        """See ``Sender.send``; an attempt that comes later fences off the one before."""
        Sender(self.cluster, self.directory, clock=SystemClock()).send(epoch)
