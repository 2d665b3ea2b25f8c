"""A path that no sink has written to when a stream begins. One may come, and is followed from then on.

Rules:
1. As long as nothing was read, a sink that has come is followed from its beginning, in the same run or a
   later one: the offset then says that no file was taken, see ``following``.
2. Files that a listing finds may be those of a sink that has begun meanwhile. So it is looked for behind the
   first listing that finds any, and before an offset tells of them.
3. What was read of a plain directory cannot be told from what a sink lists: there the listing goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from filesink.source.files import SourceFile
from filesink.source.streams import FileStream, FoundFiles, Limit, Offset


class AwaitedSink(FileStream):
    """Finds files as in any directory, until a sink has come.

    Args:
        found: the files of the directory.
        follow: the stream of the sink; ``None`` if there is none.
    """

    def __init__(self, found: FoundFiles, follow: Callable[[], FileStream | None]) -> None:
        self._found = found
        self._follow = follow
        self._followed: FileStream | None = None
        self._is_fixed = False

    def initial(self) -> Offset:
        """See ``FileStream.initial``."""
        return self._found.initial()

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """See ``FileStream.latest``."""
        if self._followed is None:
            end = self._found.latest(start, limit)
            sink = None if start.get("files") else self._sink_behind(end)
            if sink is None:
                return end
        return self._stream.latest(start, limit)

    def latest_of_all(self, limit: Limit) -> Offset:
        """See ``FileStream.latest_of_all``."""
        if self._followed is None:
            was_empty = self._found.is_empty
            end = self._found.latest_of_all(limit)
            sink = self._sink_behind(end) if was_empty else None
            if sink is None:
                return end
        return self._stream.latest_of_all(limit)

    def first_file(self) -> SourceFile | None:
        """See ``FileStream.first_file``."""
        return self._stream.first_file()

    def fix_end(self) -> None:
        """See ``FileStream.fix_end``."""
        self._is_fixed = True
        self._stream.fix_end()

    def files(self, start: Offset, end: Offset) -> Iterable[SourceFile]:
        """See ``FileStream.files``."""
        return self._stream.files(start, end)

    def finish(self, end: Offset) -> None:
        """See ``FileStream.finish``."""
        self._stream.finish(end)

    @property
    def _stream(self) -> FileStream:
        return self._found if self._followed is None else self._followed

    def _sink_behind(self, end: Offset) -> FileStream | None:
        """The sink that may have written the files up to ``end``, the first that were found."""
        if end.get("files"):
            self._followed = self._follow()
            if self._followed is not None and self._is_fixed:
                self._followed.fix_end()
        return self._followed
