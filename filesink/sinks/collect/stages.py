"""What an epoch of this sink does besides writing: it waits for room, and removes what is acknowledged.

Rules:
1. It waits before its tasks run, so that what is waited for is on the disk of nobody.
2. Acknowledged files are named here, and removed by the committer when the epoch is decided, as an overwrite
   does it. Versions go as a whole, see ``stored``.
3. A file of an epoch that is decided and not complete stays: the driver that completes it looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.commit.replaced_files import unfinished
from filesink.durations import has_passed
from filesink.errors import DeliveryError, TaskCancelledError
from filesink.ledger.ledger import Ledger
from filesink.naming import name_of
from filesink.parts.committables import Committable, HeldFile, ReplacedFile
from filesink.sinks.collect.buffer import Buffer, Buffered
from filesink.storage.api import Store

_PAUSE: Final = 0.25  # seconds between two looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much may wait for a client.

    Attributes:
        most: bytes of files; no epoch begins while there are as many.
        patience_ms: how long an epoch waits for a client that acknowledges nothing, in milliseconds.
    """

    most: int
    patience_ms: int


class WaitForRoom(PreCommitStage[HeldFile, Committable]):
    """Holds back an epoch while its client is slow.

    Args:
        buffer: what waits for the client.
        room: how much may.
        path: for messages.
    """

    def __init__(self, buffer: Buffer, room: Room, path: str) -> None:
        self._buffer = buffer
        self._room = room
        self._path = path

    def begin(self, epoch: EpochContext) -> None:
        """Wait; see ``PreCommitStage.begin``.

        Raises:
            DeliveryError: ``BUFFER_FULL``; no client has acknowledged anything for long.
            TaskCancelledError: the query was stopped.
        """
        since, found = epoch.clock.now_ms(), self._buffer.look()
        while found.bytes >= self._room.most:
            if not epoch.is_wanted():
                raise TaskCancelledError(
                    "the query was stopped while it waited for a client; its restart repeats the batch",
                    code="STOPPED",
                )
            if has_passed(since, epoch.clock.now_ms(), self._room.patience_ms):
                raise self._full(found)
            epoch.clock.sleep(_PAUSE)
            before, found = found, self._buffer.look()
            if found.acknowledged != before.acknowledged:
                since = epoch.clock.now_ms()

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """See ``PreCommitStage.prepare``: nothing is changed."""
        del epoch
        return prepared

    def _full(self, found: Buffered) -> DeliveryError:
        return DeliveryError(
            f"{found.bytes:,} bytes of '{self._path}' wait for a client, max_buffered_bytes is "
            f"{self._room.most:,}, and none has acknowledged anything for {self._room.patience_ms:,} ms. "
            "Nothing of this epoch was written. Have a client ask for results(after=…) or acknowledge(), and "
            "start the query again; or give it a larger buffer, or a longer client_timeout",
            code="BUFFER_FULL",
        )


class RemoveAcknowledged(PreCommitStage[HeldFile, Committable]):
    """Has each epoch remove the files of which a client needs nothing any more.

    Args:
        store: where they are.
        buffer: which those are.
        open_ledger: of any sink below the base path.
    """

    def __init__(self, store: Store, buffer: Buffer, open_ledger: Callable[[str], Ledger]) -> None:
        self._store = store
        self._buffer = buffer
        self._open_ledger = open_ledger

    def is_due(self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]) -> bool:
        """Whether there is anything to remove."""
        del prepared
        self._buffer.look()
        return any(self._removable(epoch))

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Name what goes; see ``PreCommitStage.prepare``."""
        return Prepared([*prepared.committables, *self._removable(epoch)], prepared.states)

    def _removable(self, epoch: EpochContext) -> Iterator[ReplacedFile]:
        done = self._buffer.seen.done  # by the look with which this epoch began
        if not done:
            return
        there = {entry.name: entry for entry in self._store.list("")}
        at_work = unfinished(self._open_ledger, own=epoch.sink_id)
        for version in done:
            names = [name_of(file.path) for file in version.files]
            if not there.keys() & names:
                self._buffer.forget(version)
            elif at_work.isdisjoint(names):
                found = (there[name] for name in names if name in there)
                yield from (ReplacedFile(path=one.name, size=one.size, version=one.version) for one in found)
