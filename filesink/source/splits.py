"""Splits: large files in ranges, small ones as they are, and how they are grouped into tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from filesink.errors import SourceError
from filesink.source.directories import Root
from filesink.source.enumerators import Splitting
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading.opening import naming_file, opened, ranges
from formats.api import ReadableFormat, Split
from formats.read_limits import ReadLimits
from formats.sizes import parse_size

#: About the bytes of a task, as Spark's ``maxPartitionBytes``.
TASK_SIZE: Final = "128MiB"
#: Bytes that could be read in the time that it takes to open a file, as Spark's ``openCostInBytes``.
FILE_COST: Final = "4MiB"


class SplitAssigner(ABC):
    """Groups splits into tasks, when a batch is planned. Derive from it for a rule of your own.

    Attributes:
        split_size: bytes; a larger file is cut into ranges of about that size.
    """

    split_size: int

    @abstractmethod
    def assign(self, splits: Iterable[FileSplit]) -> list[list[FileSplit]]:
        """The splits of each task. Called on the driver, once for a batch.

        Each split goes to one task; a task reads its splits in their order.
        """


class SizeSplitAssigner(SplitAssigner):
    """Tasks of about equal size, in the order in which the files were found.

    Args:
        task_size: bytes of a task, about.
        file_cost: what each split counts more, so that many small files make several tasks.

    Raises:
        FormatError: kind ``"option"``; no size.
    """

    def __init__(self, task_size: int | str = TASK_SIZE, file_cost: int | str = FILE_COST) -> None:
        self.split_size = parse_size(task_size, name="task_size")
        self._file_cost = parse_size(file_cost, name="file_cost")

    def assign(self, splits: Iterable[FileSplit]) -> list[list[FileSplit]]:
        """See ``SplitAssigner.assign``."""
        tasks: list[list[FileSplit]] = []
        room = 0
        for split in splits:
            cost = split.size + self._file_cost
            if cost > room:
                tasks.append([])
                room = self.split_size + self._file_cost
            tasks[-1].append(split)
            room -= cost
        return tasks


class SingleSplitAssigner(SplitAssigner):
    """Each split is a task."""

    def __init__(self, split_size: int | str = TASK_SIZE) -> None:
        self.split_size = parse_size(split_size, name="split_size")

    def assign(self, splits: Iterable[FileSplit]) -> list[list[FileSplit]]:
        """See ``SplitAssigner.assign``."""
        return [[split] for split in splits]


class FileSplitAssignerProvider:
    """The assigners that come with the package, under the names that PyFlink has for them."""

    @staticmethod
    def locality_aware_split_assigner() -> SplitAssigner:
        """Tasks of about equal size. Spark's Python sources say nothing of hosts, so none is preferred."""
        return SizeSplitAssigner()

    @staticmethod
    def simple_split_assigner() -> SplitAssigner:
        """Each split is a task."""
        return SingleSplitAssigner()


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlanner:
    """Cuts files where their format can be cut. On the driver.

    Attributes:
        roots: what the files lie below.
        code: their format.
        splitting: whether they are cut at all.
        assigner: groups the splits.
    """

    roots: tuple[Root, ...]
    code: ReadableFormat
    splitting: Splitting
    assigner: SplitAssigner

    def tasks(self, files: Iterable[SourceFile]) -> list[list[FileSplit]]:
        """The splits of each task.

        A file that has vanished or is damaged is not cut; its task will tell.

        Raises:
            SourceError: ``DAMAGED``, ``FILE_CHANGED``.
        """
        return self.assigner.assign(split for file in files for split in self._splits(file))

    def _splits(self, file: SourceFile) -> Iterator[FileSplit]:
        if self.splitting is Splitting.NEVER or file.size <= self.assigner.split_size:
            yield FileSplit(file)
            return
        for found in self._ranges(file):
            yield FileSplit(file, found)

    def _ranges(self, file: SourceFile) -> Sequence[Split | None]:
        try:
            with opened(self.roots, file, limits=ReadLimits()) as content, naming_file(file):
                return ranges(self.code, content, file, target=self.assigner.split_size)
        except SourceError as error:
            if error.code not in {"FILE_GONE", "DAMAGED"}:
                raise
            return [None]
