"""What is there for a client, as the driver counts it: how much, and which of it may go."""

from __future__ import annotations

from dataclasses import dataclass

from filesink.sinks.collect.marks import Marks
from filesink.sinks.collect.position import CollectPosition
from filesink.sinks.collect.stored import Stored, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered:
    """What was there at one moment.

    Attributes:
        acknowledged: how far the client was.
        waiting: versions that it has not acknowledged whole.
        done: versions of which nothing is needed any more, and that were not seen to be gone.
    """

    acknowledged: CollectPosition
    waiting: list[Version]
    done: list[Version]

    @property
    def bytes(self) -> int:
        """How much the client has still to take."""
        return sum(version.bytes for version in self.waiting)


class Buffer:
    """Looks at a path again and again, and each time reads only what is new. Lives on the driver.

    Args:
        stored: the path.
        marks: of its client.

    Attributes:
        seen: what the last look has found.
    """

    def __init__(self, stored: Stored, marks: Marks) -> None:
        self._stored = stored
        self._marks = marks
        self._versions: dict[int, Version] = {}
        self._end = CollectPosition()  # all versions up to this one were read
        self.seen = Buffered(acknowledged=self._end, waiting=[], done=[])

    def look(self) -> Buffered:
        """What is there now.

        Raises:
            IdentityError: ``OTHER_INVENTORY``; the path was removed and written anew since the last look.
        """
        end, newest = self._stored.look(self._end)
        if newest > end.version:
            found = self._stored.added(end.version, newest) if end.version else self._stored.live()
            self._versions |= {version.number: version for version in found}
        self._end = end.at(newest, 0)
        told = self._marks.told().upto(end.inventory)
        waiting = [one for one in self._versions.values() if not _is_done(one, told)]
        done = [one for one in self._versions.values() if _is_done(one, told)]
        self.seen = Buffered(acknowledged=told, waiting=waiting, done=done)
        return self.seen

    def forget(self, version: Version) -> None:
        """Its files are gone."""
        self._versions.pop(version.number, None)


def _is_done(version: Version, acknowledged: CollectPosition) -> bool:
    return (version.number, version.rows) <= (acknowledged.version, acknowledged.row)
