"""What client and query tell each other: empty-handed files whose names say it all, created if absent.

    _filesink/_collect/<version>-<row>-<inventory>.acknowledged    a client needs nothing before this place
                       <number>.begun                              a query has been started
                       <number>.ended | .failed                    and is over
                       <number>.refused                            and was none: the one before it counts

Rules:
1. Of each kind the greatest counts. So it makes no difference in which order two writers come, or whether one
   repeats what it has done.
2. Only what is below the greatest is removed, by whoever has put a greater one. Who may not remove leaves it.
   Of queries all stay until a later one is over: any of these may turn out to be none.
3. A mark is put before anybody relies on it: that of an acknowledgement before a file is removed, that of a
   query before its first row is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

from filesink.errors import StorageError
from filesink.framing import frame, from_json, to_json, unframe
from filesink.naming import LEDGER_ROOT
from filesink.sinks.collect.position import CollectPosition
from filesink.storage.api import Kind, PutResult, Store

DIRECTORY: Final = f"{LEDGER_ROOT}/_collect"
_FORM: Final = 1
_ACKNOWLEDGED: Final = re.compile(r"([0-9]{12})-([0-9]{15})-([0-9a-f]{8})\.acknowledged")
_RUN: Final = re.compile(r"([0-9]{12})\.(begun|ended|failed|refused)")


class Run(Enum):
    """What is known of the newest query."""

    NONE = "none"  # nobody has started one
    BEGUN = "begun"  # it runs, or its driver has died and it will be started again
    ENDED = "ended"
    FAILED = "failed"
    REFUSED = "refused"  # it was none, as a second query of another checkpoint: ``Told`` leaves it out


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All marks at one moment.

    Attributes:
        acknowledged: the farthest place of each inventory that has any.
        number: of the newest query; -1 for none.
        run: its state.
    """

    acknowledged: dict[str, CollectPosition]
    number: int = -1
    run: Run = Run.NONE

    def upto(self, inventory: str) -> CollectPosition:
        """How far a client of this inventory has acknowledged."""
        return self.acknowledged.get(inventory, CollectPosition(inventory=inventory))

    @staticmethod
    def by(names: Iterable[str]) -> Told:
        """What these names tell."""
        there = list(names)
        acknowledged: dict[str, CollectPosition] = {}
        for found in filter(None, map(_ACKNOWLEDGED.fullmatch, there)):
            one = CollectPosition(int(found[1]), int(found[2]), found[3])
            acknowledged[one.inventory] = max(one, acknowledged.get(one.inventory, one))
        every = [(int(found[1]), Run(found[2])) for found in filter(None, map(_RUN.fullmatch, there))]
        refused = {number for number, run in every if run is Run.REFUSED}
        runs = [one for one in every if one[0] not in refused]
        # A query is over if anything says so, whatever else does.
        number, run = max(runs, key=lambda one: (one[0], one[1] is not Run.BEGUN), default=(-1, Run.NONE))
        return Told(acknowledged=acknowledged, number=number, run=run)


class Marks:
    """The marks of one path.

    Args:
        store: where.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def told(self) -> Told:
        """What counts now."""
        return Told.by(self._names())

    def acknowledge(self, position: CollectPosition) -> None:
        """Have everything before ``position`` removed, sooner or later."""
        self._put(f"{position.version:012d}-{position.row:015d}-{position.inventory}.acknowledged")
        ours = (_ACKNOWLEDGED.fullmatch(name) for name in self._names())
        place = (position.version, position.row)
        self._remove(
            found[0]
            for found in filter(None, ours)
            if found[3] == position.inventory and (int(found[1]), int(found[2])) < place
        )

    def begin(self, run: str) -> int:
        """Say that a query is about to be started, and return its number. ``run`` is the id of this start."""
        while True:
            number = self._greatest() + 1
            if self._put(f"{number:012d}.{Run.BEGUN.value}", run=run) and number == self._greatest():
                break  # else others were faster, and have tidied up meanwhile
        self._tidy()
        return number

    def end(self, number: int, how: Run, run: str) -> None:
        """Say that the query ``number`` is over, or that it was none; nothing if it is another's by now.

        That is so where the path was removed, and somebody has begun it anew.
        """
        if self._is_of(number, run):
            self._put(f"{number:012d}.{how.value}", run=run)
            self._tidy()

    def _tidy(self) -> None:
        """Remove what is below the newest query that is over: of those that only began any may count."""
        runs = self._runs()
        over = Told.by(name for name in runs if not name.endswith(f".{Run.BEGUN.value}"))
        self._remove(name for name in runs if _number(name) < over.number)

    def _is_of(self, number: int, run: str) -> bool:
        path = f"{DIRECTORY}/{number:012d}.{Run.BEGUN.value}"
        data = self._store.read(path)
        if data is None:
            return False
        _, payload = unframe("collect-mark", _FORM, data, where=path)
        return bool(from_json(payload, where=path).get("run", "") == run)

    def _greatest(self) -> int:
        return max(map(_number, self._runs()), default=-1)

    def _runs(self) -> list[str]:
        return [name for name in self._names() if _RUN.fullmatch(name)]

    def _names(self) -> list[str]:
        return [entry.name for entry in self._store.list(DIRECTORY) if entry.kind is Kind.FILE]

    def _put(self, name: str, *, run: str = "") -> bool:
        """Whether the mark was not there. Its bytes are for people, but for whose start a query is."""
        data = frame("collect-mark", _FORM, to_json({"name": name} | ({"run": run} if run else {})))
        return self._store.put_if_absent(f"{DIRECTORY}/{name}", data) is PutResult.CREATED

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(StorageError):  # it counts for nothing any more
                self._store.delete(f"{DIRECTORY}/{name}")


def _number(name: str) -> int:
    return int(name.partition(".")[0])
