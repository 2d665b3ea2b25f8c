"""The mailbox: completions of asynchronous work, called in the writer's own thread (FLIP-177).

Rules:
1. ``execute`` is for any thread, all else for the writer's, so a writer needs no locks.
2. Letters are called one at a time, in the order of their arrival; those of one thread in its order.
3. Nobody waits for ever: a wait ends with a letter, a timer or its timeout, with the task, or, where
   nothing is going to come, with an error.
4. The engine calls what is there between two batches and before ``prepare_commit``. A writer that waits,
   in ``write`` for room or in ``prepare_commit`` for its last answers, has to yield: nobody else calls.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue

from filesink.api.timers import Timers
from filesink.errors import LetterError, TaskCancelledError
from filesink.ports import Clock

#: Seconds without any letter after which a writer that waits for one, and for no timer, is told.
PATIENCE = 600.0
_SLICE = 0.2  # seconds between two beats of a pulse


class Mailbox:
    """What other threads have the writer's thread do.

    Args:
        clock: of the timers, and of the pulse.
        pulse: called several times a second while the writer waits; raises ``TaskCancelledError`` if
            nobody waits for its task any more.
        patience: see ``PATIENCE``.

    Attributes:
        timers: called beside the letters.
    """

    def __init__(
        self, clock: Clock, *, pulse: Callable[[], None] = lambda: None, patience: float = PATIENCE
    ) -> None:
        self.timers = Timers(clock)
        self._clock = clock
        self._pulse = pulse
        self._patience = patience
        self._letters: SimpleQueue[tuple[Callable[[], object], str]] = SimpleQueue()
        self._beat_ms = 0

    def execute(self, letter: Callable[[], object], description: str) -> None:
        """Have ``letter`` called in the writer's thread; from any thread, and without waiting.

        Args:
            letter: what is done there. After the end of the attempt it is not called any more.
            description: what it is, for the error if it fails; no secret and no value of a record.
        """
        self._letters.put((letter, description))

    def try_yield(self) -> bool:
        """Call the timers that are due or else one letter, if there is one; whether anything was called.

        Raises:
            LetterError: ``LETTER``; the letter failed.
        """
        return self.timers.call_due() or self._call_letter(None)

    def yield_(self, timeout: float | None = None) -> bool:
        """As ``try_yield``, but wait until there is something to call.

        Args:
            timeout: seconds. Without one it waits for as long as it takes, but see ``NO_LETTER``.

        Returns:
            Whether anything was called; ``False`` when the timeout is over.

        Raises:
            LetterError: ``LETTER``; the letter failed. ``NO_LETTER``; without a timeout: nothing has come for
                ten minutes, and no timer waits, so that it seems that nothing is in flight.
            TaskCancelledError: nobody waits for this task any more. Let it pass.
        """
        left = self._patience if timeout is None else timeout
        while not self.try_yield():
            until_timer = self.timers.until_next()
            if timeout is None and until_timer is not None:
                left = max(left, until_timer)
            if left <= 0:
                return self._nothing_came(timeout)
            piece = min(left, _SLICE, *([] if until_timer is None else [until_timer]))
            left -= piece
            if self._call_letter(piece):
                break
            self._beat()
        self._keep_beating()
        return True

    def _nothing_came(self, timeout: float | None) -> bool:
        if timeout is not None:
            self._keep_beating()  # whoever asks again and again, without waiting, has to be told as well
            return False
        raise LetterError(
            f"a writer has waited {self._patience:g} s for a letter and none has come: nothing seems to be "
            "in flight, or it has no timeout of its own. Yield only while something is, or with a timeout",
            code="NO_LETTER",
        )

    def _call_letter(self, timeout: float | None) -> bool:
        """Call the next letter, if one comes within ``timeout`` seconds; whether one has."""
        try:
            letter, description = self._letters.get(block=timeout is not None, timeout=timeout)
        except Empty:
            return False
        try:
            letter()
        except TaskCancelledError:
            raise
        except Exception as error:
            raise LetterError(
                f"'{description}', asynchronous work of a writer, failed: {type(error).__name__}: {error}",
                code="LETTER",
            ) from error
        return True

    def _keep_beating(self) -> None:
        """A writer whose letters come quickly waits as well, one after the other."""
        if self._clock.now_ms() - self._beat_ms >= _SLICE * 1000:
            self._beat()

    def _beat(self) -> None:
        self._beat_ms = self._clock.now_ms()
        self._pulse()
