"""What all notifications share: entries go to a receiver in the order of versions, each at least once.

Rules:
1. An entry is sent when its files are visible, and the one before it was taken. So who keeps the first of
   each id has every version once, in order, however many drivers send.
2. None is passed over. A receiver that refuses one is told no more until somebody has seen to it.
3. How far it was told is noted when it has taken something, see ``cursor``; seldom, as that costs a file.
4. Errors name the receiver by its name, and never repeat what it has answered but for a status.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol, assert_never

from filesink.arguments import instance_of
from filesink.errors import ConfigError, DeliveryError, StorageError
from filesink.exports.api import Exporter
from filesink.exports.notifications.cursor import Cursor
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.feed import FeedEntry
from filesink.sinks.asynchronous import Again, Answer, Delivered, Refused, Unusable
from filesink.sinks.asynchronous.answers import problem_of
from filesink.system import SystemClock

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_TAG: Final = 8  # characters
_NOTE_MS: Final = 1_000  # at most what is sent twice after a crash, but for one entry
_LONGEST_MS: Final = 60_000  # that a receiver may keep us waiting


class Sender(Protocol):
    """Sends entries to one receiver, for one thread."""

    def send(self, entry: FeedEntry) -> Answer:
        """Send ``entry`` and wait, for a bounded time, for what becomes of it. Raises no error of its own."""
        ...

    def close(self) -> None:
        """Called once, at the end."""
        ...


@dataclass(frozen=True)
class Notification(Exporter):
    """Tells a receiver of each epoch of a path, when its files are visible: at least once, in order.

    For ``with_notification``, and for ``filesink.export``, which tells all that was not told yet.

    Args:
        name: 1 to 63 lower-case letters, digits, ``-`` and ``_``; ``""`` for one that is made of the
            receiver's address. Under it is noted how far the receiver was told.
        after: nothing up to this version is told; ``None`` for all that is remembered. To leave out what a
            receiver does not take, give the version of that.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    name: str = field(default="", kw_only=True)
    after: int | None = field(default=None, kw_only=True)
    clock: ClassVar[Clock] = SystemClock()

    def __post_init__(self) -> None:
        """Check what was given. Called when a receiver knows its address."""
        if self.name == "":
            kind, address = self._receiver()
            tag = hashlib.sha256(address.encode()).hexdigest()[:_TAG]
            object.__setattr__(self, "name", f"{kind}-{tag}")
        if not _NAME.fullmatch(instance_of(self.name, str, name="name")):
            raise ConfigError(
                "name must be 1 to 63 lower-case letters, digits, '-' or '_', and not begin with the latter",
                code="BAD_VALUE",
            )
        if self.after is not None and (
            isinstance(self.after, bool) or instance_of(self.after, int, name="after") < 0
        ):
            raise ConfigError("after must be a version, 0, 1, 2 …, or None", code="BAD_VALUE")

    @abstractmethod
    def _receiver(self) -> tuple[str, str]:
        """Of what kind the receiver is, and what tells it from others of this kind, without secrets."""

    def prepare(self) -> None:
        """Raise what is known to be wrong before anything is sent. Asks nobody. Raises as ``open``."""

    @abstractmethod
    def open(self) -> Sender:
        """Connect, or prepare to.

        Raises:
            ConfigError: it cannot work like this.
            DependencyError: a package is missing.
        """

    def version(self, directory: SinkDirectory) -> int:
        """See ``Exporter.version``: how far the receiver was told."""
        return max(Cursor(directory, self.name).version or 0, self.after or 0)

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """Tell of everything up to ``version`` that was not told yet.

        Raises:
            DeliveryError: ``RETRIES``, ``REFUSED``, ``UNUSABLE``, ``ANSWER``; an entry was not taken.
            StateError: ``HISTORY_EXPIRED``; what was not told is not remembered any more.
        """
        cursor = Cursor(directory, self.name)
        places = [place for place in (cursor.version, self.after) if place is not None]
        with closing(self.open()) as sender, _noting(cursor, self.clock) as taken:
            for entry in directory.follow(max(places, default=None), until=version):
                self._send(sender, entry)
                taken(entry.version)

    def _send(self, sender: Sender, entry: FeedEntry) -> None:
        backoff: Backoff | None = None
        while True:
            match self._sensible(entry, sender.send(entry)):
                case Delivered() | Again(is_delivery=True):
                    return
                case Again(why=why, after_ms=after_ms):
                    backoff = backoff or Backoff(self.clock)
                    self.clock.sleep(min(after_ms, _LONGEST_MS) / 1000)
                    if not backoff.wait():
                        raise self._failed(entry, why, "it is sent again", code="RETRIES")
                case Refused(why=why):
                    raise self._failed(
                        entry, why, f"mend it, or go on behind it with after={entry.version}", code="REFUSED"
                    )
                case Unusable(why=why):
                    raise self._failed(entry, why, "correct address, token or permissions", code="UNUSABLE")
                case other:
                    assert_never(other)

    def _sensible(self, entry: FeedEntry, answer: Answer) -> Answer:
        """What a receiver has answered, unless that is nothing, as from ``judge`` of a user."""
        problem = problem_of(answer, entries=1)
        if problem is not None:
            raise self._failed(
                entry, f"the answer makes no sense: {problem}", "correct judge of HttpService", code="ANSWER"
            )
        return answer

    def _failed(self, entry: FeedEntry, why: str, what_to_do: str, *, code: str) -> DeliveryError:
        return DeliveryError(
            f"'{self.name}' was not told of version {entry.version}, nor of later ones: {why}; {what_to_do}",
            code=code,
        )


class _Taken(Protocol):
    def __call__(self, version: int) -> None: ...


@contextmanager
def _noting(cursor: Cursor, clock: Clock) -> Iterator[_Taken]:
    """A function that is told what was taken, and notes the newest now and then, and at the end."""
    newest, noted_ms = 0, clock.now_ms()

    def taken(version: int) -> None:
        nonlocal newest, noted_ms
        newest, now_ms = version, clock.now_ms()
        if not 0 <= now_ms - noted_ms < _NOTE_MS:
            cursor.note(newest)
            noted_ms = now_ms

    try:
        yield taken
    except BaseException:
        with suppress(StorageError):  # it is sent again; what went wrong before is what matters
            cursor.note(newest)
        raise
    cursor.note(newest)
