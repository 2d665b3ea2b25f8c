"""Files that lie in archives: one format around another.

An archive is read by one task, file by file. Each file is written to the task's disk first, since formats
with a footer go back and forth in it; no more than one is there at a time.
"""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, Final, Literal, cast

import pyarrow as pa

from filesink.source.files import FileSplit, SourceFile, is_hidden
from filesink.source.reading.opening import records
from formats.api import ReadableFormat
from formats.errors import FormatError
from formats.read_limits import Guard, bounded, guard_of

#: SeaTunnel's words for archives.
Archive = Literal["zip", "tar", "tar_gz", "gz"]
_LARGEST: Final = 16 << 30  # bytes of a file in an archive: a few kilobytes may claim to be petabytes
_PIECE: Final = 1 << 20
_IN_MEMORY: Final = 8 << 20
_ENCRYPTED: Final = 1  # a flag of zip
_BROKEN: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # zipfile's, for codecs that it does not know
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived(ReadableFormat):
    """Archives of files that all have one format.

    Directories, and files whose names begin with ``.`` or ``_``, are passed over, as they are outside of
    archives. Links are refused: what they mean lies elsewhere.

    Attributes:
        inner: the format of the files; lines may be compressed once more, as the ending of a name says.
        archive: what kind of archive holds them.
    """

    inner: ReadableFormat
    archive: Archive

    def open_reader(self, file: BinaryIO, *, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """See ``ReadableFormat.open_reader``; without a schema it is that of the first file."""
        found = self._batches(file, schema)
        if schema is None:
            schema = cast("pa.Schema", next(found))
        else:
            next(found)
        return pa.RecordBatchReader.from_batches(schema, cast("Iterator[pa.RecordBatch]", found))

    def _batches(self, file: BinaryIO, schema: pa.Schema | None) -> Iterator[pa.RecordBatch | pa.Schema]:
        """First the schema of all batches, then these."""
        if schema is not None:
            yield schema
        guard = guard_of(file)
        with _as_damage(guard):
            for name, content in _entries(file, self.archive, guard):
                batches = records(
                    self.inner, content, FileSplit(SourceFile(name, _size(content), 0)), schema=schema
                )
                if schema is None:
                    schema = batches.schema
                    yield schema
                yield from batches
        if schema is None:
            raise FormatError("the archive holds no file", kind="value")


def _entries(file: BinaryIO, archive: Archive, guard: Guard) -> Iterator[tuple[str, BinaryIO]]:
    """Names and contents of the visible files."""
    file.seek(0)
    for name, opened in _OPENERS[archive](file, guard):
        if any(map(is_hidden, name.strip("/").split("/"))):
            continue
        with opened() as source, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as content:
            _copy(source, content, name)
            content.seek(0)
            yield name, bounded(cast("BinaryIO", content), limits=guard.limits, name=f"{guard.name}:{name}")


def _copy(source: IO[bytes], target: Any, name: str) -> None:
    size = 0
    while piece := source.read(_PIECE):
        size += len(piece)
        if size > _LARGEST:
            raise FormatError(
                f"the file '{name[:100]}' of the archive has more than {_LARGEST >> 30} GiB", kind="value"
            )
        target.write(piece)


_Opened = tuple[str, Callable[[], Any]]


def _of_zip(file: BinaryIO, guard: Guard) -> Iterator[_Opened]:
    del guard
    with zipfile.ZipFile(file) as archive:
        for one in archive.infolist():
            if one.flag_bits & _ENCRYPTED:
                raise FormatError("the archive has a password; unpack it first", kind="value")
            if not one.is_dir():
                yield one.filename, lambda one=one: archive.open(one)  # type: ignore[misc] # bound at once


def _of_tar(file: BinaryIO, guard: Guard) -> Iterator[_Opened]:
    del guard
    with tarfile.open(fileobj=file, mode="r:") as archive:
        yield from _members(archive)


def _of_tar_gz(file: BinaryIO, guard: Guard) -> Iterator[_Opened]:
    del guard
    with tarfile.open(fileobj=file, mode="r|gz") as archive:  # forwards only: nothing is expanded twice
        yield from _members(archive)


def _members(archive: tarfile.TarFile) -> Iterator[_Opened]:
    for one in archive:
        if one.isdir():
            continue
        if not one.isfile():
            raise FormatError(f"'{one.name[:100]}' of the archive is a link or a device", kind="value")
        yield one.name, lambda one=one: archive.extractfile(one)  # type: ignore[misc] # bound at once


def _of_gz(file: BinaryIO, guard: Guard) -> Iterable[_Opened]:
    name = guard.name.rsplit("/", 1)[-1]
    return [(name.removesuffix(".gz"), lambda: gzip.GzipFile(fileobj=file))]


_OPENERS: Final[Mapping[str, Callable[[BinaryIO, Guard], Iterable[_Opened]]]] = {
    "zip": _of_zip,
    "tar": _of_tar,
    "tar_gz": _of_tar_gz,
    "gz": _of_gz,
}


def _size(content: BinaryIO) -> int:
    size = content.seek(0, 2)
    content.seek(0)
    return size


@contextmanager
def _as_damage(guard: Guard) -> Iterator[None]:
    """What the library of the archive says of its bytes becomes ``FormatError``."""
    with guard.naming():
        try:
            yield
        except _BROKEN as error:
            raise FormatError(
                f"the archive is damaged, cut off, or none of its kind ({type(error).__name__})", kind="value"
            ) from error
