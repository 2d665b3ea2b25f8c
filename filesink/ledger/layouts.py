"""How files below a base path are laid out: numbered files, created if absent, of which the newest counts.

    _filesink/_layout/<n>.layout

Rules:
1. A layout is put before the epoch that needs it is decided. So a driver that decides has seen all others.
2. Nothing is ever replaced. A driver that finds a number taken looks again.
3. There may be several layouts at once. The layout of a write that is about to replace everything has its
   id, and counts once that write is decided. Once it is complete, the others do not count any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from filesink.errors import StateCorruptError, StorageError
from filesink.framing import check_field, frame, from_json, to_json, unframe
from filesink.ledger.sweep import Leftover
from filesink.naming import LEDGER_ROOT
from filesink.storage.api import PutResult, Store

VERSION: Final = 1
_DIRECTORY: Final = f"{LEDGER_ROOT}/_layout"
_FILE = re.compile(r"([0-9]{6})\.layout")
_UNFINISHED = re.compile(r"\.([0-9]{6})\.layout\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What all files below a base path have in common.

    Attributes:
        format: the ending of the format, without that of a codec, as in ``parquet``; ``""`` if unknown.
        suffix: the last ending of the files' names, as in ``parquet`` or ``gz``; ``""`` for none.
        partitions: the columns in the path as ``key=value``; ``None`` where only the user knows.
        columns: those in the files, of all that were ever written.
        spelled: for each of ``partitions`` how its values are written, such as ``"date"``; ``""`` if that is
            not known, or any text goes. Empty in layouts of older drivers.
        by: the id of the write that is about to replace everything by files of this layout, or ``""``.
        since: the first slot of its chain in which that write may be decided.
    """

    format: str
    suffix: str
    partitions: tuple[str, ...] | None
    columns: pa.Schema
    spelled: tuple[str, ...] = ()
    by: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """The layouts that count, and the number of the file that says so; -1 without one."""

    number: int
    layouts: tuple[Layout, ...]


class Layouts:
    """What is known of the layout of one base path. Every method looks at the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.directory = _DIRECTORY

    def newest(self) -> Noted:
        """What counts now.

        Raises:
            StateCorruptError, StateVersionError: the file cannot be read; they name it.
        """
        names = self._names()
        number = _newest(names)
        data = self._read(number)
        self._sweep(names, number)
        return _noted(number, data)

    def read(self) -> Noted:
        """As ``newest``, for who may not write: what crashes have left stays."""
        number = _newest(self._names())
        return _noted(number, self._read(number))

    def _names(self) -> list[str]:
        return [entry.name for entry in self._store.list(_DIRECTORY)]

    def _read(self, number: int) -> bytes | None:
        data = None if number < 0 else self._store.read(_path(number))
        if number >= 0 and data is None:
            raise StateCorruptError(f"{_path(number)} vanished while it was being read", code="VANISHED")
        return data

    def is_newest(self, number: int) -> bool:
        """Whether nothing has been put after the file with this number, which stays even if power fails."""
        # Its driver may have died between making the name and the sync of the directory.
        self._store.sync_directories([_DIRECTORY])
        return self._store.read(_path(number + 1)) is None

    def dead(self, oldest: int | None) -> Iterator[Leftover]:
        """What crashes inside ``put`` have left: for numbers that are taken, or from before ``oldest``.

        Args:
            oldest: milliseconds since 1970 UTC, by the clock of the store; ``None`` where age tells nothing.
        """
        entries = self._store.list(_DIRECTORY)
        newest = _newest([entry.name for entry in entries])
        for entry in entries:
            if found := _UNFINISHED.match(entry.name):
                path = f"{_DIRECTORY}/{entry.name}"
                if int(found[1]) <= newest:
                    yield Leftover(path=path, size=entry.size, reason=f"layout {int(found[1])} is there")
                elif oldest is not None and entry.mtime_ms < oldest:
                    yield Leftover(path=path, size=entry.size, reason="it has not changed for a long time")

    def put(self, number: int, layouts: Sequence[Layout]) -> bool:
        """Have ``layouts`` count from now on; false if another file has this number."""
        path, data = _path(number), _to_bytes(layouts)
        try:
            result = self._store.put_if_absent(path, data)
        except StorageError:
            # A lost reply looks like a failure, and so does a name that was swept because it came too late.
            if self._store.read(path) is None:
                raise
            self._store.sync_directories([_DIRECTORY])
            return False
        if result is PutResult.CREATED:
            self._sweep([entry.name for entry in self._store.list(_DIRECTORY)], number)
        return result is PutResult.CREATED

    def _sweep(self, names: Sequence[str], newest: int) -> None:
        """Remove what crashes inside ``put`` have left for numbers that are taken, durably."""
        found = ((name, _UNFINISHED.match(name)) for name in names)
        dead = [name for name, match in found if match and int(match[1]) <= newest]
        for name in dead:
            self._store.discard(f"{_DIRECTORY}/{name}")
        if dead:
            self._store.sync_directories([_DIRECTORY])


def _noted(number: int, data: bytes | None) -> Noted:
    return Noted(number, () if data is None else _from_bytes(data, where=_path(number)))


def _newest(names: Sequence[str]) -> int:
    """The number that counts; -1 without one."""
    return max((int(found[1]) for name in names if (found := _FILE.fullmatch(name))), default=-1)


def _path(number: int) -> str:
    return f"{_DIRECTORY}/{number:06d}.layout"


def _to_bytes(layouts: Sequence[Layout]) -> bytes:
    return frame("layout", VERSION, to_json([_to_json(layout) for layout in layouts]))


def _to_json(layout: Layout) -> dict[str, Any]:
    return {
        "format": layout.format,
        "suffix": layout.suffix,
        "partitions": None if layout.partitions is None else list(layout.partitions),
        "columns": layout.columns.serialize().to_pybytes().hex(),
        "spelled": list(layout.spelled),
        "by": layout.by,
        "since": layout.since,
    }


def _from_bytes(data: bytes, *, where: str) -> tuple[Layout, ...]:
    _, payload = unframe("layout", VERSION, data, where=where)
    try:
        return tuple(_from_json(value) for value in from_json(payload, where=where))
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        raise StateCorruptError(f"{where} is malformed: {type(error).__name__}", code="JSON") from error


def _from_json(value: dict[str, Any]) -> Layout:
    for name, kind in (("format", str), ("suffix", str), ("columns", str), ("by", str), ("since", int)):
        check_field(name, value[name], kind)
    partitions, spelled = value["partitions"], value.get("spelled", ())
    for name in () if partitions is None else partitions:
        check_field("partitions", name, str)
    for word in spelled:
        check_field("spelled", word, str)
    columns = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(value["columns"])))
    _ = columns.names, list(map(str, columns.types))  # Arrow looks into names only when they are asked for
    return Layout(
        format=value["format"],
        suffix=value["suffix"],
        partitions=None if partitions is None else tuple(partitions),
        columns=columns,
        spelled=tuple(spelled),
        by=value["by"],
        since=value["since"],
    )
