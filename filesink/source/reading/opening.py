"""A file of any format, opened as record batches: compressed or not, a range of it or all."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import BinaryIO

import pyarrow as pa

from filesink.errors import ConfigError, SchemaError, SourceError, StorageError
from filesink.naming import shown
from filesink.source.directories import Root, locate
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading.codes import codec_of
from filesink.source.reading.last_line import with_last_line, with_last_line_of_stream
from formats.api import BaseEncoder, ReadableFormat, Split
from formats.compressed.decompress import expanded
from formats.errors import FormatError
from formats.read_limits import ReadLimits, bounded
from formats.text.line_format import TextLineFormat


@contextmanager
def opened(roots: tuple[Root, ...], file: SourceFile, *, limits: ReadLimits) -> Iterator[BinaryIO]:
    """The bytes of ``file``, as they were when it was found.

    Raises:
        SourceError: ``FILE_GONE``, ``FILE_CHANGED``.
    """
    root, path = locate(roots, file.path)
    try:
        found = root.open().open_input(path)
    except FileNotFoundError as error:
        raise gone(file) from error
    with found:
        size = found.seek(0, io.SEEK_END)
        if size != file.size:
            raise SourceError(
                f"{_named(file)} had {file.size:,} bytes when it was found and has {size:,} now: others "
                "still write it. Have them give it its name when it is complete, or leave young files for "
                "later with minFileAge",
                code="FILE_CHANGED",
            )
        yield bounded(found, limits=limits, name=file.path)


def records(
    code: ReadableFormat, file: BinaryIO, split: FileSplit, *, schema: pa.Schema | None
) -> pa.RecordBatchReader:
    """The records of a split of ``file``; see ``ReadableFormat.open_reader``."""
    codec = codec_of(split.file.path) if is_of_lines(code) else None
    if codec is not None:
        stream = expanded(file, codec)
        return code.open_reader(
            with_last_line_of_stream(stream, code) if isinstance(code, BaseEncoder) else stream, schema=schema
        )
    if isinstance(code, BaseEncoder) and is_of_lines(code):
        file = with_last_line(file, code)
    if split.range is None:
        return code.open_reader(file, schema=schema)
    return code.open_split(file, split.range, schema=schema)


def ranges(code: ReadableFormat, file: BinaryIO, of: SourceFile, *, target: int) -> list[Split | None]:
    """Where a file may be cut; ``[None]`` for nowhere."""
    if is_of_lines(code) and codec_of(of.path) is not None:
        return [None]
    found = code.splits(file, target=target)
    return [*found] if len(found) > 1 else [None]


def is_of_lines(code: ReadableFormat) -> bool:
    """Whether files hold lines of text, and are compressed as a whole if at all."""
    return isinstance(code, TextLineFormat) or (isinstance(code, BaseEncoder) and code.writes_text)


@contextmanager
def naming_file(file: SourceFile) -> Iterator[None]:
    """What a format raises inside names the file.

    Raises:
        SourceError: ``DAMAGED``.
        SchemaError: ``FILE_SCHEMA``.
        ConfigError: ``BAD_VALUE``; an option of the format.
    """
    try:
        yield
    except FormatError as error:
        match error.kind:
            case "schema":
                raise SchemaError(
                    f"{_named(file)} does not fit the schema: {error.message}. Read it apart, or give a "
                    "schema that fits all files",
                    code="FILE_SCHEMA",
                ) from error
            case "option":
                raise ConfigError(f"{_named(file)}: {error.message}", code="BAD_VALUE") from error
            case _:
                raise SourceError(
                    f"{_named(file)} cannot be read: {error.message}. Mend or remove it, or choose what "
                    "becomes of such records with 'mode'",
                    code="DAMAGED",
                ) from error


def gone(file: SourceFile) -> SourceError:
    """The error for a file that is not there any more."""
    return SourceError(
        f"{_named(file)} was there when it was found and is gone: it was removed, or replaced by a merge or "
        "an overwrite. Read again, keep files for as long as readers need, or pass over such files with "
        "ignoreMissingFiles",
        code="FILE_GONE",
    )


def snapshot_gone(file: SourceFile, at: int | datetime) -> StorageError:
    """The error for a file of a sink's version, or of the one at a moment, that is not there any more."""
    which = f"version {at}" if isinstance(at, int) else f"the version at {at.isoformat()}"
    return StorageError(
        f"'{shown(file.path)}' of {which} is not there any more: it was replaced since, by a merge or an "
        "overwrite. Read the newest version, or pass over such files with ignoreMissingFiles",
        code="SNAPSHOT_GONE",
    )


def _named(file: SourceFile) -> str:
    of = f" of version {file.version}" if file.version else ""
    return f"'{shown(file.path)}'{of}"
