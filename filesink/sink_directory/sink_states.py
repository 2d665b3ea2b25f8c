"""How far each sink of a path is, by its chain. The only module of this room that reads ledgers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from filesink.api import OF_STAGES
from filesink.ledger.directory import COMPACTION, ledger_ids
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord, Section
from filesink.metastore.announcements import Announcement, AnnouncementCodec
from filesink.parts.committables import HeldFile, HeldFileCodec
from filesink.parts.recorded_paths import check_record
from filesink.sink_directory.epochs import moment
from filesink.storage.api import Store

_OF_UIDS = ("uid-", "appends-")  # how the ids of chains begin that tell a uid
_OF_QUERY = "query-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """One chain of epochs of a path, and what it still holds back.

    Attributes:
        id: of the chain: ``uid-<uid>`` and ``query-<query id>`` of streams, ``appends-<uid>`` and ``appends``
            of batch writes that append, ``exclusive`` of all other batch writes and of offline compaction.
        uid: the user's name of the sink; ``None`` if the chain has none.
        query_id: of the streaming query that has written last; ``None`` if none has.
        slot: the newest epoch that is decided.
        decided: when that was, in UTC; ``None`` before the first.
        complete: whether every epoch that is decided is also visible and announced.
        open_parts, open_rows: part files that later epochs go on with, and the rows in them, which no reader
            sees yet.
        waiting_files, waiting_rows: small files that wait for compaction, as well.
        waiting_partitions: directories that wait to be announced.
    """

    id: str
    uid: str | None
    query_id: str | None
    slot: int
    decided: datetime | None
    complete: bool
    open_parts: int = 0
    open_rows: int = 0
    waiting_files: int = 0
    waiting_rows: int = 0
    waiting_partitions: tuple[str, ...] = ()


def sink_states(store: Store) -> list[SinkState]:
    """Every chain that has begun, by id."""
    return [_state(store, sink_id) for sink_id in ledger_ids(store) if sink_id != COMPACTION]


def _state(store: Store, sink_id: str) -> SinkState:
    ledger = Ledger(store, sink_id, check=check_record)
    head = ledger.history.newest()
    if head is None:
        return SinkState(
            id=sink_id, uid=_uid(sink_id), query_id=_query(sink_id), slot=-1, decided=None, complete=True
        )
    record = head.record
    waiting = list(_held(record.states.get(OF_STAGES)))
    parts = [held for task, states in record.states.items() if task != OF_STAGES for held in _held(states)]
    return SinkState(
        id=sink_id,
        uid=_uid(sink_id),
        query_id=_query(sink_id) if record.last_batch is None else record.last_batch.query_id,
        slot=record.slot,
        decided=moment(record.decided_ms),
        complete=not ledger.history.half_done(),
        open_parts=len({held.group for held in parts}),
        open_rows=sum(held.rows for held in parts),
        waiting_files=len(waiting),
        waiting_rows=sum(held.rows for held in waiting),
        waiting_partitions=tuple(_partitions(record)),
    )


def _held(states: Section | None) -> Iterator[HeldFile]:
    if states is not None:
        yield from states.decode(HeldFileCodec())


def _partitions(record: EpochRecord) -> Iterator[str]:
    waiting = record.waiting.decode(AnnouncementCodec()) if record.waiting.data else []
    return (one.bucket for one in waiting if isinstance(one, Announcement))


def _uid(sink_id: str) -> str | None:
    kind = next((kind for kind in _OF_UIDS if sink_id.startswith(kind)), None)
    return None if kind is None else sink_id.removeprefix(kind)


def _query(sink_id: str) -> str | None:
    return sink_id.removeprefix(_OF_QUERY) if sink_id.startswith(_OF_QUERY) else None
