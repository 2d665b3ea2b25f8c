"""What a task reports and the ledger keeps: where the rows of one task wait, and what becomes of them.

*Staged* rows are in a table of the attempt's own; *prepared* ones are in the target already, in a
transaction that waits for its end. Both bear a name of 63 bytes at most that tells whose they are:

    filesink_<tag of the target><b|s><tag of the sink>_<slot>_<seconds since 1970><random>

``b`` is a batch write, which has an id of its own, and ``s`` a stream. Everything that a commit needs is in
these values, so that an epoch is completed as it was decided, however the sink is built by then.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from filesink.errors import InternalError, StateCorruptError
from filesink.framing import check_field, from_json, to_json
from filesink.ports import Ids

CODEC_VERSION = 1
_NAME = re.compile(
    r"filesink_(?P<tag>[0-9a-f]{8}[bs][0-9a-f]{11})_(?P<slot>0|[1-9][0-9]{0,11})"
    r"_(?P<seconds>[0-9a-f]{8})[0-9a-f]{12}"
)
OF_BATCH = "batch-"  # how the ids of batch writes begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table that rows go to; see ``PostgresTable``. ``""`` is no ``newest_by``, or no ``row_kind``."""

    schema: str
    table: str
    keys: tuple[str, ...] = ()
    newest_by: str = ""
    row_kind: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochKey:
    """One epoch of one sink for one target: what is committed once.

    Attributes:
        sink_id: as ``WriterContext.sink_id``; so is ``slot`` as its ``epoch``.
        schema: where its row is, and the tables of its attempts.
    """

    sink_id: str
    slot: int
    target: Target
    schema: str

    def __str__(self) -> str:
        return f"epoch {self.slot} of '{self.sink_id}' for {self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """``rows`` rows in the table ``name`` of the schema of ``epoch``."""

    epoch: EpochKey
    name: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """``rows`` rows in the target, in the prepared transaction ``name``."""

    epoch: EpochKey
    name: str
    rows: int


Committable = StagedRows | PreparedRows
_KINDS: dict[str, type[StagedRows | PreparedRows]] = {"staged": StagedRows, "prepared": PreparedRows}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptName:
    """What a name tells: by whom, for which slot and when it was made, in ms since 1970 UTC."""

    tag: str
    slot: int
    made_ms: int


def prefix_of(target: Target, sink_id: str = OF_BATCH) -> str:
    """How names begin for a target and a sink; by default for all batch writes."""
    place = _digest(f"{target.schema}\0{target.table}")[:8]
    kind = "b" if sink_id.startswith(OF_BATCH) else "s"
    own = "" if sink_id == OF_BATCH else _digest(sink_id)[:11]
    return f"filesink_{place}{kind}{own}"


def new_name(epoch: EpochKey, *, ids: Ids, now_ms: int) -> str:
    """A name that no other attempt will ever have."""
    prefix = prefix_of(epoch.target, epoch.sink_id)
    return f"{prefix}_{epoch.slot}_{now_ms // 1000 & 0xFFFF_FFFF:08x}{ids.uuid()[-12:]}"


def parse_name(name: str) -> AttemptName | None:
    """What ``name`` tells; ``None`` if it is none of ours."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return AttemptName(tag=found["tag"], slot=int(found["slot"]), made_ms=int(found["seconds"], 16) * 1000)


def by_epoch(committables: Sequence[Committable]) -> dict[EpochKey, list[Committable]]:
    """``committables`` of each epoch, as they come."""
    found: dict[EpochKey, list[Committable]] = {}
    for committable in committables:
        found.setdefault(committable.epoch, []).append(committable)
    return found


@dataclass(frozen=True, slots=True)
class CommittableCodec:
    """Bytes of a list of committables: canonical JSON."""

    version: int = CODEC_VERSION

    def encode(self, values: Sequence[Committable]) -> bytes:
        """Each epoch once, with the names and rows of its tasks."""
        return to_json([_plain(epoch, found) for epoch, found in by_epoch(values).items()])

    def decode(self, version: int, data: bytes) -> list[Committable]:
        """What ``encode`` was given, by epochs.

        Raises:
            StateCorruptError: not such a list, or a name that this release would not have made.
        """
        if version != CODEC_VERSION:
            raise InternalError(f"committables of version {version} passed a version check", code="VERSION")
        try:
            return [one for entry in from_json(data, where="a list of rows") for one in _values(dict(entry))]
        except (TypeError, ValueError, KeyError) as error:
            raise StateCorruptError(
                f"an entry of a list of rows is malformed: {type(error).__name__}", code="JSON"
            ) from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(epoch: EpochKey, found: Sequence[Committable]) -> dict[str, Any]:
    tasks = [[_kind(one), one.name, one.rows] for one in found]
    entry = asdict(epoch)
    if not epoch.target.row_kind:  # the first release knew none
        del entry["target"]["row_kind"]
    return {**entry, "tasks": tasks}


def _kind(committable: Committable) -> str:
    return next(name for name, kind in _KINDS.items() if kind is type(committable))


def _values(entry: dict[str, Any]) -> list[Committable]:
    tasks, target = entry.pop("tasks"), dict(entry.pop("target"))
    keys = target.pop("keys")
    check_field("keys", keys, list)
    for key in keys:
        check_field("keys", key, str)
    target.setdefault("row_kind", "")
    _check(Target, target, without="keys")
    _check(EpochKey, entry, without="target")
    epoch = EpochKey(**entry, target=Target(**target, keys=tuple(keys)))
    return [_value(epoch, *task) for task in tasks]


def _value(epoch: EpochKey, kind: str, name: str, rows: int) -> Committable:
    check_field("name", name, str)
    check_field("rows", rows, int)
    if parse_name(name) is None or not name.startswith(
        f"{prefix_of(epoch.target, epoch.sink_id)}_{epoch.slot}_"
    ):
        raise StateCorruptError(
            f"a list of rows names what is none of its epoch {epoch.slot} of '{epoch.sink_id}'", code="JSON"
        )
    return _KINDS[kind](epoch=epoch, name=name, rows=rows)


def _check(kind: type[Any], values: dict[str, Any], *, without: str) -> None:
    """Types of one entry; those of the fields are the specification."""
    known = {"str": str, "int": int}
    for one in fields(kind):
        if one.name != without:
            check_field(one.name, values[one.name], known[str(one.type)])
