"""Splits as record batches with the columns that were asked for. Runs in a task."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from filesink.buckets.partition_paths import partition_values
from filesink.errors import SchemaError, SourceError
from filesink.naming import parent, shown
from filesink.source.directories import locate
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading.bad_records import lenient
from filesink.source.reading.opening import naming_file, opened, records, snapshot_gone
from filesink.source.reading.plan import RESCUED, BadRecords, Missing, ReadPlan

log = logging.getLogger("filesink")


def read(plan: ReadPlan, splits: Iterable[FileSplit]) -> Iterator[pa.RecordBatch]:
    """The records of ``splits``, one after the other, as batches of ``plan.schema``.

    Raises:
        SourceError: ``FILE_GONE``, ``FILE_CHANGED``, ``DAMAGED``; it names the file.
        StorageError: ``SNAPSHOT_GONE``, in place of ``FILE_GONE`` where a version of a sink is read.
        SchemaError: ``FILE_SCHEMA``; a file has not the columns that are wanted.
    """
    for split in splits:
        try:
            yield from _read(plan, split)
        except SourceError as error:
            reading = plan.reading
            if error.code != "FILE_GONE":
                raise
            if reading.missing is Missing.FAIL and reading.at is not None:
                raise snapshot_gone(split.file, reading.at) from error
            if reading.missing is Missing.FAIL:
                raise
            log.warning("passed over, since it is gone: %s", shown(split.file.path))


def _read(plan: ReadPlan, split: FileSplit) -> Iterator[pa.RecordBatch]:
    known = _known(plan, split.file)
    wanted = pa.schema(
        [field for field in plan.schema if field.name not in known and not _is_ours(plan, field)]
    )
    with opened(plan.roots, split.file, limits=plan.reading.limits) as file:
        if plan.reading.bad_records is BadRecords.FAILFAST:
            with naming_file(split.file):
                found = ((batch, None) for batch in records(plan.code, file, split, schema=wanted))
                for batch, rescued in found:
                    yield _completed(batch, rescued, known=known, schema=plan.schema)
            return
        for batch, rescued in lenient(plan, file, split, schema=wanted):
            yield _completed(batch, rescued, known=known, schema=plan.schema)


def _completed(
    batch: pa.RecordBatch, rescued: str | None, *, known: dict[str, Any], schema: pa.Schema
) -> pa.RecordBatch:
    """``batch`` with the columns that are the same for all of its records."""
    if batch.schema.equals(schema):
        return batch
    rows, arrays = batch.num_rows, []
    for field in schema:
        if field.name in known:
            arrays.append(pa.repeat(known[field.name], rows))
        elif field.name in batch.schema.names:
            arrays.append(batch.column(field.name))
        else:
            arrays.append(pa.repeat(pa.scalar(rescued, pa.string()), rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_ours(plan: ReadPlan, field: pa.Field[Any]) -> bool:
    """Whether it is the column of what could not be read."""
    return field.name == RESCUED and plan.reading.bad_records is BadRecords.PERMISSIVE


def _known(plan: ReadPlan, file: SourceFile) -> dict[str, Any]:
    """Columns that are known of a file without reading it: of its path, and where it comes from."""
    _, path = locate(plan.roots, file.path)
    of_path = dict(partition_values(parent(path)))
    values = {"_file": file.path, "_bucket": file.bucket or parent(path), "_version": file.version or None}
    found: dict[str, Any] = {}
    for field in plan.schema:
        if field.name in plan.reading.metadata:
            found[field.name] = pa.scalar(values[field.name], field.type)
        elif field.name in of_path:
            found[field.name] = _parsed(of_path[field.name], field, file)
    return found


def _parsed(text: str | None, field: pa.Field[Any], file: SourceFile) -> Any:
    try:
        return pa.scalar(text, pa.string()).cast(field.type)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaError(
            f"column {field.name!r} is {field.type}, and the directory of '{shown(file.path)}' has another "
            "kind of value: read it as a string",
            code="FILE_SCHEMA",
        ) from error
