"""What a stream reads between two offsets, as Spark asks for it; here, of the files of any directory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from filesink.errors import IdentityError, StateCorruptError
from filesink.source.discovery.after_reading import Tidying
from filesink.source.discovery.discovery import Discovery
from filesink.source.files import SourceFile

#: What Spark keeps in its checkpoint: JSON of at most 200 bytes, whatever was read.
Offset = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much a batch takes at most; ``None`` for any number. It always takes one file."""

    files: int | None = None
    size: int | None = None

    @property
    def is_none(self) -> bool:
        """Whether a batch takes whatever there is."""
        return self.files is None and self.size is None

    def count(self, files: Iterable[SourceFile]) -> int:
        """How many of ``files`` make a batch."""
        count = size = 0
        for file in files:
            size += file.size
            if count and self.is_over(count + 1, size):
                break
            count += 1
        return count

    def is_over(self, files: int, size: int) -> bool:
        """Whether so many files of so many bytes together are too much."""
        return (self.files is not None and files > self.files) or (self.size is not None and size > self.size)


class FileStream(ABC):
    """The files of a stream. Lives on the driver, as long as its query runs, in one thread."""

    @abstractmethod
    def initial(self) -> Offset:
        """Where a new query begins. Called once in its life."""

    @abstractmethod
    def latest(self, start: Offset, limit: Limit) -> Offset:
        """Where the batch ends that begins at ``start``; equal to ``start`` if there is nothing new."""

    @abstractmethod
    def latest_of_all(self, limit: Limit) -> Offset:
        """As ``latest``, where Spark does not tell where the batch begins, as 4.1 does not.

        A limit of files bounds how many become known at a time; one of bytes cannot be obeyed.
        """

    @abstractmethod
    def first_file(self) -> SourceFile | None:
        """A file that is the same in every run, whose name tells the format; ``None`` before there is one."""

    @abstractmethod
    def fix_end(self) -> None:
        """What comes from now on is for another run: ``Trigger.AvailableNow``. Called before ``latest``."""

    @abstractmethod
    def files(self, start: Offset, end: Offset) -> Iterable[SourceFile]:
        """The files of a batch: the same at every call, in this run or a later one."""

    @abstractmethod
    def finish(self, end: Offset) -> None:
        """All before ``end`` is in the checkpoint; nobody will ask for it again."""


class FoundFiles(FileStream):
    """Files of any directory, each of which is read once; see ``DiscoveryLog``.

    An offset is the id of the log, and the number of files before it.

    Args:
        discovery: finds them. Its log is opened by the first call.
        open_log: opens the log; called once.
        tidying: takes care of files that were read.
    """

    def __init__(
        self, discovery: Discovery, *, open_log: Callable[[], None], tidying: Tidying | None = None
    ) -> None:
        self._discovery = discovery
        self._open_log = open_log
        self._tidying = tidying
        self._end: int | None = None
        self._first: SourceFile | None = None
        self._has_begun = False

    @property
    def is_empty(self) -> bool:
        """Whether no file was ever found."""
        self._opened()
        return self._discovery.log.size == 0

    def initial(self) -> Offset:
        """See ``FileStream.initial``."""
        return self._offset(0)

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """See ``FileStream.latest``. Nothing is listed while the log has enough for a batch."""
        first = self._number(start)
        log = self._discovery.log
        if not self._has_begun:  # then ``start`` is what an earlier run has left in the checkpoint
            self.finish(start)
            self._has_begun = True
        if self._end is None and (limit.files is None or log.size - first < limit.files):
            self._discovery.look_if_due()
        end = log.size if self._end is None else max(self._end, first)
        if not limit.is_none:
            end = first + limit.count(log.files(first, end))
        return self._offset(end)

    def latest_of_all(self, limit: Limit) -> Offset:
        """See ``FileStream.latest_of_all``."""
        self._opened()
        if self._end is None:
            self._discovery.look_if_due(limit.files)
        return self._offset(self._discovery.log.size if self._end is None else self._end)

    def first_file(self) -> SourceFile | None:
        """See ``FileStream.first_file``."""
        self._opened()
        if self._first is None:
            log = self._discovery.log
            self._first = next(iter(log.files(0, min(1, log.size))), None)
        return self._first

    def fix_end(self) -> None:
        """See ``FileStream.fix_end``."""
        self._opened()
        self._discovery.look()
        self._end = self._discovery.log.size

    def files(self, start: Offset, end: Offset) -> Iterable[SourceFile]:
        """See ``FileStream.files``."""
        self._has_begun = True
        return self._discovery.log.files(self._number(start), self._number(end))

    def finish(self, end: Offset) -> None:
        """See ``FileStream.finish``."""
        number = self._number(end)
        if self._tidying is not None:
            self._tidying.finish(number)

    def _offset(self, number: int) -> Offset:
        self._opened()
        return {"log": self._discovery.log.id, "files": number}

    def _number(self, offset: Offset) -> int:
        """The number of an offset of ours.

        Raises:
            IdentityError: ``OTHER_LOG``.
            StateCorruptError: ``GAP``; the log has lost files that the checkpoint knows.
        """
        self._opened()
        log, number = self._discovery.log, offset.get("files")
        if number is None or offset["log"] != log.id:
            raise IdentityError(
                "the checkpoint of this query counts files of another log than the one at its state "
                "location: give both back to each other, or read everything again with a new checkpoint and "
                "a new state location",
                code="OTHER_LOG",
            )
        if number > log.size:
            log.refresh()
        if number > log.size:
            raise StateCorruptError(
                f"the checkpoint of this query has read {number:,} files, and the log at its state "
                f"location has {log.size:,}: restore it from a backup, or read everything again with a new "
                "checkpoint and a new state location",
                code="GAP",
            )
        return int(number)

    def _opened(self) -> None:
        if not self._discovery.log.id:
            self._open_log()


class OneRun(FileStream):
    """A stream of what is there when it is first asked; what comes later is for the next run.

    Args:
        stream: of all files.
    """

    def __init__(self, stream: FileStream) -> None:
        self._stream = stream
        self._is_fixed = False

    def initial(self) -> Offset:
        """See ``FileStream.initial``."""
        return self._stream.initial()

    def latest(self, start: Offset, limit: Limit) -> Offset:
        """See ``FileStream.latest``."""
        self.fix_end()
        return self._stream.latest(start, limit)

    def latest_of_all(self, limit: Limit) -> Offset:
        """See ``FileStream.latest_of_all``; the first answer is the last one, whatever the limit."""
        self.fix_end()
        return self._stream.latest_of_all(limit)

    def first_file(self) -> SourceFile | None:
        """See ``FileStream.first_file``."""
        return self._stream.first_file()

    def fix_end(self) -> None:
        """See ``FileStream.fix_end``."""
        if not self._is_fixed:
            self._stream.fix_end()
            self._is_fixed = True

    def files(self, start: Offset, end: Offset) -> Iterable[SourceFile]:
        """See ``FileStream.files``."""
        return self._stream.files(start, end)

    def finish(self, end: Offset) -> None:
        """See ``FileStream.finish``."""
        self._stream.finish(end)
