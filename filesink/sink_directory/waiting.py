"""Waits until a path has a newer version.

Rules:
1. A look costs two small reads, of files that are mostly absent: the next entry, and the next mark, with
   which the entry may have come and gone. Now and then everything is looked at, whatever they say.
2. On a local disk the pauses are short. On any other store they grow with the time that nothing has come, so
   that a path that is written once an hour is not asked for ten times a second.
"""

from __future__ import annotations

from typing import Final, Literal

from filesink.durations import Duration, has_passed, parse_duration_ms
from filesink.inventory.names import entry_path, mark_path
from filesink.sink_directory.site import Site

Wait = Duration | Literal["forever"]

_SHARE: Final = 10  # a pause is this part of the time that was waited
_LOCAL_MS: Final = (10, 20)  # the shortest and the longest pause
_REMOTE_MS: Final = (200, 10_000)
_LOOK_MS: Final = 60_000  # until everything is looked at


def parse_wait_ms(wait: Wait) -> int | None:
    """What a user has given, in milliseconds; ``None`` for ever.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """
    return None if wait == "forever" else parse_duration_ms(wait, name="wait", least=0)


class Waiting:
    """Waits for entries of one path.

    Args:
        site: the path.
        most_ms: how long it waits for one, in milliseconds; ``None`` for ever.
    """

    def __init__(self, site: Site, most_ms: int | None) -> None:
        self._site = site
        self._most_ms = most_ms
        self._shortest, self._longest = _REMOTE_MS if "://" in site.base_path else _LOCAL_MS
        self.begin()

    def begin(self) -> None:
        """An entry has come: what was waited so far does not count."""
        self._begun_ms = self._site.clock.now_ms()

    def wait(self, newest: int, mark: int, *, looked_ms: int) -> bool:
        """Whether the path should be looked at; ``False`` if no entry above ``newest`` has come in time.

        Args:
            newest: the newest version that is known.
            mark: number of the newest mark that is known.
            looked_ms: since when; a mark that has come and gone since is not noticed otherwise.
        """
        while not has_passed(looked_ms, self._site.clock.now_ms(), _LOOK_MS):
            if self._is_there(entry_path(newest + 1)) or self._is_there(mark_path(mark + 1)):
                return True
            pause = self._pause()
            if not pause:
                return False
            self._site.clock.sleep(pause / 1000)
        return True

    def _is_there(self, path: str) -> bool:
        return self._site.store.read(path) is not None

    def _pause(self) -> float:
        """Milliseconds; 0 if it was waited long enough."""
        now_ms, most = self._site.clock.now_ms(), self._most_ms
        waited = max(now_ms - self._begun_ms, 0)
        pause = min(max(waited / _SHARE, self._shortest), self._longest)
        if most is None:
            return pause
        return 0 if has_passed(self._begun_ms, now_ms, most) else min(pause, most - waited)
