"""What a record may name: nothing but what its sink could have written. Pure.

    pending, undone   a part file of the sink in a bucket, staged beside it, or as an upload to it
    held, discarded   a hidden file of the sink, in a bucket
    replaced          what readers see, whoever wrote it; by an epoch that appends only if its client has
                      acknowledged it, and then it is a part file
    superseded        a part file of any sink that readers see, and another one that has its rows

Anybody who can write into the directory of a ledger can get checksums right, too. So a record is believed as
far as it could have been decided, and a task as far as it could have written what it reports.

Rules:
1. Everything that is decided, read from a ledger or reported is checked before anything is done for it.
2. What is refused when it is read was refused before it was decided. So these rules may be widened from
   release to release, and never narrowed.
3. Buckets are judged by where they lead, not by what an assigner may call them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from filesink.api import Prepared
from filesink.errors import SecurityError, StateCorruptError
from filesink.framing import is_plain
from filesink.ledger.directory import COMPACTION, is_sink_id
from filesink.ledger.identity import EXCLUSIVE, is_collected
from filesink.ledger.record import BatchWrite, EpochRecord, MicroBatch, TakenBack
from filesink.naming import (
    LEDGER_ROOT,
    is_data,
    name_of,
    parent,
    parse_ours,
    parse_part,
    shown,
    sink_tag,
    slots_of_part,
)
from filesink.parts.committables import (
    Committable,
    CommittableCodec,
    DiscardFile,
    HeldFile,
    HeldFileCodec,
    PendingFile,
    ReplacedFile,
    SupersededFile,
    UndoneFile,
    Watermark,
)
from filesink.save_mode import SaveMode
from filesink.storage.staged import PendingUpload

_OF_TXN = (
    "txn-"  # how ledgers are named that may hold copies of records, see ``filesink.ledger.transactions``
)
_MEMORY = re.compile(_OF_TXN + "[0-9a-f]{32}")
_GROUP = re.compile(r"[0-9A-Za-z-]{0,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Authors:
    """The sinks and writes that may have written the files a record names.

    Attributes:
        tags: the tag of the chain, and of other ids that its files were written for.
        slot: the newest slot that names may have; ``None`` if it is not known here.
    """

    tags: Collection[str]
    slot: int | None = None

    @staticmethod
    def of(*sink_ids: str, slot: int | None = None) -> Authors:
        """The authors of files whose names have the tags of ``sink_ids``."""
        return Authors(tags=frozenset(map(sink_tag, sink_ids)), slot=slot)

    def wrote_hidden(self, path: str) -> bool:
        """Whether ``path`` is that of a hidden file or upload of theirs."""
        name = parse_ours(name_of(path))
        return name is not None and name.tag in self.tags and self._is_early(name.slot)

    def wrote_part(self, path: str) -> bool:
        """Whether ``path`` is that of a part file of theirs."""
        name = name_of(path)
        slots = (slot for tag in self.tags for slot in slots_of_part(name, tag))
        return name[0] not in "._" and any(map(self._is_early, slots))

    def _is_early(self, slot: int) -> bool:
        return self.slot is None or slot <= self.slot


def check_record(record: EpochRecord, where: str) -> None:
    """Raise unless a file sink could have decided ``record``.

    Args:
        record: before it is decided, or as it was read.
        where: its path, for messages.

    Raises:
        StateCorruptError: what it says of files cannot be read.
        SecurityError: ``ESCAPE`` or ``FOREIGN_FILE``; it names what is not its sink's.
    """
    with naming(where):
        _check_cause(record)
        files: list[Committable] = _decoded(record)
        _check_kinds(record, files)
        check_files(files, _authors(record))


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Say of a record that is refused here which it is; ``where`` is its path."""
    try:
        yield
    except (SecurityError, StateCorruptError) as error:
        raise type(error)(
            f"{shown(where)}: {error.message}. Nothing was done for this record; restore it from a backup",
            code=error.code,
        ) from error


def check_reported(found: Prepared[HeldFile, Committable], sink_id: str) -> None:
    """Raise ``SecurityError`` unless a task that wrote for ``sink_id`` may have reported ``found``."""
    for file in found.committables:
        if not isinstance(file, PendingFile | HeldFile | DiscardFile | Watermark):
            raise _foreign(file)
    held = (file for states in found.states.values() for file in states)
    check_files([*found.committables, *held], Authors.of(sink_id))


def check_files(files: Iterable[Committable], authors: Authors) -> None:
    """Raise ``SecurityError`` (``FOREIGN_FILE``) unless each of ``files`` may be named by ``authors``."""
    for file in files:
        match file:
            case PendingFile():
                allowed = file.bucket == parent(file.target) and _is_staged(file, authors)
            case UndoneFile():
                allowed = _is_staged(file, authors)
            case HeldFile():
                allowed = file.bucket == parent(file.staged.path) and _is_held(file, authors)
            case DiscardFile(path=path):
                allowed = is_bucket(parent(path)) and authors.wrote_hidden(path)
            case ReplacedFile(path=path):
                allowed = is_seen(path)
            case SupersededFile(path=path, by=by):
                allowed = all(is_seen(one) and parse_part(name_of(one)) for one in (path, by))
            case Watermark():
                continue
            case _:
                assert_never(file)
        if not allowed:
            raise _foreign(file)


