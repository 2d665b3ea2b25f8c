"""The record of one epoch, as it stands in the ledger.

A record is the one point of no return of an epoch: what it names will be published, whatever
crashes. It says what the epoch was for, what is to be published and announced, and carries the
whole state that the next epoch starts from. Payloads of a sink (committables, announcements,
states) are opaque here: sections with the version of the codec that wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from filesink.errors import ConfigError, StateCorruptError
from filesink.framing import Codec, check_field, frame, from_json, to_json, unframe
from filesink.save_mode import SaveMode

T = TypeVar("T")

# 1 had neither schema nor offline compaction; up to 2 no completion said which record it is of; up to 3 there
# were no offsets, and no inventory; up to 4 no operations, and a record of anything else is still written so.
RECORD_VERSION = 5
_BEFORE_OPERATIONS = 4
_FIELDS = {"slot": int, "nonce": str, "sink_id": str, "decided_ms": int, "rows": int}
_SUBTASK = re.compile("-1|0|[1-9][0-9]{0,17}")  # one text for each number; -1 is ``api.OF_STAGES``
_CAUSE_FIELDS = {
    "query_id": str, "batch_id": int, "fingerprint": str, "txn_id": str, "mode": str, "remembered_in": str,
    "slot": int, "writer": str, "supersedes": str, "what": str,
}  # fmt: skip
_RARE = frozenset({"writer", "supersedes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """An epoch that commits one micro-batch of a streaming query.

    Attributes:
        query_id: Spark's id of the query, the same for all runs from one checkpoint.
        batch_id: Spark's number of the micro-batch.
        fingerprint: SHA-256 of the batch's entry in the offset log, which is the same for a replay
            and another for other input; ``""`` where the log cannot be read (the data source door).
    """

    query_id: str
    batch_id: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWrite:
    """An epoch that commits one batch write.

    Attributes:
        txn_id: the user's name for the data, ``""`` if none was given.
        mode: what becomes of the files that were there.
        remembered_in: under which name a second call looks for ``txn_id``; ``""`` without one.
        writer: an id made for this write alone, whose tag its files bear; ``""`` in records up to version 2,
            whose files bear that of their chain.
        supersedes: nonce of the record that an earlier write of ``txn_id`` has, if this one takes its place.
    """

    txn_id: str = ""
    mode: SaveMode = SaveMode.APPEND
    remembered_in: str = ""
    writer: str = ""
    supersedes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """An epoch without input: closes what is due by age or inactivity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of input: closes everything that is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineCompaction:
    """An epoch that replaces finished files by what they are merged into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An epoch of an operator's, which replaces finished files by others or only removes them.

    Attributes:
        what: its name, such as ``"retain"``; nothing depends on it but what people and readers are told.
    """

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """An epoch that undoes the one before it, whose bytes were lost: the state is that before both.

    Attributes:
        slot: of the epoch that is undone. It is never used again, since late requests of that epoch's drivers
            may still write there. In a claim it is the record's own slot: such a claim only says that the
            ``txn_id`` stands for no write any more.
        writer: ``BatchWrite.writer`` of the write that is undone, whose tag is in the names of its files.
    """

    slot: int
    writer: str = ""


Cause = MicroBatch | BatchWrite | Upkeep | Finish | OfflineCompaction | Operation | TakenBack
_CAUSES: dict[str, type[Any]] = {
    "micro-batch": MicroBatch,
    "batch-write": BatchWrite,
    "upkeep": Upkeep,
    "finish": Finish,
    "offline-compaction": OfflineCompaction,
    "operation": Operation,
    "taken-back": TakenBack,
}
_CAUSE_NAMES = {kind: name for name, kind in _CAUSES.items()}


def kind_of(cause: Cause) -> str:
    """What records call the kind of ``cause``."""
    return _CAUSE_NAMES[type(cause)]


@dataclass(frozen=True, slots=True)
class Section:
    """Bytes of a sink's own codec, and the codec's version."""

    version: int
    data: bytes

    @staticmethod
    def of(codec: Codec[T], values: Sequence[T]) -> Section:
        """What ``codec`` makes of ``values``.

        Raises:
            ConfigError: ``BAD_VALUE``; they are no list, though a user's sink has made them.
        """
        given: object = values
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ConfigError(
                "prepare_commit and snapshot_state of a writer return a list, [] for nothing to be done, and "
                f"one has returned {type(given).__name__}. Nothing was written",
                code="BAD_VALUE",
            )
        return Section(codec.version, codec.encode(values))

    def decode(self, codec: Codec[T]) -> list[T]:
        """What ``of`` was given, by this or any older version of ``codec``."""
        return codec.decode(self.version, self.data)


