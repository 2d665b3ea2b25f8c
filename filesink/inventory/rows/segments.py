"""Segments: rows of files or of epochs as Parquet, written once and checked whenever they are read.

Any reader of Parquet can look into one. What is believed is only what has the size and the hash that a mark
names, so that none of Parquet's own checks is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from filesink.errors import StateCorruptError, StateVersionError
from filesink.inventory.mark import Segment, digest
from filesink.inventory.names import SegmentKind, segment_path
from filesink.inventory.rows.epochs import EPOCHS
from filesink.inventory.rows.files import FILES

SEGMENT_VERSION: Final = 1
_SCHEMAS: Final[dict[str, pa.Schema]] = {"files": FILES, "epochs": EPOCHS}
_VERSION_KEY: Final = "filesink.inventory"
_ROW_GROUP: Final = 1 << 15  # rows
ADOPT_AGAIN: Final = "call filesink.adopt() to look up anew what the path holds"


def to_bytes(pieces: Iterable[pa.Table], kind: SegmentKind) -> tuple[bytes, int]:
    """The segment that holds the rows of ``pieces``, in their order; and their number."""
    output, count = pa.BufferOutputStream(), 0
    options: dict[str, Any] = {"use_dictionary": _words(kind), "store_schema": False}
    if kind == "files":
        options["column_encoding"] = {"path": "DELTA_BYTE_ARRAY"}
    with pq.ParquetWriter(
        output,
        _SCHEMAS[kind],
        compression="zstd",
        **options,
    ) as writer:
        for rows in _in_groups(pieces):
            writer.write_table(rows.unify_dictionaries().combine_chunks(), row_group_size=_ROW_GROUP)
            count += rows.num_rows
        writer.add_key_value_metadata({_VERSION_KEY: str(SEGMENT_VERSION)})
    return output.getvalue().to_pybytes(), count


def _in_groups(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of ``pieces`` in tables that are large enough for a row group."""
    waiting: list[pa.Table] = []
    for rows in pieces:
        waiting.append(rows)
        if sum(one.num_rows for one in waiting) >= _ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def rows_of(data: bytes, segment: Segment) -> Iterator[pa.Table]:
    """The rows of ``segment``, which is what ``data`` should be, some at a time.

    Raises:
        StateCorruptError: ``CHECKSUM``, it is not.
        StateVersionError: a newer release has written it.
    """
    path, schema = segment_path(segment.name), _SCHEMAS[segment.kind]
    if len(data) != segment.size or digest(data) != segment.sha256:
        raise StateCorruptError(
            f"{path} is damaged: size or checksum is not that of the mark; {ADOPT_AGAIN}", code="CHECKSUM"
        )
    with _readable(path):
        file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=_words(segment.kind))
        _check_version((file.metadata.metadata or {})[_VERSION_KEY.encode()], path)
        with_threads = segment.rows >= _ROW_GROUP  # waking them takes longer than reading a small one
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=schema.names, use_threads=with_threads)
            yield rows.select(schema.names).cast(schema)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise StateCorruptError(
            f"{path} cannot be read: {type(error).__name__}; {ADOPT_AGAIN}", code="JSON"
        ) from error


def _words(kind: SegmentKind) -> list[str]:
    """Columns whose values repeat."""
    return [field.name for field in _SCHEMAS[kind] if pa.types.is_dictionary(field.type)]


def _check_version(found: bytes, path: str) -> None:
    if int(found) > SEGMENT_VERSION:
        raise StateVersionError(
            f"{path} has version {int(found)}, this release reads 1 to {SEGMENT_VERSION}; upgrade filesink",
            code="VERSION",
        )
