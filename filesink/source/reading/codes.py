"""Which format reads a file: the one that was given, or the one that its name tells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from filesink.errors import SourceError
from filesink.naming import name_of, shown
from filesink.source.files import SourceFile
from formats.api import ReadableFormat
from formats.arrow_ipc.writer import ArrowWriterFactory
from formats.avro.writer import AvroWriterFactory
from formats.encoders import Encoder
from formats.file_extensions import OF_CODEC
from formats.orc.writer import OrcBulkWriterFactory
from formats.parquet.writer import ParquetWriterFactory
from formats.sequence_file.writer import SequenceFileWriterFactory
from formats.text.line_format import TextLineFormat

_MAKERS: Final[dict[str, Callable[[], ReadableFormat]]] = {
    "parquet": ParquetWriterFactory,
    "orc": OrcBulkWriterFactory,
    "avro": AvroWriterFactory,
    "arrow": ArrowWriterFactory,
    "sequencefile": SequenceFileWriterFactory,
    "json": Encoder.json_lines,
    "csv": Encoder.csv,
    "text": TextLineFormat,
}
_BY_ENDING: Final = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
    ".orc": "orc",
    ".avro": "avro",
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    ".seq": "sequencefile",
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".csv": "csv",
    **dict.fromkeys((".txt", ".text", ".log"), "text"),
}
#: Codecs of compressed lines by the ending of a file.
CODECS: Final = {
    **{ending: codec for codec, ending in OF_CODEC.items()},
    ".gzip": "gzip",
    ".zstd": "zstd",
}
#: Endings of codecs that nothing here can expand.
UNREADABLE: Final = frozenset({".deflate", ".br", ".lzo", ".z", ".zip", ".tgz", ".snappy", ".lzma"})


def codec_of(path: str) -> str | None:
    """The codec that a file's name tells; ``None`` for none.

    Raises:
        SourceError: ``NO_READER``; one that nothing here can expand.
    """
    ending = _ending(name_of(path))
    if ending in UNREADABLE:
        raise SourceError(
            f"'{shown(path)}' is compressed in a way that cannot be read here; those that can end with "
            f"{', '.join(CODECS)}",
            code="NO_READER",
        )
    return CODECS.get(ending)


def format_of(path: str) -> str | None:
    """The name of the format that a file's name tells, whatever codec follows; ``None`` if it tells none."""
    name = name_of(path)
    ending = _ending(name)
    if ending in CODECS:
        ending = _ending(name[: -len(ending)])
    return _BY_ENDING.get(ending)


def code_for(paths: Iterable[str]) -> ReadableFormat:
    """The format of files that all have the same.

    Args:
        paths: at least one.

    Raises:
        SourceError: ``NO_READER``, a name tells no format; ``MIXED_FORMATS``, two tell different ones.
    """
    first, found = "", ""
    for path in paths:
        name = _named(path)
        first, found = first or path, found or name
        if name != found:
            raise _mixed(first, found, path)
    return _MAKERS[found]()


def check_alike(code: ReadableFormat, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
    """``files``, each of which ``code`` reads by its name.

    Raises:
        SourceError: as ``code_for``.
    """
    names: dict[str, bool] = {}
    for file in files:
        name = _named(file.path)
        if name not in names:
            names[name] = type(_MAKERS[name]()) is type(code)
        if not names[name]:
            raise _mixed("files that were found before", type(code).__name__, file.path)
        yield file


def _named(path: str) -> str:
    name = format_of(path)
    if name is None:
        raise SourceError(
            f"nothing reads '{shown(path)}': its name ends with none of {', '.join(_BY_ENDING)}. Name the "
            "format, or leave such files out with a pattern",
            code="NO_READER",
        )
    return name


def _mixed(first: str, found: str, path: str) -> SourceError:
    return SourceError(
        f"two formats lie side by side: '{shown(first)}' is read as {found}, and '{shown(path)}' is "
        f"{format_of(path)}. Choose one with a pattern, or name the format that reads both",
        code="MIXED_FORMATS",
    )


def _ending(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem else ""
