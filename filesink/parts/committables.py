"""What travels from executors to the driver and into the ledger: names of files, never objects.

A *pending* file is published by the epoch whose record names it. A *held* file stays hidden: in a
record's state it is kept for a later epoch; among the committables of a writer it belongs to a part
that was closed, and a stage decides what becomes of it. A file to *discard* is removed after
publication; so is a finished one that has been *replaced*, at once or after a grace. One that is
*superseded* stays for a while beside the file that holds its rows. A *watermark* names no file. Codecs are
versioned; ``tests/golden`` holds old bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from filesink.durations import has_passed
from filesink.errors import InternalError, StateCorruptError
from filesink.framing import check_field, from_json, to_json
from filesink.naming import check_relative, shown
from filesink.storage.staged import HiddenFile, HiddenObject, PendingUpload, Staged, UploadedPart

CODEC_VERSION = 1
#: A thousand years. What is beyond cannot be shown as a time.
LONGEST_GRACE_MS = 31_536_000_000_000
_LATEST_MS = 253_402_300_799_999 - LONGEST_GRACE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFile:
    """A closed file that becomes visible as ``target``. ``size`` in bytes."""

    bucket: str
    target: str
    staged: Staged
    rows: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFile:
    """A closed file that a later epoch goes on with.

    Attributes:
        group: id of the part it is a segment of, open or closed.
        created_ms, updated_ms: when its first and last record came, by the driver's clock.
        signature: of format, options and schema; only equal ones are continued or concatenated.
        suffix: how the finished name will end, chosen when the part was begun.
        carry_over: what the encoder needs to go on (``formats.api.Encoder.carry_over``).
        header_size: bytes of the format's header at the beginning of the file.
    """

    bucket: str
    group: str
    staged: Staged
    rows: int
    size: int
    created_ms: int
    updated_ms: int
    signature: str
    suffix: str = ""
    carry_over: bytes = b""
    header_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardFile:
    """A hidden file whose rows are in a pending file of the same epoch."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedFile:
    """A visible file that goes when the pending files of the same epoch are there, if it is unchanged.

    Attributes:
        size, version: those of the listing that found it (``storage.api.Entry``); ``size`` in bytes.
        grace_ms: how long it stays all the same, for readers who hold a snapshot; milliseconds.
        since_ms: when that began, in milliseconds since 1970 UTC: when the epoch that replaces it was
            noted. 0 in the record of that epoch, and in all that come after it the same.
    """

    path: str
    size: int
    version: str
    grace_ms: int = 0
    since_ms: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.grace_ms <= LONGEST_GRACE_MS and 0 <= self.since_ms <= _LATEST_MS):
            raise ValueError("grace_ms or since_ms")

    @property
    def until_ms(self) -> int:
        """When its grace is over, in milliseconds since 1970 UTC; 0 if that has not begun, or is none."""
        return self.since_ms + self.grace_ms if self.since_ms else 0

    def is_due(self, now_ms: int) -> bool:
        """Whether it may go now. A grace that a wrong clock began, days from now, does not last for ever."""
        is_over = self.since_ms > 0 and has_passed(self.since_ms, now_ms, self.grace_ms)
        return self.grace_ms == 0 or is_over

    def identity(self) -> tuple[str, int, str]:
        """Which file it is, whatever is to become of it."""
        return self.path, self.size, self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersededFile:
    """A visible file whose rows are in another one, ``by``, and that stays until readers have had time.

    Nothing is done to it by the epoch that names it; a later one replaces it. It may be named several
    times, with each file that holds its rows. ``until_ms``: not before this moment, in milliseconds
    since 1970 UTC. The rest is as in ``ReplacedFile``.
    """

    path: str
    size: int
    version: str
    by: str
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """No file: the latest time that a task has seen in the watermark column.

    Attributes:
        latest_ms: milliseconds since 1970 UTC.
        time_zone: of the session, whose wall clock the directories show.
    """

    latest_ms: int
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneFile:
    """A file of an epoch that is taken back: its hidden name goes, then ``target`` if it is that file."""

    target: str
    staged: Staged


