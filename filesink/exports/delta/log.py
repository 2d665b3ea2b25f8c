"""The log of a table of Delta, ``_delta_log``, as far as we write it.

Rules:
1. The newest commit that touches data says how far the table is. If it is not ours, somebody else writes too.
2. A commit is created if absent, by who has read the one before it. So nobody comes in between.
3. ``txn`` has the version, as any writer of Delta keeps it. What else we have to know for the next commit is
   in ``commitInfo``, where others look for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from filesink.errors import CommitStateUnknown, ExportError
from filesink.exports.delta.actions import touches_data
from filesink.storage.api import PutResult, Store

DIRECTORY: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_OURS: Final = "filesink"  # the key in ``commitInfo``


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far the table is.

    Attributes:
        number: of its newest commit; -1 without any.
        version: of the path, that it has; ``None`` without any commit.
        schemas: ids of the columns that its own columns are made of.
        columns: what identifies its columns.
        partitions: its partition columns; ``None`` if it has never had a file.
    """

    number: int
    version: int | None
    schemas: frozenset[str] = frozenset()
    columns: str = ""
    partitions: tuple[str, ...] | None = None


class DeltaLog:
    """The log of one path.

    Args:
        store: of that path.
        app_id: id of the path's inventory.
        path: for messages.
    """

    def __init__(self, store: Store, *, app_id: str, path: str) -> None:
        self._store = store
        self.app_id = app_id
        self._path = path

    def numbers(self) -> list[int]:
        """Of all commits."""
        names = (_COMMIT.fullmatch(entry.name) for entry in self._store.scan(DIRECTORY))
        return sorted(int(found[1]) for found in names if found)

    def head(self, known: int = -1) -> Head:
        """How far the table is. ``known`` is a commit that was the newest once: then nothing is listed.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``.
        """
        newest = self._from(known)
        if newest is None:
            numbers = self.numbers()
            if not numbers:
                if any(True for _ in self._store.scan(DIRECTORY)):
                    raise self._foreign("its log has no commits that can be read")
                return Head(number=-1, version=None)
            newest = numbers[-1]
        for number in range(newest, -1, -1):
            actions = list(self._actions(number, until_files=True))
            found = self._ours(actions)
            if found is not None:
                return Head(number=newest, **found)
            if any(map(touches_data, actions)):
                raise self._not_ours(number, actions)
        raise self._foreign("its log has no commit with files")

    def _from(self, known: int) -> int | None:
        """The newest commit, if ``known`` is still there: commits follow one another."""
        if known < 0 or self._store.read(_path(known)) is None:
            return None
        while self._store.read(_path(known + 1)) is not None:
            known += 1
        return known

    def put(self, number: int, lines: Iterable[str]) -> bool:
        """Create commit ``number``; ``False`` if there is one."""
        data = "\n".join(lines).encode() + b"\n"
        try:
            return self._store.put_if_absent(_path(number), data) is PutResult.CREATED
        except CommitStateUnknown:
            return False  # the caller reads it: if it is ours, it is done

    def ours(self, version: int, **known: Any) -> dict[str, Any]:
        """The part of ``commitInfo`` that ``head`` reads."""
        return {_OURS: {"version": version, **known}}

    def live(self) -> set[str]:
        """The paths of all files of the table.

        Raises:
            ExportError: ``CHANGED_TARGET``, somebody has removed commits.
        """
        numbers = self.numbers()
        if numbers != list(range(len(numbers))):
            raise self._changed("somebody has removed commits from its log")
        found: set[str] = set()
        for number in numbers:
            for action in self._actions(number):
                if "add" in action:
                    found.add(unquote(action["add"]["path"]))
                elif "remove" in action:
                    found.discard(unquote(action["remove"]["path"]))
        return found

    def drop(self) -> None:
        """Remove the log, the newest first: what is left if that is interrupted is an older version."""
        self.head()
        names = sorted((entry.name for entry in self._store.scan(DIRECTORY)), reverse=True)
        for name in names:
            self._store.delete(f"{DIRECTORY}/{name}")

    def _actions(self, number: int, *, until_files: bool = False) -> Iterator[dict[str, Any]]:
        data = self._store.read(_path(number))
        if data is None:
            raise self._changed(f"commit {number} has vanished")
        begin = 0
        while begin < len(data):
            end = data.find(b"\n", begin)
            end = len(data) if end < 0 else end
            text, begin = data[begin:end], end + 1
            if not text.strip():
                continue
            try:
                action = json.loads(text)
            except ValueError as error:
                raise self._changed(f"commit {number} is no JSON") from error
            yield action
            if until_files and action.keys() & {"add", "remove"}:
                return

    def _ours(self, actions: list[dict[str, Any]]) -> dict[str, Any] | None:
        """What a commit of this path says; ``None`` if it is of somebody else."""
        transactions = [action["txn"] for action in actions if "txn" in action]
        infos = (action["commitInfo"].get(_OURS) for action in actions if "commitInfo" in action)
        info = next((one for one in infos if isinstance(one, dict)), None)
        mine = next((one for one in transactions if one.get("appId") == self.app_id), None)
        if info is None or mine is None:
            return None
        partitions = info.get("partitions")
        return {
            "version": int(mine["version"]),
            "schemas": frozenset(info.get("schemas", ())),
            "columns": info.get("columns", ""),
            "partitions": None if partitions is None else tuple(partitions),
        }

    def _not_ours(self, number: int, actions: list[dict[str, Any]]) -> ExportError:
        earlier = (one for one in self.numbers() if one < number)
        ours = any(self._ours(list(self._actions(one, until_files=True))) for one in earlier)
        info: Mapping[str, Any] = next(
            (action["commitInfo"] for action in actions if "commitInfo" in action), {}
        )
        who = _who(info)
        if not ours:
            return self._foreign(f"commit {number} is of {who}")
        return self._changed(f"commit {number} is of {who}")

    def _foreign(self, what: str) -> ExportError:
        return ExportError(
            f"'{self._path}/{DIRECTORY}' is a table of Delta that was not made for this path: {what}. "
            "Nothing was changed. Move it away if nobody needs it, or export nothing here",
            code="FOREIGN_TARGET",
        )

    def _changed(self, what: str) -> ExportError:
        return ExportError(
            f"the table of Delta at '{self._path}' was changed by somebody else: {what}. Nothing was "
            f"overwritten. Move '{DIRECTORY}' away and export again: it is made anew of what the path holds",
            code="CHANGED_TARGET",
        )


def _path(number: int) -> str:
    return f"{DIRECTORY}/{number:020d}.json"


def _who(info: Mapping[str, Any]) -> str:
    """Whoever wrote a commit, as far as it says so."""
    engine, operation = (str(info.get(key, "somebody"))[:60] for key in ("engineInfo", "operation"))
    return f"{engine} ({operation})"
