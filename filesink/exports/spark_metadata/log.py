"""The log of Spark's file sink, as Spark 4 reads it.

Rules of ``CompactibleFileStreamLog``:
1. Entries are numbered from 0. The newest one counts, with those before it up to the last *compact* one,
   whose name ends with ``.compact`` and which has all files.
2. Which entries are compact ones Spark knows by arithmetic: each tenth, unless a session says otherwise. So
   a compact entry out of turn takes the next number that is one; those in between are never looked for.
3. An entry only adds. What is removed is left out of the next compact entry.

Ours: the first line is a directory, which Spark passes over. It has the version, and whose path it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from filesink.errors import CommitStateUnknown, ExportError
from filesink.storage.api import PutResult, Store

DIRECTORY: Final = "_spark_metadata"
INTERVAL: Final = 10  # Spark's own
_ENTRY: Final = re.compile(r"(\d+)(\.compact)?")
_HEADER: Final = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest entry: ``number`` is -1 without any, ``version`` that of the path, ``None`` without any."""

    number: int
    version: int | None


def is_compact(number: int) -> bool:
    """Whether Spark takes entry ``number`` for a compact one."""
    return (number + 1) % INTERVAL == 0


def next_compact(number: int) -> int:
    """The first compact entry from ``number`` on."""
    return number + (INTERVAL - 1 - number % INTERVAL)


def status(uri: str, size: int, *, now_ms: int, **more: Any) -> str:
    """A line: a file, as Spark tells itself of it."""
    value = {
        "path": uri,
        "size": size,
        "isDir": bool(more),
        "modificationTime": now_ms,
        "blockReplication": 1,
        "blockSize": 134_217_728,
        "action": "add",
        **more,
    }
    return json.dumps(value, separators=(",", ":"))


class SparkLog:
    """The log of one path.

    Args:
        store: of that path.
        path_id: id of the path's inventory.
        uri: of the path; files are named by it.
        path: for messages.
    """

    def __init__(self, store: Store, *, path_id: str, uri: str, path: str) -> None:
        self._store = store
        self._path_id = path_id
        self._uri = uri
        self._path = path

    def head(self) -> Head:
        """How far the log is.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``.
        """
        entries = self._entries()
        if not entries:
            return Head(number=-1, version=None)
        number = max(entries)
        first = self._first_line(entries[number])
        if first is None:
            ours = any(self._first_line(entries[one]) for one in entries if one < number)
            raise self._changed(number) if ours else self._foreign(f"entry {number} is not ours")
        if (first["filesink"], first["path"]) != (self._path_id, self._uri):
            raise self._foreign(f"entry {number} is of '{first['path']}'")
        return Head(number=number, version=int(first["version"]))

    def files(self) -> set[str]:
        """The paths of all files, as Spark puts them together.

        Raises:
            ExportError: ``CHANGED_TARGET``, an entry cannot be read.
        """
        entries = self._entries()
        compact = max((number for number, name in entries.items() if name.endswith("compact")), default=-1)
        found: set[str] = set()
        for number in sorted(number for number in entries if number >= compact):
            data = self._store.read(f"{DIRECTORY}/{entries[number]}") or b""
            try:
                lines = [json.loads(line) for line in data.split(b"\n")[2:]]
                found.update(unquote(line["path"].removeprefix(f"{self._uri}/")) for line in lines)
            except (ValueError, TypeError, LookupError) as error:
                raise self._changed(number) from error
        return found

    def put(self, number: int, version: int, *, lines: Iterable[str], now_ms: int) -> bool:
        """Create entry ``number`` of ``version``; ``False`` if there is one."""
        marker = status(self._uri, 0, now_ms=now_ms, filesink=self._path_id, version=version)
        data = "\n".join([_HEADER, marker, *lines]).encode()
        name = f"{number}.compact" if is_compact(number) else str(number)
        try:
            return self._store.put_if_absent(f"{DIRECTORY}/{name}", data) is PutResult.CREATED
        except CommitStateUnknown:
            return False  # the caller looks

    def remove_before(self, number: int) -> None:
        """Remove what no reader needs any more who has begun after the compact entry before ``number``."""
        for one, name in sorted(self._entries().items()):
            if one < number - 2 * INTERVAL:
                self._store.delete(f"{DIRECTORY}/{name}")

    def drop(self) -> None:
        """Remove the log, the oldest first: what is left if that is interrupted still names all files."""
        self.head()
        for _, name in sorted(self._entries().items()):
            self._store.delete(f"{DIRECTORY}/{name}")

    def _entries(self) -> dict[int, str]:
        found = (_ENTRY.fullmatch(entry.name) for entry in self._store.scan(DIRECTORY))
        return {int(one[1]): one[0] for one in found if one}

    def _first_line(self, name: str) -> dict[str, Any] | None:
        """What we have written into an entry; ``None`` if it is not ours."""
        data = self._store.read(f"{DIRECTORY}/{name}") or b""
        header, *lines = islice_lines(data)
        try:
            found = json.loads(lines[0]) if lines and header == _HEADER.encode() else None
        except ValueError:
            return None
        return found if isinstance(found, dict) and {"filesink", "version", "path"} <= found.keys() else None

    def _foreign(self, what: str) -> ExportError:
        return ExportError(
            f"'{self._path}/{DIRECTORY}' is the log of another sink, or of a path that was moved: {what}. "
            "Nothing was changed. Remove it if nothing else writes it, or export nothing here",
            code="FOREIGN_TARGET",
        )

    def _changed(self, number: int) -> ExportError:
        return ExportError(
            f"somebody else, maybe Spark's own sink, writes to '{self._path}/{DIRECTORY}': entry {number} is "
            "not ours. Nothing was overwritten. Stop that, remove the directory, and export again",
            code="CHANGED_TARGET",
        )


def islice_lines(data: bytes, lines: int = 2) -> Iterator[bytes]:
    """The first ``lines`` of ``data``; the rest of an entry may be long."""
    begin = 0
    for _ in range(lines):
        end = data.find(b"\n", begin)
        if end < 0:
            yield data[begin:]
            return
        yield data[begin:end]
        begin = end + 1
