"""What has to be right before an epoch is decided: afterwards it can only go on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.durations import has_passed
from filesink.errors import ConfigError, DataError, IdentityError, StagedDataLost
from filesink.ports import Clock
from filesink.sinks.kafka import markers
from filesink.sinks.kafka.cluster.client import Connection
from filesink.sinks.kafka.cluster.topics import Topic, look_for
from filesink.sinks.kafka.committables import (
    OF_BATCH,
    Committable,
    EpochFiles,
    StagedFile,
    StagedRows,
    transactional_id,
)
from filesink.sinks.kafka.loads import TopicLoad, merged
from filesink.sinks.kafka.preparing import check_markers
from filesink.sinks.kafka.settings import KafkaCluster
from filesink.sinks.store_ledger import StoreLedger
from filesink.storage.api import Store

_FRESH_MS = 60_000  # what is known of a topic
_BATCH_BYTES = 1_000_000  # of records that travel together, where topics take more
_SHARE = 16 << 20  # bytes of rows in memory; with less, a sender takes longer to begin than to send


class CheckEpoch(PreCommitStage[None, Committable]):
    """Puts the files of all tasks together, and refuses rows that a topic would not take.

    Args:
        cluster: where the topics are.
        topic: of the sink; ``""`` if each row names its own.
        directory: where the files are.
        clock: waits between tries.
    """

    def __init__(self, cluster: KafkaCluster, topic: str, directory: StoreLedger, *, clock: Clock) -> None:
        self._cluster = cluster
        self._topic = topic
        self._directory = directory
        self._connection = Connection(cluster, clock)
        self._topics: dict[str, tuple[int, Topic]] = {}
        self._is_known = False

    def begin(self, epoch: EpochContext) -> None:
        """See ``PreCommitStage.begin``; asked once, since an epoch of this driver follows its last one.

        Raises:
            IdentityError: ``KAFKA_EPOCH``.
        """
        if self._is_known or epoch.sink_id.startswith(OF_BATCH):
            return
        self._looked_at((), epoch.now_ms)  # a broker that has just started may not know the markers yet
        for share in range(self._cluster.senders):
            self._check_behind(transactional_id(epoch.sink_id, self._topic, share), epoch)
        self._is_known = True

    def _check_behind(self, name: str, epoch: EpochContext) -> None:
        """Nothing of this epoch, or of a later one, was sent under ``name``."""
        marker = markers.newest(self._connection, self._cluster.marker_topic, name)
        if marker is not None and marker.slot >= epoch.slot:
            raise IdentityError(
                f"Kafka has epochs of '{epoch.sink_id}' up to {marker.slot}, and its ledger goes on with "
                f"{epoch.slot}: the ledger is an older copy, or was begun anew, or another driver is ahead. "
                "Nothing was sent. Bring the ledger back, or choose another uid",
                code="KAFKA_EPOCH",
            )

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[None, Committable]
    ) -> Prepared[None, Committable]:
        """See ``PreCommitStage.prepare``.

        Raises:
            DataError: ``KAFKA_VALUE``, ``KAFKA_TOPIC``; a topic does not take a row.
            ConfigError: ``KAFKA_TOPIC``, ``KAFKA_RIGHTS``, ``KAFKA_MARKERS``.
            StagedDataLost: ``NOT_SHARED``; tasks write where the driver does not look.
        """
        rows = [one for one in prepared.committables if isinstance(one, StagedRows)]
        if not rows:
            return prepared
        loads = merged(load for one in rows for load in one.loads)
        used = self._looked_at([load.topic or self._topic for load in loads], epoch.now_ms)
        for load in loads:
            self._check(load, used.get(load.topic or self._topic), epoch.now_ms)
        store = self._directory.open_store()
        store.runner.run(partial(_verify, store), [file for one in rows for file in one.files])
        shares = shares_of([one.files for one in rows], self._cluster.senders)
        decided = [
            self._epoch_files(rows[0], share, files, [*used.values()]) for share, files in enumerate(shares)
        ]
        return Prepared(decided, prepared.states)

    def _looked_at(self, names: Sequence[str], now_ms: int) -> dict[str, Topic]:
        """What is known of the topics, and of that of markers; those that are there."""
        wanted = [*dict.fromkeys([*names, self._cluster.marker_topic])]
        old = [name for name in wanted if self._is_old(name, now_ms)]
        if old:
            found = look_for(self._connection, old)
            self._topics = {name: (now_ms, topic) for name, topic in found.items()} | {
                name: known for name, known in self._topics.items() if name in wanted and name not in old
            }
        return {name: self._topics[name][1] for name in wanted if name in self._topics}

    def _is_old(self, name: str, now_ms: int) -> bool:
        return name not in self._topics or has_passed(self._topics[name][0], now_ms, _FRESH_MS)

    def _check(self, load: TopicLoad, topic: Topic | None, now_ms: int) -> None:
        # What a column says is a value of a row, and in no message.
        named = f"topic '{self._topic}'" if self._topic else "a topic that column 'topic' names"
        if topic is None or not topic.may_write:
            why = "is not there" if topic is None else "may not be written by this user"
            raise ConfigError(
                f"{named} {why}: {load.rows:,} rows are for it. Nothing was sent. "
                f"{'Create it, or correct the data' if topic is None else 'Grant WRITE on it'}",
                code="KAFKA_TOPIC" if topic is None else "KAFKA_RIGHTS",
            )
        why_not = topic.refusal(load, now_ms)
        if why_not is not None:
            raise DataError(
                f"{named} does not take a row: {why_not}. Nothing was sent. Correct the data, or change the "
                "topic",
                code="KAFKA_VALUE",
            )

    def _epoch_files(
        self, rows: StagedRows, share: int, files: tuple[StagedFile, ...], used: Sequence[Topic]
    ) -> EpochFiles:
        marker_topic = self._cluster.marker_topic
        known = {topic.name: topic for topic in used}
        return EpochFiles(
            sink_id=rows.sink_id,
            slot=rows.slot,
            topic=self._topic,
            name=transactional_id(rows.sink_id, self._topic, share),
            markers=marker_topic,
            markers_id=check_markers(known.get(marker_topic), marker_topic).id,
            batch_bytes=min(_BATCH_BYTES, *(topic.largest for topic in used)),
            files=files,
        )


def shares_of(tasks: Sequence[tuple[StagedFile, ...]], senders: int) -> list[tuple[StagedFile, ...]]:
    """What each sender sends: whole tasks, so that their rows stay in order, and about as many bytes.

    Args:
        tasks: the files of each, which has some.
        senders: at most; fewer where each would have little to do.
    """
    total = sum(map(_bytes_of, tasks))
    shares: list[list[StagedFile]] = [[] for _ in range(max(1, min(senders, len(tasks), total // _SHARE)))]
    for files in sorted(tasks, key=_bytes_of, reverse=True):
        min(shares, key=_bytes_of).extend(files)
    return [tuple(share) for share in shares if share] if len(shares) > 1 else [sum(tasks, ())]


def _bytes_of(files: Sequence[StagedFile]) -> int:
    return sum(file.bytes for file in files)


def _verify(store: Store, file: StagedFile) -> None:
    try:
        store.verify(file.staged)
    except StagedDataLost as error:
        raise StagedDataLost(
            f"a task reported '{file.staged.path}' and the driver does not find it as it was closed. On a "
            "cluster of several hosts the ledger's directory must be on storage that all of them share. "
            f"Nothing was sent. ({error.message})",
            code="NOT_SHARED",
        ) from error
