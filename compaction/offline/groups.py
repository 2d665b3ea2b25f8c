"""One merge of finished files: what goes in, what comes out, and what may not be merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from compaction import parquet
from compaction.inputs import signature_of
from compaction.record_wise import RecordWiseFileCompactor, merge_records
from filesink.errors import CompactionError, ConfigError
from filesink.parts.file_format import BulkFormat, FileFormat, RowFormat, code_of
from filesink.storage.api import Output, Store
from formats.errors import FormatError
from formats.parquet.writer import ParquetWriterFactory
from formats.read_limits import own_file

_COPY = 1 << 20  # bytes at a time
#: Of the formats that filesink has; other suffixes are the user's own.
_EXTENSIONS = frozenset(
    {".parquet", ".orc", ".avro", ".arrow", ".seq", ".xml", ".xlsx", ".json", ".csv"}
    | {".gz", ".zst", ".lz4", ".bz2", ".xz", ".sz"}
)
_ANY = pa.schema([("a", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedFile:
    """A visible file as it was listed.

    Attributes:
        path: relative to the base path.
        size: in bytes.
        version: that of the listing.
        rows: as the inventory has them; ``None`` if nobody knows.
    """

    path: str
    size: int
    version: str
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files of one bucket that become one, in this order; it is named as they are."""

    bucket: str
    prefix: str
    suffix: str
    files: tuple[FinishedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FinishedInput:
    """A finished file as a compactor reads it; implements ``InputFile``."""

    store: Store
    file: FinishedFile
    signature: str
    rows: int

    @property
    def size(self) -> int:
        return self.file.size

    def open(self) -> BinaryIO:
        return _open(self.store, self.file)


def check_form(form: FileFormat) -> None:
    """Refuse what cannot be merged without what only a sink's ledger knows."""
    match form:
        case BulkFormat():
            RecordWiseFileCompactor().check(form)
        case RowFormat(encoder=encoder) if encoder.start_part().header(_ANY):
            raise ConfigError(
                f"files of {type(encoder).__name__} begin with a header and cannot be joined afterwards; "
                "use enable_compact(), which knows the headers",
                code="COMPACTION",
            )
        case _:
            pass


def merge(store: Store, form: FileFormat, *, group: Group, output: Output) -> int:
    """Write the records of ``group`` into ``output`` and say how many; 0 where files are joined unread.

    Raises:
        CompactionError: ``SCHEMA`` or ``INPUT``, these files cannot be merged, and others may be;
            ``FORMAT``, ``GONE``, ``SIZE`` or ``ROWS``.
    """
    _check_suffix(group, form)
    if isinstance(form, RowFormat):
        return _joined(store, group, output)
    inputs = [_input(store, form, file) for file in group.files]
    try:
        rows = merge_records(inputs, output, form)
    except FormatError as error:
        raise _not_merged(group, error) from error
    expected = sum(file.rows for file in inputs)
    if rows != expected:
        raise CompactionError(
            f"merging {len(inputs)} files of '{group.bucket}' made {rows} records of {expected}; nothing "
            "was changed. Correct the format",
            code="ROWS",
        )
    return rows


def _not_merged(group: Group, error: FormatError) -> CompactionError:
    if error.kind == "schema":
        return CompactionError(
            f"{len(group.files)} files of '{group.bucket}', such as '{group.files[0].path}', have different "
            f"schemas and cannot be merged: {error.message}. They stay as they are; write that directory "
            "anew with one schema, or name another one as bucket",
            code="SCHEMA",
        )
    return CompactionError(
        f"one of {len(group.files)} files of '{group.bucket}', such as '{group.files[0].path}', could not be "
        f"read back: {error.message}. They stay as they are; restore it, or name another directory as bucket",
        code="INPUT",
    )


def _input(store: Store, form: FileFormat, file: FinishedFile) -> _FinishedInput:
    """Its schema and number of records: from the footer of a Parquet file, else by reading it once."""
    code = code_of(form)
    with _open(store, file) as stream:
        try:
            if isinstance(code, ParquetWriterFactory) and code.encryption is None:
                signature, rows = parquet.describe(stream, file.size)
            else:
                reader = code.open_reader(own_file(stream))
                rows = sum(batch.num_rows for batch in reader)
                signature = signature_of(reader.schema)
        except FormatError as error:
            raise CompactionError(
                f"'{file.path}' could not be read back: {error.message}. It stays as it is; pass the format "
                "that it was written with, or restore it",
                code="INPUT",
            ) from error
    return _FinishedInput(store=store, file=file, signature=signature, rows=rows)


def _joined(store: Store, group: Group, output: Output) -> int:
    for file in group.files:
        with _open(store, file) as stream:
            while data := stream.read(_COPY):
                output.write(data)
    expected = sum(file.size for file in group.files)
    if output.tell() != expected:
        raise CompactionError(
            f"joining {len(group.files)} files of '{group.bucket}' made {output.tell()} bytes of "
            f"{expected}: one was changed meanwhile. Nothing was changed by this call; try again",
            code="SIZE",
        )
    return 0  # not known of files that are not read


def _open(store: Store, file: FinishedFile) -> BinaryIO:
    try:
        return store.open_input(file.path)
    except FileNotFoundError as error:
        raise CompactionError(
            f"'{file.path}' was removed after it was listed. Nothing was changed by this call; try again",
            code="GONE",
        ) from error


def _check_suffix(group: Group, form: FileFormat) -> None:
    """Refuse files that are named as those of another format: joined, they would be no files at all."""
    own = code_of(form).extension
    if own and group.suffix.endswith(own):
        return
    if group.suffix[group.suffix.rfind(".") :] in _EXTENSIONS:
        raise CompactionError(
            f"files of '{group.bucket}' are named '{group.suffix}', and {type(code_of(form)).__name__} does "
            "not name files so. Nothing was changed; pass the format that they were written with",
            code="FORMAT",
        )
