"""What a task reports, and what the ledger keeps of an epoch: which files hold its rows, in which order.

A task reports ``StagedRows``, with what its rows ask of their topics. For all tasks together an epoch decides
one ``EpochFiles``, which holds no value of a row. It has everything that is needed to send them, so that an
epoch is completed as it was decided, however the sink is built by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from filesink.errors import InternalError, StateCorruptError
from filesink.framing import check_field, from_json, to_json
from filesink.naming import name_of, parent, parse_hidden, sink_tag
from filesink.parts.committables import plain_staged, staged_of
from filesink.sinks.kafka.loads import TopicLoad
from filesink.storage.staged import Staged

CODEC_VERSION = 1
#: The directory of staged files, in the sink's own.
STAGED = "staged"
OF_BATCH = "batch-"  # how the ids of batch writes begin


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A closed hidden file with ``rows`` rows, which take ``bytes`` bytes in memory."""

    staged: Staged
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """What one task has staged.

    Attributes:
        sink_id: as ``WriterContext.sink_id``; so is ``slot`` as its ``epoch``.
        files: in the order of their rows.
        loads: what the rows ask of each topic.
    """

    sink_id: str
    slot: int
    files: tuple[StagedFile, ...]
    loads: tuple[TopicLoad, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFiles:
    """Files of an epoch, in the order in which they are sent: all of them, or the share of one sender.

    Attributes:
        sink_id, slot: as in ``StagedRows``.
        topic: that of all rows; ``""`` if each names its own.
        name: the transactional id under which they are sent, and the key of their marker.
        markers: the topic of markers, and ``markers_id`` what the cluster calls that very topic.
        batch_bytes: the largest batch of records that all topics of the rows take.
    """

    sink_id: str
    slot: int
    topic: str
    name: str
    markers: str
    markers_id: str
    batch_bytes: int
    files: tuple[StagedFile, ...]

    def __str__(self) -> str:
        return f"epoch {self.slot} of '{self.sink_id}'"

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(file.rows for file in self.files)

    @property
    def content(self) -> str:
        """A digest of the names of the files, which are like no others."""
        names = "\n".join(file.staged.path for file in self.files)
        return hashlib.sha256(names.encode()).hexdigest()[:32]

    def end_from(self, first: int, most_bytes: int) -> int:
        """Where a transaction ends that begins with file ``first``: before this one. It has at least one."""
        end, total = first + 1, self.files[first].bytes
        while end < len(self.files) and total + self.files[end].bytes <= most_bytes:
            total += self.files[end].bytes
            end += 1
        return end


Committable = StagedRows | EpochFiles


def transactional_id(sink_id: str, topic: str, share: int = 0) -> str:
    """The name of a sink in the cluster; two that write to different topics may have the same uid.

    Args:
        sink_id: of the sink.
        topic: of the sink.
        share: which one of an epoch that several send at once, each under a name of its own.
    """
    name = f"filesink-{sink_id}-{hashlib.sha256(topic.encode()).hexdigest()[:8]}"
    return f"{name}-{share}" if share else name


@dataclass(frozen=True, slots=True)
class CommittableCodec:
    """Bytes of a list of committables: canonical JSON."""

    version: int = CODEC_VERSION

    def encode(self, values: Sequence[Committable]) -> bytes:
        """The fields of each, with the word for what it is."""
        return to_json([_plain(value) for value in values])

    def decode(self, version: int, data: bytes) -> list[Committable]:
        """What ``encode`` was given.

        Raises:
            StateCorruptError: not such a list, or a file that its sink would not have made.
            SecurityError: a path leaves the directory.
        """
        if version != CODEC_VERSION:
            raise InternalError(f"committables of version {version} passed a version check", code="VERSION")
        try:
            return [_value(dict(entry)) for entry in from_json(data, where="a list of staged rows")]
        except (TypeError, ValueError, KeyError) as error:
            raise StateCorruptError(
                f"an entry of a list of staged rows is malformed: {type(error).__name__}", code="JSON"
            ) from error


def _plain(value: Committable) -> dict[str, Any]:
    plain: dict[str, Any] = {
        one.name: getattr(value, one.name) for one in fields(value) if one.name not in {"files", "loads"}
    }
    plain["files"] = [[plain_staged(one.staged), one.rows, one.bytes] for one in value.files]
    if isinstance(value, StagedRows):
        plain["loads"] = [asdict(one) for one in value.loads]
    return plain


def _value(entry: dict[str, Any]) -> Committable:
    kind = StagedRows if "loads" in entry else EpochFiles
    for one in fields(kind):
        if one.name not in {"files", "loads"}:
            check_field(one.name, entry[one.name], {"str": str, "int": int}[str(one.type)])
    entry["files"] = tuple(_file(entry["sink_id"], entry["slot"], *one) for one in entry["files"])
    if kind is StagedRows:
        entry["loads"] = tuple(_load(dict(one)) for one in entry["loads"])
    return kind(**entry)


def _file(sink_id: str, slot: int, staged: Any, rows: int, size: int) -> StagedFile:
    found = staged_of(staged)
    check_field("rows", rows, int)
    check_field("bytes", size, int)
    name = parse_hidden(name_of(found.path))
    if parent(found.path) != STAGED or name is None or (name.tag, name.slot) != (sink_tag(sink_id), slot):
        raise StateCorruptError(
            f"a list of staged rows names a file that is none of epoch {slot} of '{sink_id}'", code="JSON"
        )
    return StagedFile(staged=found, rows=rows, bytes=size)


def _load(entry: dict[str, Any]) -> TopicLoad:
    for one in fields(TopicLoad):
        value = entry[one.name]
        if one.name == "topic":
            check_field(one.name, value, str)
        else:
            check_field(one.name, 0 if value == -1 else value, int)
    return TopicLoad(**entry)