def is_bucket(directory: str) -> bool:
    """Whether files of a sink may be in ``directory``: readers look there, or it is for dead letters."""
    if not is_plain(directory):
        return False
    if is_data(directory):
        return not directory or is_seen(directory)
    return LEDGER_ROOT not in directory.lower().split("/")


def is_seen(path: str) -> bool:
    """Whether readers of the base path see what has this path, a file or a directory."""
    return all(component[0] not in "._" for component in path.split("/"))


def _decoded(record: EpochRecord) -> list[Committable]:
    held = [file for section in record.states.values() for file in section.decode(HeldFileCodec())]
    files = record.committables.decode(CommittableCodec()) if record.committables.data else []
    return [*files, *held]


def _authors(record: EpochRecord) -> Authors:
    if record.sink_id == COMPACTION or record.sink_id.startswith(_OF_TXN):
        # It may be a copy, whose files bear the tag and the slot of the chain that it is a copy of.
        return Authors.of(record.sink_id, EXCLUSIVE)
    match record.cause:
        case BatchWrite(writer=writer) if writer:
            return Authors.of(writer, slot=0)
        case TakenBack(writer=writer) if writer:
            return Authors.of(writer, slot=0)
        case _:
            return Authors.of(record.sink_id, slot=record.slot)


def _check_cause(record: EpochRecord) -> None:
    """What leads to other records: its chain, the claims of a txn_id, and the one that it takes back."""
    if not is_sink_id(record.sink_id):
        raise SecurityError(f"'{shown(record.sink_id)}' is not the name of a ledger", code="FOREIGN_FILE")
    match record.cause:
        case BatchWrite(remembered_in=name) if name and not _MEMORY.fullmatch(name):
            raise SecurityError(f"ledger '{shown(name)}' is not a ledger of a txn_id", code="FOREIGN_FILE")
        case TakenBack(slot=slot) if slot > record.slot:  # or a search for the last that counts would not end
            raise StateCorruptError("it takes back an epoch that comes after it", code="JSON")
        case _:
            pass


def _check_kinds(record: EpochRecord, files: Iterable[Committable]) -> None:
    """An appending epoch replaces nothing, and only one kind of epoch takes back finished files of ours."""
    cause = record.cause
    appends = isinstance(cause, MicroBatch) or (
        isinstance(cause, BatchWrite) and cause.mode is SaveMode.APPEND and not cause.supersedes
    )
    for file in files:
        if isinstance(file, ReplacedFile | SupersededFile) and appends and not _is_acknowledged(record, file):
            raise _foreign(file)
        if isinstance(file, UndoneFile) and not isinstance(cause, TakenBack):
            raise _foreign(file)


def _is_acknowledged(record: EpochRecord, file: ReplacedFile | SupersededFile) -> bool:
    """Whether it may be one that a client has taken."""
    return (
        is_collected(record.sink_id)
        and isinstance(file, ReplacedFile)
        and not parent(file.path)
        and parse_part(file.path) is not None
    )


def _is_staged(file: PendingFile | UndoneFile, authors: Authors) -> bool:
    """Beside its target, or as an upload to it."""
    directory = parent(file.target)
    if not is_bucket(directory) or not authors.wrote_part(file.target):
        return False
    if isinstance(file.staged, PendingUpload):
        return file.staged.target == file.target
    return parent(file.staged.path) == directory and authors.wrote_hidden(file.staged.path)


def _is_held(file: HeldFile, authors: Authors) -> bool:
    """``suffix`` and ``group`` become part of names as well."""
    return (
        not isinstance(file.staged, PendingUpload)
        and is_bucket(file.bucket)
        and authors.wrote_hidden(file.staged.path)
        and not {"/", "\0"} & set(file.suffix)
        and bool(_GROUP.fullmatch(file.group))
        and file.header_size <= file.size
    )


def _foreign(file: Committable) -> SecurityError:
    match file:
        case PendingFile() | UndoneFile():
            paths = [file.target, file.staged.path]
        case HeldFile():
            paths = [file.staged.path]
        case DiscardFile() | ReplacedFile():
            paths = [file.path]
        case SupersededFile():
            paths = [file.path, file.by]
        case _:
            paths = []
    what = " from ".join(f"'{shown(path)}'" for path in paths)
    return SecurityError(
        f"the record names {what} as a {type(file).__name__}, but its sink cannot have written such an entry",
        code="FOREIGN_FILE",
    )
