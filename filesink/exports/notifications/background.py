"""An exporter whose target may be slow: a thread of the driver does it, and epochs wait for a moment only.

Rules:
1. An epoch waits if all is well, for ``HOLD_S`` at most: so a healthy receiver was told when the epoch is
   reported, and the program may end. While the target fails, or is busy with what came before, nobody waits.
2. What fails is tried again by the thread, with pauses that grow, as long as the driver lives: also if no
   epoch comes. What is left when it ends is left to the next driver, or to ``filesink.export``: the target
   says itself how far it is.
3. The thread ends where there is nothing to do, and does not keep the process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from filesink.errors import ExportError
from filesink.exports.api import Exporter
from filesink.exports.notifications.function import FunctionNotification
from filesink.exports.notifications.notification import Notification
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.feed import FeedEntry

Receiver = Notification | Callable[[FeedEntry], object]

HOLD_S: Final = 2.0
_FIRST_PAUSE_S: Final = 1.0  # doubled each time
_LONGEST_PAUSE_S: Final = 60.0


def notifying(receiver: Receiver) -> InBackground:
    """What tells ``receiver`` without keeping epochs waiting. Raises as ``Notification.prepare``."""
    notification = receiver if isinstance(receiver, Notification) else FunctionNotification(receiver)
    notification.prepare()
    return InBackground(notification)


class InBackground(Exporter):
    """Has ``exporter`` work in a thread of its own.

    Args:
        exporter: may be called by that thread and, for its version, by another one at the same time.
    """

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._state = threading.Condition()
        self._wanted: tuple[SinkDirectory, int] | None = None
        self._done = -1
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    @property
    def name(self) -> str:
        """See ``Exporter.name``."""
        return self._exporter.name

    def version(self, directory: SinkDirectory) -> int | None:
        """See ``Exporter.version``."""
        return self._exporter.version(directory)

    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """Have the thread do it, and wait for a moment.

        Raises:
            ExportError: ``BUSY``; it goes on in the background.
            Exception: what the exporter has met last, as long as it fails.
        """
        with self._state:
            is_idle = self._thread is None
            self._wanted, self._done = (directory, version), min(self._done, version - 1)
            if self._thread is None:
                self._error = None
                self._thread = threading.Thread(target=self._run, name=f"filesink-{self.name}", daemon=True)
                self._thread.start()
            if is_idle:
                self._state.wait_for(lambda: self._done >= version or self._error is not None, HOLD_S)
            if self._done >= version:
                return
            if self._error is not None:
                raise self._error
        raise ExportError(
            f"'{self.name}' is not at version {version} yet; it goes on in the background", code="BUSY"
        )

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while (wanted := self._next()) is not None:
            directory, version = wanted
            try:
                self._exporter.bring_to(directory, version)
            except Exception as error:  # noqa: BLE001 - raised in ``bring_to``, and tried again; a user's may raise anything
                self._note(error)
                pause = self._pause(pause)
            else:
                self._note(None, version)
                pause = _FIRST_PAUSE_S

    def _next(self) -> tuple[SinkDirectory, int] | None:
        """What is to be done; ``None``, and there is no thread any more, if nothing is."""
        with self._state:
            if self._wanted is None or self._wanted[1] <= self._done:
                self._wanted, self._thread = None, None
            return self._wanted

    def _note(self, error: Exception | None, version: int = -1) -> None:
        with self._state:
            self._error, self._done = error, max(self._done, version)
            self._state.notify_all()

    def _pause(self, seconds: float) -> float:
        """Wait; return how long to wait the next time."""
        threading.Event().wait(seconds)
        return min(seconds * 2, _LONGEST_PAUSE_S)
