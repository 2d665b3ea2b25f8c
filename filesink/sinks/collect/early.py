"""Rows before their epoch is complete, for a client that would rather have some twice than wait.

    _filesink/_collect/early/<slot>-<attempt>-<first>-<rows>.arrow    rows of a task's attempt, as they came
                             <slot>-<attempt>.<name of a file>        it has ended; all of its rows are there

Rules:
1. None of this counts for anybody else: inventory, positions and ledger know what an epoch has decided.
2. A file is put whole, and before the next batch is taken in. An attempt's rows are counted from 0.
3. That an attempt has ended is told before its epoch can be decided. From then on its rows are taken from
   its file, those that were taken before left out.
4. An epoch that is complete has its rows removed here. Of what has ended it is told for some epochs more,
   for clients that are behind.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from filesink.api import WriterContext
from filesink.errors import StorageError
from filesink.naming import name_of
from filesink.parts.committables import Committable, PendingFile
from filesink.parts.plan import Plan
from filesink.parts.writer import FileWriter
from filesink.sinks.collect.marks import DIRECTORY as MARKS
from filesink.sinks.collect.rows import FORMAT
from filesink.storage.api import Kind, Store

_DIRECTORY: Final = f"{MARKS}/early"
_NAME: Final = re.compile(
    r"(?P<slot>[0-9]{12})-(?P<attempt>[0-9a-f]{32})"
    r"(-(?P<first>[0-9]{15})-(?P<rows>[0-9]{9})\.arrow|\.(?P<file>.+))"
)
_KEPT: Final = 100  # epochs


class EarlyWriter(FileWriter):
    """A task's writer that also puts its rows where clients look for early ones.

    Args:
        plan: how the sink writes: one file an attempt.
        store: made for this task.
        context: of the task.
    """

    def __init__(self, plan: Plan, store: Store, context: WriterContext) -> None:
        super().__init__(plan, store, context)
        self._name = f"{context.epoch:012d}-{context.ids.uuid().replace('-', '')}"
        self._early: list[str] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch, context: WriterContext) -> None:
        """See ``SinkWriter.write``."""
        super().write(batch, context)
        path = f"{_DIRECTORY}/{self._name}-{self._rows:015d}-{batch.num_rows:09d}.arrow"
        self._early.append(path)
        self._store.put_if_absent(path, _file(batch))
        self._rows += batch.num_rows

    def prepare_commit(self, epoch: int) -> list[Committable]:
        """See ``SinkWriter.prepare_commit``."""
        found = super().prepare_commit(epoch)
        names = [name_of(file.target) for file in found if isinstance(file, PendingFile)]
        if len(names) == 1:  # of several nobody could tell which of them has which rows
            self._store.put_if_absent(f"{_DIRECTORY}/{self._name}.{names[0]}", b"")
        return found

    def abort_prepare(self) -> None:
        """See ``SinkWriter.abort_prepare``; goes on as there."""
        super().abort_prepare()
        for path in self._early:
            with suppress(StorageError):  # it goes with a later epoch
                self._store.delete(path)


def _file(batch: pa.RecordBatch) -> bytes:
    out = io.BytesIO()
    writer = FORMAT.create(out, batch.schema)
    writer.write(batch)
    writer.finish()
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class EarlyPlace:
    """Whose early rows a batch has. Who takes some of them says so to ``rows``."""

    attempt: str
    rows: EarlyRows


class EarlyRows:
    """What one client has taken of the rows that no epoch has decided. Of one thread.

    Args:
        store: where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken: dict[str, int] = {}  # rows by attempt, from its first on
        self._ended: dict[str, str] = {}  # attempts by the names of their files

    def take(self, attempt: str, rows: int) -> None:
        """So many rows more were handed out."""
        self._taken[attempt] = self._taken.get(attempt, 0) + rows

    def taken(self, path: str) -> int:
        """How many rows of a file of a complete epoch were handed out before. After ``look``."""
        return self._taken.get(self._ended.get(name_of(path), ""), 0)

    def look(self) -> list[re.Match[str]]:
        """Find out which attempts have ended; the names of all that is there, sorted."""
        names = _names(self._store)
        there = {name["attempt"] for name in names}
        self._taken = {attempt: rows for attempt, rows in self._taken.items() if attempt in there}
        self._ended = {name["file"]: name["attempt"] for name in names if name["file"]}
        return names

    def found(self) -> Iterator[tuple[EarlyPlace, pa.RecordBatch]]:
        """Rows that were not taken yet, of attempts that run. Who takes some, says so before it goes on."""
        names = self.look()
        ended = set(self._ended.values())
        for name in names:
            attempt = name["attempt"]
            if attempt in ended:
                continue
            first, taken = int(name["first"]), self._taken.get(attempt, 0)
            # What lies behind a gap cannot be counted: it comes with its epoch.
            if first <= taken < first + int(name["rows"]):
                for batch in self._read(name[0], skip=taken - first):
                    yield EarlyPlace(attempt, self), batch

    def _read(self, name: str, *, skip: int) -> Sequence[pa.RecordBatch]:
        data = self._store.read(f"{_DIRECTORY}/{name}")
        if data is None:
            return []  # its epoch is complete by now
        return FORMAT.open_reader(io.BytesIO(data)).read_all().slice(skip).to_batches()


def remove_early(store: Store, *, complete: int) -> int:
    """Remove the rows of epochs up to a complete one, and what is told of far earlier ones.

    Returns:
        How many files were removed.
    """
    names = [
        name[0] for name in _names(store) if int(name["slot"]) <= complete - (_KEPT if name["file"] else 0)
    ]
    for name in names:
        store.delete(f"{_DIRECTORY}/{name}")
    return len(names)


def _names(store: Store) -> list[re.Match[str]]:
    entries = sorted(entry.name for entry in store.list(_DIRECTORY) if entry.kind is Kind.FILE)
    return [found for found in map(_NAME.fullmatch, entries) if found]
