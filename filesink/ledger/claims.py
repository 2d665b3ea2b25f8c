"""Which write a ``txn_id`` stands for: numbered files, created if absent, of which the newest counts.

    _filesink/_txns/<hash of uid and txn_id>/<n>.claim
                                             <n>.done      its files are visible

Rules:
1. A record is claimed once it is durable, by its own driver or by the one that completes its epoch. So only
   one of two writes of a ``txn_id`` is published, in whatever order their drivers wake and die.
2. Nothing is ever replaced. A claim stays, however old: that is what a ``txn_id`` is for.
3. If a claim is missing and its ``.done`` is there, something was removed: the write is not new.
4. A claim that says ``TakenBack`` has the nonce of the record that is void, which never claims again.
   The next write may.
5. A driver that relies on a claim first makes its name durable: the driver that put it may have died before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Literal

from filesink.errors import StateCorruptError
from filesink.ledger.record import EMPTY, BatchWrite, EpochRecord, TakenBack
from filesink.naming import LEDGER_ROOT
from filesink.storage.api import Store

_FILE = re.compile(r"([0-9]{6})\.(claim|done)")
_UNFINISHED = re.compile(r"\.([0-9]{6})\.(?:claim|done)\.")


class Claims:
    """Everything that was claimed for one ``txn_id``.

    Args:
        store: where.
        name: of the ``txn_id``, see ``filesink.ledger.identity.txn_name``.
        check: raises unless a record may be believed; given its path, too.
    """

    def __init__(self, store: Store, name: str, *, check: Callable[[EpochRecord, str], object]) -> None:
        self._store = store
        self._check = check
        self._name = name
        self._directory = f"{LEDGER_ROOT}/_txns/{name}"

    def sweep(self) -> None:
        """Remove what crashes inside ``put_if_absent`` have left beside claims that stand, durably."""
        newest = sum(1 for _ in self._all()) - 1
        found = ((entry.name, _UNFINISHED.match(entry.name)) for entry in self._store.list(self._directory))
        dead = [name for name, match in found if match and int(match[1]) <= newest]
        for name in dead:
            self._store.discard(f"{self._directory}/{name}")
        if dead:
            self._store.sync_directories([self._directory])

    def standing(self) -> EpochRecord | None:
        """The record that the ``txn_id`` stands for; ``None`` if there is none, or it was taken back."""
        claims = self._durable()
        newest = claims[-1] if claims else None
        return None if newest is None or isinstance(newest.cause, TakenBack) else newest

    def claim(self, record: EpochRecord) -> bool:
        """Whether the ``txn_id`` stands for ``record``, now or since an earlier call. Replayable."""
        supersedes = record.cause.supersedes if isinstance(record.cause, BatchWrite) else ""
        while True:
            claims = self._durable()
            if any(one.nonce == record.nonce for one in claims):
                return not any(
                    one.nonce == record.nonce and isinstance(one.cause, TakenBack) for one in claims
                )
            newest = claims[-1] if claims else None
            is_free = newest is None or isinstance(newest.cause, TakenBack)
            if not is_free and (newest is None or newest.nonce != supersedes):
                return False
            self._put(len(claims), record)

    def done(self, record: EpochRecord) -> None:
        """Note that the files of ``record`` are visible, if the ``txn_id`` stands for it. Replayable."""
        for number, claim in enumerate(self._all()):
            if claim.nonce == record.nonce and not isinstance(claim.cause, TakenBack):
                self._store.put_if_absent(self._path(number, "done"), b"")
        self.sweep()

    def take_back(self, undone: EpochRecord) -> None:
        """Have ``undone`` claim nothing any more, whether it has or not. Replayable."""
        void = replace(
            undone,
            cause=TakenBack(slot=undone.slot),
            committables=EMPTY, announcement=EMPTY, waiting=EMPTY, schema=EMPTY, states={},
        )  # fmt: skip
        while True:
            claims = self._durable()
            if any(one.nonce == undone.nonce and isinstance(one.cause, TakenBack) for one in claims):
                return
            newest = claims[-1] if claims else None
            if (
                newest is not None
                and newest.nonce != undone.nonce
                and not isinstance(newest.cause, TakenBack)
            ):
                return  # the same txn_id was written meanwhile
            self._put(len(claims), void)

    def _put(self, number: int, record: EpochRecord) -> None:
        """Put a claim unless there is another one already; the caller looks again."""
        self._store.put_if_absent(self._path(number), record.to_bytes())

    def _durable(self) -> list[EpochRecord]:
        """All claims, made durable: no power cut takes them any more."""
        claims = list(self._all())
        if claims:
            self._store.sync_directories([self._directory])
        return claims

    def _all(self) -> Iterator[EpochRecord]:
        for number in range(self._count()):
            path = self._path(number)
            data = self._store.read(path)
            if data is None:
                raise self._gap(number)
            record = EpochRecord.from_bytes(data, where=path)
            self._check(record, path)
            if isinstance(record.cause, BatchWrite) and record.cause.remembered_in != self._name:
                raise StateCorruptError(
                    f"{path} is a claim of '{record.cause.remembered_in}': it was copied here. Nothing was "
                    "published or removed. Restore the directory from a backup",
                    code="FOREIGN",
                )
            yield record

    def _count(self) -> int:
        """How many there are, if none is missing."""
        claims, done = self._numbers()
        if claims != set(range(len(claims))) or not done <= claims:
            claims, done = self._numbers()  # while a listing went on one may have been made, and the next
        missing = next(number for number in count() if number not in claims)
        if missing < len(claims) or not done <= claims:
            raise self._gap(missing)
        return missing

    def _numbers(self) -> tuple[set[int], set[int]]:
        """The numbers of all claims, and of those whose files are visible."""
        names = (entry.name for entry in self._store.list(self._directory))
        found = [(int(match[1]), match[2]) for name in names if (match := _FILE.fullmatch(name))]
        claims, done = ({number for number, kind in found if kind == one} for one in ("claim", "done"))
        return claims, done

    def _gap(self, number: int) -> StateCorruptError:
        return StateCorruptError(
            f"{self._path(number)} is missing, although a later claim or its own .done file exists. "
            "Without it the same rows could be written twice. Nothing was published or removed. "
            "Restore the directory from a backup",
            code="GAP",
        )

    def _path(self, number: int, kind: Literal["claim", "done"] = "claim") -> str:
        return f"{self._directory}/{number:06d}.{kind}"
