"""The columns of files that nobody has named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from filesink.buckets.partition_paths import partition_values
from filesink.errors import ConfigError, SchemaError
from filesink.naming import parent, shown
from filesink.source.directories import Root, locate
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading import opening
from filesink.source.reading.codes import code_for
from filesink.source.reading.opening import naming_file, records
from filesink.source.reading.plan import METADATA, RESCUED, BadRecords, Reading, Union
from formats.api import ReadableFormat
from formats.errors import FormatError
from formats.schemas import evolution

_TRIED: Final = (pa.int32(), pa.int64(), pa.float64(), pa.date32())


def schema_of_files(roots: tuple[Root, ...], files: Iterable[SourceFile], reading: Reading) -> pa.Schema:
    """The columns of ``files``, of which there is at least one; see ``SourcePlan.schema``.

    Raises:
        SchemaError: ``SCHEMA_REQUIRED``, ``SCHEMA_CONFLICT``.
    """
    directories: set[str] = set()
    noted = _noted(roots, files, directories)
    opened = (
        noted if reading.union is Union.ALL else [max(noted, key=lambda file: (file.mtime_ms, file.path))]
    )
    fields: dict[str, pa.Field[Any]] = {}
    code = reading.code
    for file in opened:
        code = code or code_for([file.path])
        for field in _columns(roots, file, code, reading):
            nullable = field.with_nullable(True)  # noqa: FBT003
            fields[field.name] = _wider(fields.get(field.name, nullable), nullable, file)
    fields |= _of_paths(directories)
    return with_metadata(pa.schema([*fields.values()]), reading)


def _noted(roots: tuple[Root, ...], files: Iterable[SourceFile], into: set[str]) -> Iterator[SourceFile]:
    """``files``, whose directories are added to ``into``."""
    for file in files:
        into.add(parent(locate(roots, file.path)[1]))
        yield file


def _of_paths(directories: Iterable[str]) -> dict[str, pa.Field[Any]]:
    """The columns that are in directories as ``k=v``."""
    texts: dict[str, set[str | None]] = {}
    for directory in directories:
        for name, text in partition_values(directory):
            texts.setdefault(name, set()).add(text)
    return {name: pa.field(name, _type_of(found)) for name, found in texts.items()}


def _columns(roots: tuple[Root, ...], file: SourceFile, code: ReadableFormat, reading: Reading) -> pa.Schema:
    """The columns of one file."""
    try:
        with opening.opened(roots, file, limits=reading.limits) as content, naming_file(file):
            return records(code, content, FileSplit(file), schema=None).schema
    except ConfigError as error:
        raise SchemaError(
            f"{error.message}. Such files do not say what their columns are: give a schema, as in "
            ".schema('id BIGINT, name STRING')",
            code="SCHEMA_REQUIRED",
        ) from error


def _type_of(texts: Iterable[str | None]) -> Any:
    """The first type that takes all values of a column in paths, as Spark tries them."""
    values = pa.array(texts, pa.string())
    for kind in _TRIED:
        try:
            values.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return pa.string()


def _wider(known: pa.Field[Any], field: pa.Field[Any], file: SourceFile) -> pa.Field[Any]:
    """Whichever of two columns of one name can take the values of both."""
    for narrow, wide in ((field, known), (known, field)):
        try:
            evolution.check_continues(pa.schema([narrow]), pa.schema([wide]))
        except FormatError:
            continue
        return wide
    raise SchemaError(
        f"column {field.name!r} is {known.type} in some files and {field.type} in '{shown(file.path)}': "
        "nothing holds the values of both. Give a schema, or read these files apart",
        code="SCHEMA_CONFLICT",
    )


def with_metadata(fields: pa.Schema, reading: Reading) -> pa.Schema:
    """The columns of files, and behind them those that are wanted beside them."""
    wanted = [pa.field(name, METADATA[name]) for name in reading.metadata]
    if reading.bad_records is BadRecords.PERMISSIVE:
        wanted.append(pa.field(RESCUED, pa.string()))
    taken = {field.name for field in fields} & {field.name for field in wanted}
    if taken:
        raise SchemaError(
            f"the files have a column {min(taken)!r}, which is the name of one that was asked for beside "
            "them: do without it, or give a schema without the files' own",
            code="SCHEMA_CONFLICT",
        )
    return pa.schema([*fields, *wanted])
