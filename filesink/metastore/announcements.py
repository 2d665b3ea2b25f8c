"""What a record says about partitions: those to announce with its epoch, and those that wait.

One value for each partition that got files since it was last announced, or lost some to an overwrite, and
one watermark. Bounded in size: counts instead of names, except for the files of the epoch that announces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from filesink.errors import InternalError, SecurityError, StateCorruptError
from filesink.framing import check_field, from_json, to_json
from filesink.naming import check_relative, is_data, parent, shown
from filesink.parts.committables import Committable, PendingFile, ReplacedFile, Watermark
from filesink.parts.recorded_paths import is_seen

CODEC_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A partition with news still to be announced: new files, or that an overwrite has left it without any.

    Attributes:
        bucket: its directory; ``""`` is the base path.
        first_seen_ms: the driver's clock in the epoch of the first of these files.
        slot: the epoch that this value was recorded in.
        files, rows, size: since it was announced last; ``size`` in bytes.
        paths: of the files that this very epoch makes visible.
        may_go: whether the partition is dropped if no file is left in it: retention, erasure and rollback
            say so, and an overwrite does not.
    """

    bucket: str
    first_seen_ms: int
    slot: int
    files: int = 0
    rows: int = 0
    size: int = 0
    paths: tuple[str, ...] = field(default=(), repr=False)
    may_go: bool = False

    def with_files(self, new: Sequence[PendingFile]) -> Announcement:
        """The same partition with the files that this epoch makes visible."""
        return replace(
            self,
            files=self.files + len(new),
            rows=self.rows + sum(file.rows for file in new),
            size=self.size + sum(file.size for file in new),
            paths=tuple(file.target for file in new),
        )

    def put_off(self) -> Announcement:
        """The same partition as it waits for a later epoch."""
        return replace(self, paths=(), may_go=False)


Announced = Announcement | Watermark


def gathered(
    waiting: Iterable[Announced], committables: Sequence[Committable], *, slot: int, now_ms: int
) -> tuple[list[Announcement], Watermark | None]:
    """Every partition that has something to announce, in the order of their names, and the watermark."""
    found: dict[str, Announcement] = {}
    files: dict[str, list[PendingFile]] = {}
    latest: Watermark | None = None
    for value in (*waiting, *committables):
        match value:
            case Announcement():
                found[value.bucket] = replace(value, slot=slot)
            case PendingFile(bucket=bucket) if is_data(bucket):
                files.setdefault(value.bucket, []).append(value)
            case ReplacedFile(path=path):
                files.setdefault(parent(path), [])
            case Watermark():
                latest = value if latest is None else _later(latest, value)
            case _:
                pass
    for bucket, new in files.items():
        one = found.get(bucket) or Announcement(bucket=bucket, first_seen_ms=now_ms, slot=slot)
        found[bucket] = one.with_files(new)
    return [found[bucket] for bucket in sorted(found)], latest


def _later(one: Watermark, other: Watermark) -> Watermark:
    """The later of two watermarks, which never goes back; with the zone of the newest report."""
    return replace(other, latest_ms=max(one.latest_ms, other.latest_ms))


@dataclass(frozen=True, slots=True)
class AnnouncementCodec:
    """Bytes of announcements."""

    version: int = CODEC_VERSION

    def encode(self, values: Sequence[Announced]) -> bytes:
        """Canonical JSON."""
        return to_json([_plain(value) for value in values])

    def decode(self, version: int, data: bytes) -> list[Announced]:
        """What ``encode`` of ``version`` was given.

        Raises:
            StateCorruptError: not such a list.
            SecurityError: ``ESCAPE`` or ``FOREIGN_FILE``; a path that no partition of ours can have.
        """
        if version != CODEC_VERSION:
            raise InternalError(f"announcements of version {version} passed a version check", code="VERSION")
        entries = from_json(data, where="a list of announcements")
        if not isinstance(entries, list):
            raise StateCorruptError("a list of announcements is not a list", code="JSON")
        try:
            return [_value(dict(entry)) for entry in entries]
        except (TypeError, ValueError, KeyError) as error:
            raise StateCorruptError("a list of announcements is malformed", code="JSON") from error


def _plain(value: Announced) -> dict[str, Any]:
    kind = "watermark" if isinstance(value, Watermark) else "partition"
    plain = {"kind": kind, **asdict(value)}
    if not plain.get("may_go"):  # as earlier releases have written all of them
        plain.pop("may_go", None)
    return plain


def _value(entry: dict[str, Any]) -> Announced:
    if entry.pop("kind") == "watermark":
        return Watermark(**_checked(Watermark, entry))
    paths, bucket = entry["paths"], entry["bucket"]
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in (bucket, *paths)):
        raise TypeError("paths")
    if bucket:
        _check_seen(bucket)
    for path in paths:
        _check_seen(path)
        if parent(path) != bucket:
            raise ValueError("paths")
    return Announcement(**_checked(Announcement, {"may_go": False, **entry, "paths": tuple(paths)}))


def _check_seen(path: str) -> None:
    if not is_seen(check_relative(path)):
        raise SecurityError(f"'{shown(path)}' is announced, and readers do not see it", code="FOREIGN_FILE")


def _checked(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    types = {"str": str, "int": int, "bool": bool, "tuple[str, ...]": tuple}
    for one in fields(kind):
        if one.name != "bucket":  # checked; that of replaced files may have a name which is no UTF-8
            check_field(one.name, values[one.name], types[str(one.type)])
    return values
