"""How far each sink of a path is, by its chain. The only module of this room that reads ledgers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from filesink.api import OF_STAGES
from filesink.inventory.chains import left_files
from filesink.ledger.directory import COMPACTION, ledger_ids
from filesink.ledger.identity import EXCLUSIVE
from filesink.ledger.ledger import Ledger
from filesink.ledger.record import EpochRecord, Section
from filesink.metastore.announcements import Announcement, AnnouncementCodec
from filesink.parts.committables import HeldFile, HeldFileCodec, ReplacedFile
from filesink.parts.recorded_paths import check_record
from filesink.parts.stages.open_parts import parts_of
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
        query_id: the id of the streaming query that wrote last; ``None`` if no query has written.
        slot: the newest epoch that is decided.
        decided: when it was decided, in UTC; ``None`` before the first.
        complete: whether every decided epoch is also visible and announced.
        open_parts, open_rows: part files that later epochs continue, and their rows, which no reader sees
            yet.
        waiting_files, waiting_rows: small files that wait for compaction, and their rows.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPart:
    """Rows that are written and that no reader sees yet.

    Attributes:
        sink: id of the chain that keeps them, see ``SinkState``.
        bucket: the directory where they will be seen, ``""`` for the base path.
        kind: ``"open"`` of a part file that later epochs continue, ``"waiting"`` of a small file that waits
            for compaction.
        files: number of its hidden files.
        rows, bytes: of these files together.
        since: when its first record came, in UTC.
        changed: when its last record came, in UTC.
    """

    sink: str
    bucket: str
    kind: Literal["open", "waiting"]
    files: int
    rows: int
    bytes: int
    since: datetime
    changed: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLook:
    """A chain at one moment: its state, and what it holds back."""

    state: SinkState
    held: tuple[HeldPart, ...] = ()


def sink_states(store: Store) -> list[SinkState]:
    """Every chain that has begun, by id."""
    return [look_at(store, sink_id).state for sink_id in chain_ids(store)]


def chain_ids(store: Store) -> list[str]:
    """The ids of chains that have begun, in order; copies of records are in another place."""
    return [sink_id for sink_id in ledger_ids(store) if sink_id != COMPACTION]


def uid_of(sink_id: str) -> str | None:
    """The uid that the id of a chain tells, ``None`` if it tells none."""
    kind = next((kind for kind in _OF_UIDS if sink_id.startswith(kind)), None)
    return None if kind is None else sink_id.removeprefix(kind)


def replaced_by_overwrites(store: Store) -> list[ReplacedFile]:
    """The files that overwrites have replaced, and left there.

    Raises:
        StateError, SecurityError: their chain is damaged.
    """
    return left_files(Ledger(store, EXCLUSIVE, check=check_record))


def look_at(store: Store, sink_id: str) -> ChainLook:
    """One chain.

    Raises:
        StateError, SecurityError: it is damaged; the message names the file.
    """
    ledger = Ledger(store, sink_id, check=check_record)
    head = ledger.history.newest()
    if head is None:
        state = SinkState(
            id=sink_id, uid=uid_of(sink_id), query_id=_query(sink_id), slot=-1, decided=None, complete=True
        )
        return ChainLook(state=state)
    record = head.record
    waiting = list(_held(record.states.get(OF_STAGES)))
    parts = [held for task, states in record.states.items() if task != OF_STAGES for held in _held(states)]
    state = SinkState(
        id=sink_id,
        uid=uid_of(sink_id),
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
    held_back = [*_parts(sink_id, "open", parts), *_parts(sink_id, "waiting", waiting)]
    return ChainLook(state=state, held=tuple(held_back))


def _parts(sink_id: str, kind: Literal["open", "waiting"], files: Sequence[HeldFile]) -> Iterator[HeldPart]:
    for part in parts_of(files):
        yield HeldPart(
            sink=sink_id,
            bucket=part[0].bucket,
            kind=kind,
            files=len(part),
            rows=sum(held.rows for held in part),
            bytes=sum(held.size for held in part),
            since=moment(min(held.created_ms for held in part)),
            changed=moment(max(held.updated_ms for held in part)),
        )


def _held(states: Section | None) -> Iterator[HeldFile]:
    if states is not None:
        yield from states.decode(HeldFileCodec())


def _partitions(record: EpochRecord) -> Iterator[str]:
    waiting = record.waiting.decode(AnnouncementCodec()) if record.waiting.data else []
    return (one.bucket for one in waiting if isinstance(one, Announcement))


def _query(sink_id: str) -> str | None:
    return sink_id.removeprefix(_OF_QUERY) if sink_id.startswith(_OF_QUERY) else None