EMPTY = Section(0, b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecord:
    """Everything that makes one epoch happen, and the state after it.

    Attributes:
        slot: place in the ledger's chain, 0, 1, 2 …
        nonce: made by the driver that decides, to know its own record after a lost reply.
        last_batch: the newest micro-batch decided in this chain up to and with this record.
        decided_ms: the driver's clock, milliseconds since 1970 UTC.
        rows: records that the epoch's tasks took in; those now in held files are counted too.
        waiting: what the aggregated committer has put off to a later epoch.
        schema: columns of the newest input in this chain, for the next one to be compared with; ``EMPTY``
            if there was none, or no release before this one wrote them down.
        states: a writer's state by subtask index.
        replaces: of a write that replaces everything, the newest slot of each stream's chain, by sink id,
            whose files it has found, if they were not gone.
        queries: every query but that of ``last_batch`` that has written to this chain, and its newest batch.
        digest: of the rows that came in, whatever their order; ``""`` if it was not computed.
        offsets: of the input, as Spark's offset log has them; ``""`` if they are not known, or too long.
        after_version: the newest version of the inventory when this was decided; its own is a later one.
        version: of the bytes that this was read from.
    """

    slot: int
    nonce: str
    sink_id: str
    cause: Cause
    last_batch: MicroBatch | None
    decided_ms: int
    rows: int
    committables: Section
    announcement: Section = EMPTY
    waiting: Section = EMPTY
    schema: Section = EMPTY
    states: Mapping[int, Section] = field(default_factory=dict)
    replaces: Mapping[str, int] = field(default_factory=dict)
    queries: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    offsets: str = ""
    after_version: int = 0
    version: int = field(default=RECORD_VERSION, compare=False)

    @property
    def files_of(self) -> str:
        """The id whose tag the files of this epoch bear."""
        return (isinstance(self.cause, BatchWrite) and self.cause.writer) or self.sink_id

    @property
    def files_slot(self) -> int:
        """The slot that the names of its files tell: a batch write makes them before it has one."""
        return 0 if self.files_of != self.sink_id else self.slot

    def to_bytes(self) -> bytes:
        """Durable form: a framed JSON line, then the sections one after the other."""
        sections = [("committables", self.committables), ("announcement", self.announcement)]
        rare = (("waiting", self.waiting), ("schema", self.schema))
        sections += [(name, section) for name, section in rare if section.data]
        sections += [(f"state {subtask}", state) for subtask, state in sorted(self.states.items())]
        head = {
            "slot": self.slot,
            "nonce": self.nonce,
            "sink_id": self.sink_id,
            "cause": _cause_to_json(self.cause),
            "last_batch": None if self.last_batch is None else _cause_to_json(self.last_batch),
            "decided_ms": self.decided_ms,
            "rows": self.rows,
            **({"replaces": dict(sorted(self.replaces.items()))} if self.replaces else {}),
            **({"queries": dict(sorted(self.queries.items()))} if self.queries else {}),
            **({"digest": self.digest} if self.digest else {}),
            **({"offsets": self.offsets} if self.offsets else {}),
            **({"after_version": self.after_version} if self.after_version else {}),
            "sections": [[name, section.version, len(section.data)] for name, section in sections],
        }
        body = b"".join(section.data + b"\n" for _, section in sections)
        # So that earlier releases go on reading what they can, and say why they cannot read the rest.
        version = RECORD_VERSION if isinstance(self.cause, Operation) else _BEFORE_OPERATIONS
        return frame("epoch-record", version, to_json(head) + b"\n" + body)

    @staticmethod
    def from_bytes(data: bytes, *, where: str) -> EpochRecord:
        """What ``to_bytes`` was called on.

        Raises:
            StateCorruptError, StateVersionError: see ``filesink.framing.unframe``.
        """
        version, payload = unframe("epoch-record", RECORD_VERSION, data, where=where)
        line, _, body = payload.partition(b"\n")
        head = from_json(line, where=where)
        try:
            _check_fields(head)
            sections = _sections(head.pop("sections"), body)
            last, cause = _last_batch(head.pop("last_batch")), _cause_from_json(head.pop("cause"))
            return EpochRecord(
                **head,
                cause=cause,
                last_batch=last,
                committables=sections.pop("committables"),
                announcement=sections.pop("announcement"),
                waiting=sections.pop("waiting", EMPTY),
                schema=sections.pop("schema", EMPTY),
                states={_subtask(name): section for name, section in sections.items()},
                version=version,
            )
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise StateCorruptError(f"{where} is malformed: {type(error).__name__}", code="JSON") from error


def _check_fields(head: dict[str, Any]) -> None:
    for name, kind in _FIELDS.items():
        check_field(name, head[name], kind)
    numbers = {**head.get("replaces", {}), **head.get("queries", {})}
    for sink_id, slot in numbers.items():
        check_field("replaces", sink_id, str)
        check_field("replaces", slot, int)
    check_field("digest", head.get("digest", ""), str)
    check_field("offsets", head.get("offsets", ""), str)
    check_field("after_version", head.get("after_version", 0), int)


def _sections(entries: list[Any], body: bytes) -> dict[str, Section]:
    found: dict[str, Section] = {}
    start = 0
    for name, version, length in entries:
        check_field("version", version, int)
        check_field("length", length, int)
        if name in found or start + length >= len(body):
            raise ValueError(name)
        found[name] = Section(version, body[start : start + length])
        start += length + 1
    if start != len(body):
        raise ValueError("length")
    return found


def _subtask(name: str) -> int:
    kind, _, number = name.partition(" ")
    if kind != "state" or not _SUBTASK.fullmatch(number):
        raise ValueError(name)
    return int(number)


def _cause_to_json(cause: Cause) -> dict[str, Any]:
    values = {name: getattr(cause, name) for name in cause.__dataclass_fields__}
    if isinstance(cause, BatchWrite):
        values["mode"] = cause.mode.value
    values = {name: value for name, value in values.items() if value or name not in _RARE}
    return {"kind": kind_of(cause), **values}


def _cause_from_json(value: dict[str, Any]) -> Any:
    values = {name: item for name, item in value.items() if name != "kind"}
    for name, item in values.items():
        check_field(name, item, _CAUSE_FIELDS[name])
    if "mode" in values:
        values["mode"] = SaveMode(values["mode"])
    return _CAUSES[value["kind"]](**values)


def _last_batch(value: dict[str, Any] | None) -> MicroBatch | None:
    batch = None if value is None else _cause_from_json(value)
    if not isinstance(batch, MicroBatch | None):
        raise TypeError("last_batch")
    return batch