Committable = PendingFile | HeldFile | DiscardFile | ReplacedFile | SupersededFile | Watermark | UndoneFile
_KINDS: dict[str, type[Any]] = {
    "pending": PendingFile,
    "held": HeldFile,
    "discard": DiscardFile,
    "replaced": ReplacedFile,
    "superseded": SupersededFile,
    "watermark": Watermark,
    "undone": UndoneFile,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_STAGED: dict[str, type[Any]] = {"file": HiddenFile, "object": HiddenObject, "upload": PendingUpload}
_STAGED_NAMES = {kind: name for name, kind in _STAGED.items()}
_TYPES: dict[str, type[Any]] = {"str": str, "int": int, "bytes": bytes}  # others have been made here
#: Each field's name and type. Made once: an epoch may have many thousands of files.
_FIELDS: dict[type[Any], tuple[tuple[str, type[Any] | None], ...]] = {
    kind: tuple((field.name, _TYPES.get(str(field.type))) for field in fields(kind))
    for kind in (*_NAMES, *_STAGED_NAMES, UploadedPart)
}
#: Of these 0 is left out, so that records are as earlier releases wrote them unless there is a grace.
_GRACES = ("grace_ms", "since_ms")
#: A file that is replaced may have a name which is no UTF-8; what it may be else depends on the kind of file.
_PATHS = frozenset({"path", "target", "by", "bucket"})
_T = TypeVar("_T", bound=Committable)


@dataclass(frozen=True, slots=True)
class CommittableCodec:
    """Bytes of a list of committables."""

    version: int = CODEC_VERSION

    def encode(self, values: Sequence[Committable]) -> bytes:
        """Canonical JSON; made to be read by people too."""
        return to_json([_plain_file(value) for value in values])

    def decode(self, version: int, data: bytes) -> list[Committable]:
        """What ``encode`` of ``version`` was given.

        Raises:
            StateCorruptError: not such a list.
            SecurityError: a path leaves the base directory.
        """
        if version != CODEC_VERSION:
            raise InternalError(f"committables of version {version} passed a version check", code="VERSION")
        entries = from_json(data, where="a list of files")
        if not isinstance(entries, list):
            raise StateCorruptError("a list of files is not a list", code="JSON")
        return [_value(number, entry) for number, entry in enumerate(entries)]


@dataclass(frozen=True, slots=True)
class HeldFileCodec:
    """Bytes of a writer's state: the held files of one subtask."""

    version: int = CODEC_VERSION

    def encode(self, values: Sequence[HeldFile]) -> bytes:
        """See ``CommittableCodec.encode``."""
        return CommittableCodec().encode(values)

    def decode(self, version: int, data: bytes) -> list[HeldFile]:
        """See ``CommittableCodec.decode``."""
        values = CommittableCodec().decode(version, data)
        return [_expect(value, HeldFile) for value in values]


def _expect(value: Committable, kind: type[_T]) -> _T:
    if not isinstance(value, kind):
        raise StateCorruptError(f"expected a {_NAMES[kind]} file", code="JSON")
    return value


def _plain_file(value: Committable) -> dict[str, Any]:
    plain = {"kind": _NAMES[type(value)], **_plain(value)}
    if isinstance(value, PendingFile | HeldFile | UndoneFile):
        plain["staged"] = plain_staged(value.staged)
    if isinstance(value, HeldFile):
        plain["carry_over"] = value.carry_over.hex()
    if isinstance(value, ReplacedFile):
        plain = {name: one for name, one in plain.items() if one or name not in _GRACES}
    return plain


def plain_staged(staged: Staged) -> dict[str, Any]:
    """``staged`` as values of JSON."""
    plain = {"kind": _STAGED_NAMES[type(staged)], **_plain(staged)}
    if isinstance(staged, PendingUpload):
        plain["parts"] = [_plain(part) for part in staged.parts]
    return plain


def _plain(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name, _ in _FIELDS[type(value)]}


def _value(number: int, entry: Any) -> Committable:
    try:
        values = dict(entry)
        kind = _KINDS[values.pop("kind")]
        if "staged" in values:
            values["staged"] = staged_of(values["staged"])
        if "carry_over" in values:
            values["carry_over"] = bytes.fromhex(values["carry_over"])
        if kind is ReplacedFile:
            values = {**dict.fromkeys(_GRACES, 0), **values}
        value: Committable = kind(**_checked(kind, values))
    except (TypeError, ValueError, KeyError) as error:
        raise StateCorruptError(
            f"file entry {number} is malformed: {type(error).__name__}{_named(entry)}", code="JSON"
        ) from error
    return value


def _named(entry: Any) -> str:
    """Which file a malformed entry is about, as far as it says so."""
    about = entry.get("target", entry.get("path", entry.get("bucket"))) if isinstance(entry, dict) else None
    return f", for '{shown(about)}'" if isinstance(about, str) else ""


def staged_of(entry: Any) -> Staged:
    """What ``plain_staged`` was given.

    Raises:
        TypeError, ValueError, KeyError: it is none.
        SecurityError: its path leaves the base directory.
    """
    values = dict(entry)
    kind = _STAGED[values.pop("kind")]
    if kind is PendingUpload:
        values["parts"] = tuple(UploadedPart(**_checked(UploadedPart, part)) for part in values["parts"])
    staged: Staged = kind(**_checked(kind, values))
    return staged


def _checked(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Types and paths of one entry; annotations are the specification."""
    for name, expected in _FIELDS[kind]:
        value: Any = values[name]
        if name in _PATHS and type(value) is str:
            if value or name != "bucket":
                check_relative(value)
        else:
            check_field(name, value, expected or type(value))
    return values
