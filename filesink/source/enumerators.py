"""Which files there are: everything below a directory, or a choice of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from filesink.arguments import instance_of
from filesink.errors import ConfigError, StorageError
from filesink.naming import join, name_of
from filesink.source.directories import Directory, Root
from filesink.source.files import SourceFile, is_hidden
from filesink.source.patterns import Fits, compiled
from filesink.storage.api import Entry, Kind

_NO_DIRECTORY = "WRONG_KIND"


class Splitting(Enum):
    """Whether large files are cut into ranges that several tasks read."""

    WHERE_POSSIBLE = "where possible"
    NEVER = "never"


class FileEnumerator(ABC):
    """Says which files a source reads. Derive from it for a rule of your own; it is pickled.

    Attributes:
        splitting: whether their ranges may be read apart.
    """

    splitting: Splitting = Splitting.WHERE_POSSIBLE

    @abstractmethod
    def enumerate_files(self, roots: Sequence[Root]) -> Iterator[SourceFile]:
        """The files there are now, in any order; the same one twice does no harm.

        Called on the driver, once for a batch and again and again for a stream: it must not remember
        what it has said. A file that is read by a stream is not read again under the same path.

        Args:
            roots: the paths of the source. Each file that is named lies below one of them.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RecursiveFileEnumerator(FileEnumerator):
    """All files below the roots whose names do not begin with ``.`` or ``_``, nor do those of directories.

    Attributes:
        name_pattern: of the file's name, such as ``*.csv``; ``None`` for any.
        modified_after_ms, modified_before_ms: milliseconds since 1970 UTC; ``None`` for any time.
        is_recursive: whether directories below the roots are looked into.
        accepts: a function of yours that is asked last.
        splitting: see ``FileEnumerator``.
    """

    name_pattern: str | None = None
    modified_after_ms: int | None = None
    modified_before_ms: int | None = None
    is_recursive: bool = True
    accepts: Callable[[SourceFile], bool] | None = None
    splitting: Splitting = Splitting.WHERE_POSSIBLE

    def __post_init__(self) -> None:
        """Check what was given, the pattern as well."""
        if self.name_pattern is not None:
            compiled(instance_of(self.name_pattern, str, name="name_pattern"))
        for name in ("modified_after_ms", "modified_before_ms"):
            given: object = getattr(self, name)
            if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
                raise ConfigError(f"{name} must be a whole number, got {repr(given)[:40]}", code="BAD_VALUE")
        instance_of(self.is_recursive, bool, name="is_recursive")
        instance_of(self.splitting, Splitting, name="splitting")
        if self.accepts is not None and not callable(self.accepts):
            raise ConfigError("accepts must be a function of a file, or None", code="BAD_VALUE")

    def enumerate_files(self, roots: Sequence[Root]) -> Iterator[SourceFile]:
        """See ``FileEnumerator.enumerate_files``."""
        fits = (lambda _: True) if self.name_pattern is None else compiled(self.name_pattern)
        for root in roots:
            for path, entry in _walk(root, is_recursive=self.is_recursive):
                if fits(entry.name) and self._is_in_time(entry):
                    full = root.full(path) if path else root.base
                    file = SourceFile(full, entry.size, entry.mtime_ms)
                    if self.accepts is None or self.accepts(file):
                        yield file

    def _is_in_time(self, entry: Entry) -> bool:
        after, before = self.modified_after_ms, self.modified_before_ms
        return (after is None or entry.mtime_ms > after) and (before is None or entry.mtime_ms < before)


class FileEnumeratorProvider:
    """The enumerators that come with the package, under the names that PyFlink has for them."""

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumerator:
        """All files, the large ones in ranges. The default."""
        return RecursiveFileEnumerator()

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumerator:
        """All files, each as a whole."""
        return RecursiveFileEnumerator(splitting=Splitting.NEVER)


def _walk(root: Root, *, is_recursive: bool) -> Iterator[tuple[str, Entry]]:
    """Path below ``root`` and entry of every visible file that it means; ``""`` if it is a file itself."""
    if root.pattern:
        yield from _below(root.open(), _matches(root.open(), root.pattern), is_recursive=is_recursive)
        return
    found = _or_nothing(root.open().scan(""))
    first = next(found, None)
    if first is None:  # it may be that of a file
        file = root.as_file()
        above = () if file is None else _or_nothing(file.open().scan(""))
        yield from (("", entry) for entry in above if entry.name == name_of(root.base) and _is_file(entry))
        return
    entries = ((entry.name, entry) for entry in chain([first], found))
    yield from _below(root.open(), entries, is_recursive=is_recursive)


def _below(
    directory: Directory, found: Iterator[tuple[str, Entry]], *, is_recursive: bool
) -> Iterator[tuple[str, Entry]]:
    """The files among ``found``, and those in the directories among them."""
    waiting: list[str] = []
    while True:
        for path, entry in found:
            if is_hidden(entry.name):
                continue
            if _is_file(entry):
                yield path, entry
            elif entry.kind is Kind.DIRECTORY and is_recursive:
                waiting.append(path)
        if not waiting:
            return
        found = _entries(directory, waiting.pop())


def _matches(directory: Directory, pattern: Sequence[str]) -> Iterator[tuple[str, Entry]]:
    """What fits ``pattern``, name by name."""
    fits = [compiled(name) for name in pattern]
    yield from _matching(directory, "", fits)


def _matching(directory: Directory, above: str, fits: Sequence[Fits]) -> Iterator[tuple[str, Entry]]:
    for path, entry in _entries(directory, above):
        if not fits[0](entry.name):
            continue
        if len(fits) == 1:
            yield path, entry
        elif entry.kind is Kind.DIRECTORY:
            yield from _matching(directory, path, fits[1:])


def _entries(directory: Directory, path: str) -> Iterator[tuple[str, Entry]]:
    return ((join(path, entry.name), entry) for entry in directory.scan(path))


def _or_nothing(found: Iterator[Entry]) -> Iterator[Entry]:
    """``found``, or nothing where it is no directory that was to be listed."""
    try:
        yield from found
    except StorageError as error:
        if error.code != _NO_DIRECTORY:
            raise


def _is_file(entry: Entry) -> bool:
    return entry.kind is Kind.FILE
