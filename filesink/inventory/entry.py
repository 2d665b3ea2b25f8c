"""What one epoch has changed: the files that became visible with it, those that went, and why.

An entry is a draft that has got its version. It says of which inventory it is, and at which version it
stands, so that a file that was copied or restored from elsewhere is no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from filesink.errors import SecurityError, StateCorruptError
from filesink.framing import check_field, frame, from_json, to_json, unframe
from filesink.naming import check_relative, parent
from filesink.ports import Who

ENTRY_VERSION: Final = 1
#: Kind of the epoch that says what an adopted path holds; all other kinds are those of the ledger's causes.
ADOPTED: Final = "adopted"
_KIND: Final = "inventory-entry"
_NUMBERS: Final = ("slot", "decided_ms", "visible_ms", "rows", "size")
_WHO: Final[Mapping[str, type[Any]]] = {"application": str, "user": str, "host": str}
_TEXTS: Final = ("sink", "nonce", "source", "schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A file that became visible with an epoch.

    Attributes:
        path: relative to the base path, unique for ever.
        size: in bytes.
        rows: ``None`` if nobody knows.
        statistics: of its columns, JSON; ``""`` if there are none.
    """

    path: str
    size: int
    rows: int | None
    statistics: str = ""

    def __post_init__(self) -> None:
        check_field("path", self.path, str)
        check_relative(self.path)
        check_field("size", self.size, int)
        if self.rows is not None:
            check_field("rows", self.rows, int)
        check_field("statistics", self.statistics, str)

    @property
    def bucket(self) -> str:
        """Its directory."""
        return parent(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What an epoch was for, as far as its kind tells.

    Attributes:
        kind: as in the ledger: ``micro-batch``, ``batch-write``, ``upkeep`` …, or ``adopted``.
        query_id, batch_id: of a micro-batch.
        mode, txn_id: of a batch write.
    """

    kind: str
    query_id: str = ""
    batch_id: int | None = None
    mode: str = ""
    txn_id: str = ""

    def __post_init__(self) -> None:
        for name in ("kind", "query_id", "mode", "txn_id"):
            check_field(name, getattr(self, name), str)
        if self.batch_id is not None:
            check_field("batch_id", self.batch_id, int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An epoch that is visible and has no version yet.

    Attributes:
        sink: the id of its chain.
        slot: its place in that chain.
        nonce: of its record; there is one version for each.
        cause: what it was for.
        decided_ms, visible_ms: milliseconds since 1970 UTC, by the clocks of the drivers that did it.
        rows: records that came in, whenever they become visible.
        size: of the added files, in bytes.
        who: see there.
        source: Spark's text of the input's offsets, or ``""``.
        schema: id of the columns of the added files, ``""`` if they are not known.
        added: its files, without dead letters.
        removed: paths of files of ours that readers shall not see any more, whoever has added them.
        columns: of which ``schema`` is the id, as Arrow serialises them; not part of the entry.
    """

    sink: str
    slot: int
    nonce: str
    cause: Cause
    decided_ms: int
    visible_ms: int
    rows: int
    size: int
    who: Who = field(default_factory=Who)
    source: str = ""
    schema: str = ""
    added: tuple[AddedFile, ...] = ()
    removed: tuple[str, ...] = ()
    columns: bytes = field(default=b"", repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            check_field(name, getattr(self, name), int)
        for name in _TEXTS:
            check_field(name, getattr(self, name), str)
        for path in self.removed:
            check_field("removed", path, str)
            check_relative(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A draft in its place. ``base_id`` is that of the inventory's marks."""

    version: int
    base_id: str
    epoch: Draft

    def to_bytes(self) -> bytes:
        """Durable form: framed JSON."""
        epoch = self.epoch
        value = {name: getattr(epoch, name) for name in (*_NUMBERS, *_TEXTS)}
        value |= {
            "version": self.version,
            "base_id": self.base_id,
            "cause": {name: one for name, one in asdict(epoch.cause).items() if one not in ("", None)},
            "who": asdict(epoch.who),
            "added": [[file.path, file.size, file.rows, file.statistics] for file in epoch.added],
            "removed": list(epoch.removed),
        }
        return frame(_KIND, ENTRY_VERSION, to_json(value))

    @staticmethod
    def from_bytes(data: bytes, *, where: str) -> Entry:
        """What ``to_bytes`` was called on.

        Raises:
            StateCorruptError, StateVersionError: see ``filesink.framing.unframe``.
        """
        _, payload = unframe(_KIND, ENTRY_VERSION, data, where=where)
        value = from_json(payload, where=where)
        with well_formed(where):
            for name, kind in (("version", int), ("base_id", str)):
                check_field(name, value[name], kind)
            epoch = Draft(
                **{name: value[name] for name in (*_NUMBERS, *_TEXTS)},
                cause=Cause(**value["cause"]),
                who=Who(**checked(value["who"], _WHO)),
                added=tuple(_added(value["added"])),
                removed=tuple(value["removed"]),
            )
            return Entry(version=value["version"], base_id=value["base_id"], epoch=epoch)


def _added(values: Iterable[Any]) -> Iterator[AddedFile]:
    for path, size, rows, statistics in values:
        yield AddedFile(path=path, size=size, rows=rows, statistics=statistics)


@contextmanager
def well_formed(where: str) -> Iterator[None]:
    """Say of a file of an inventory that it has not the form it should have; ``where`` is its path."""
    try:
        yield
    except SecurityError as error:
        raise SecurityError(f"{where}: {error.message}", code=error.code) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateCorruptError(f"{where} is malformed: {type(error).__name__}", code="JSON") from error


def checked(value: Mapping[str, Any], fields: Mapping[str, type[Any]]) -> dict[str, Any]:
    """The ``fields`` of ``value``, each of its type."""
    for name, kind in fields.items():
        check_field(name, value[name], kind)
    return {name: value[name] for name in fields}
