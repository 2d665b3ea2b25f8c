"""The columns of files that nobody has named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from filesink.buckets.partition_paths import partition_values
from filesink.errors import ConfigError, SchemaError
from filesink.naming import parent, shown
from filesink.source.directories import Root, locate
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading.codes import code_for
from filesink.source.reading.opening import naming_file, opened, records
from filesink.source.reading.plan import METADATA, RESCUED, BadRecords, Reading, Union
from formats import evolution
from formats.api import ReadableFormat
from formats.errors import FormatError


def schema_of_files(roots: tuple[Root, ...], files: Iterable[SourceFile], reading: Reading) -> pa.Schema:
    """The columns of ``files``, of which there is at least one; see ``SourcePlan.schema``.

    Raises:
        SchemaError: ``SCHEMA_REQUIRED``, ``SCHEMA_CONFLICT``.
    """
    if reading.union is Union.NEWEST:
        files = [max(files, key=lambda file: (file.mtime_ms, file.path))]
    fields: dict[str, pa.Field[Any]] = {}
    code = reading.code
    for file in files:
        code = code or code_for([file.path])
        for field in _columns(roots, file, code, reading):
            fields[field.name] = _wider(fields.get(field.name, field), field, file)
    return _with_metadata([*fields.values()], reading)


def _columns(
    roots: tuple[Root, ...], file: SourceFile, code: ReadableFormat, reading: Reading
) -> list[pa.Field[Any]]:
    """The columns of one file, then those of its directory, which are strings unless somebody says more."""
    _, path = locate(roots, file.path)
    of_path = [name for name, _ in partition_values(parent(path))]
    try:
        with opened(roots, file, limits=reading.limits) as content, naming_file(file):
            found = records(code, content, FileSplit(file), schema=None).schema
    except ConfigError as error:
        raise SchemaError(
            f"{error.message}. Such files do not say what their columns are: give a schema, as in "
            ".schema('id BIGINT, name STRING')",
            code="SCHEMA_REQUIRED",
        ) from error
    kept: list[pa.Field[Any]] = [field.with_nullable(True) for field in found if field.name not in of_path]  # noqa: FBT003
    return [*kept, *(pa.field(name, pa.string()) for name in of_path)]


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


def _with_metadata(fields: list[pa.Field[Any]], reading: Reading) -> pa.Schema:
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
