"""What anybody finds in the directory, or the bucket, who knows nothing of filesink."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import flights


def rows_in_directory(base: Path) -> pa.Table:
    """The rows of all files that do not begin with a dot or an underscore, nor lie in such a directory."""
    files = [file for file in sorted(base.rglob("*.parquet")) if _is_visible(file.relative_to(base))]
    return _rows(iter(files))


def rows_in_bucket(client: Any, bucket: str, prefix: str) -> pa.Table:
    """The same of a bucket."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    return _rows(
        io.BytesIO(client.get_object(Bucket=bucket, Key=key)["Body"].read())
        for key in sorted(keys)
        if key.endswith(".parquet") and _is_visible(Path(key).relative_to(prefix))
    )


def differences(found: pa.Table, source: pa.Table) -> tuple[int, int]:
    """Rows that are found once too often, and rows of the source that are missing."""
    names = ", ".join(flights.TYPES)
    with duckdb.connect() as connection:
        connection.register("found", found)
        connection.register("source", source)
        connection.execute("SET TimeZone = 'UTC'")
        sides = [("found", "source"), ("source", "found")]
        counted = [
            connection.sql(
                f"SELECT count(*) FROM (SELECT {names} FROM {one} EXCEPT ALL SELECT {names} FROM {other})"  # noqa: S608
            ).fetchall()[0][0]
            for one, other in sides
        ]
    return counted[0], counted[1]


def _rows(files: Iterator[Any]) -> pa.Table:
    schema = pa.schema(list(flights.TYPES.items()))
    tables = [pq.ParquetFile(file).read(columns=schema.names).select(schema.names) for file in files]
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])


def _is_visible(path: Path) -> bool:
    return not any(part[0] in "._" for part in path.parts)
