"""Lines of a commit of Delta. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from filesink.buckets.partition_paths import partition_values
from filesink.errors import DependencyError
from filesink.exports.listed import Step
from filesink.naming import name_of, parent

#: What Delta's own writers do not encode.
_PLAIN: Final = "/=:@!$&'()*+,;-._~"
#: VACUUM looks for files that no log names: those that wait for an export, too. So it waits for a century.
PROPERTIES: Final = {
    "delta.deletedFileRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
}


def line(**action: Any) -> str:
    """One action."""
    return json.dumps(action, ensure_ascii=False, separators=(",", ":"))


def encoded(path: str) -> str:
    """A path as ``add`` and ``remove`` have it: percent encoded."""
    return quote(path, safe=_PLAIN)


def protocol(schema: pa.Schema) -> dict[str, Any]:
    """The lowest that the columns allow."""
    if any(_has_no_zone(field.type) for field in schema):
        features = ["timestampNtz"]
        return {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
    return {"minReaderVersion": 1, "minWriterVersion": 2}


def _has_no_zone(kind: Any) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    fields = [kind.field(place) for place in range(kind.num_fields)]
    return any(_has_no_zone(field.type) for field in fields)


def schema_string(schema: pa.Schema) -> str:
    """Columns as ``metaData`` has them.

    Raises:
        DependencyError: ``deltalake`` is not installed.
        Exception: Delta has no such type.
    """
    try:
        from deltalake import Schema
    except ImportError as error:
        raise DependencyError(
            "DeltaExport needs a package: pip install 'filesink[delta]'", code="DEPENDENCY"
        ) from error
    return Schema.from_arrow(schema).to_json()


def metadata(schema: str, partitions: Iterable[str], *, table_id: str, now_ms: int) -> dict[str, Any]:
    """The action ``metaData``."""
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partitions),
        "configuration": PROPERTIES,
        "createdTime": now_ms,
    }


def file_lines(step: Step, *, now_ms: int) -> Iterator[str]:
    """An ``add`` or ``remove`` of each file."""
    for path, version in step.removed.items():
        is_change = version not in step.rewrites
        yield line(remove={"path": encoded(path), "deletionTimestamp": now_ms, "dataChange": is_change})
    columns = ("path", "size", "rows", "added")
    values = (step.added.to_arrow()[name].to_pylist() for name in columns)
    directories: dict[str, tuple[str, dict[str, str | None]]] = {}
    for path, size, rows, added in zip(*values, strict=True):
        bucket = parent(path)
        if bucket not in directories:
            directories[bucket] = _directory(bucket)
        prefix, partition = directories[bucket]
        action = {
            "path": prefix + encoded(name_of(path)),
            "partitionValues": partition,
            "size": size,
            "modificationTime": now_ms,
            "dataChange": added not in step.rewrites,
        }
        if rows is not None:
            action["stats"] = f'{{"numRecords":{rows}}}'
        yield line(add=action)


def _directory(bucket: str) -> tuple[str, dict[str, str | None]]:
    return encoded(f"{bucket}/") if bucket else "", dict(partition_values(bucket))


def touches_data(action: Mapping[str, Any]) -> bool:
    """Whether the table is another one after this action of somebody else's."""
    return bool(action.keys() & {"add", "remove", "metaData", "protocol", "cdc", "domainMetadata"})
