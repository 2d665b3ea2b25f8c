"""Tables and partitions of Spark's catalog, objects of Scala, as ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql.types import StructField, StructType

from filesink.metastore.api import (
    Column,
    Partition,
    StorageFormat,
    Table,
    TableKind,
    TableName,
    Values,
)
from filesink.metastore.tables.formats import HIVE_FORMATS

_LIMITED = "__CHAR_VARCHAR_TYPE_STRING"
_KINDS = {"EXTERNAL": TableKind.EXTERNAL, "MANAGED": TableKind.MANAGED}


def table_of(name: TableName, found: Any) -> Table:
    """A ``CatalogTable``."""
    fields = StructType.fromJson(json.loads(found.schema().json())).fields
    columns = {field.name: Column(name=field.name, type=_type(field)) for field in fields}
    keys = list(_items(found.partitionColumnNames()))
    storage, provider = found.storage(), _option(found.provider())
    buckets = _option(found.bucketSpec())
    location = _option(storage.locationUri())
    of_spark = {"spark.sql.sources.provider": provider} if provider not in {None, "hive"} else {}
    return Table(
        name=name,
        columns=tuple(column for one, column in columns.items() if one not in keys),
        partition_keys=tuple(columns[key] for key in keys),
        location="" if location is None else _path(location),
        format=_format(storage, provider),
        kind=_KINDS.get(found.tableType().name(), TableKind.OTHER),
        parameters={**entries(found.properties()), **of_spark},
        bucket_columns=() if buckets is None else tuple(_items(buckets.bucketColumnNames())),
    )


def partition_of(values: Values, found: Any) -> Partition:
    """A ``CatalogTablePartition``, whose values the caller knows."""
    location = _option(found.storage().locationUri())
    return Partition(
        values=values,
        location="" if location is None else _path(location),
        parameters=entries(found.parameters()),
    )


def entries(mapping: Any) -> dict[str, str]:
    """A map of texts."""
    return {pair._1(): pair._2() for pair in _items(mapping.toSeq())}  # noqa: SLF001 - a tuple in Scala


def _path(uri: Any) -> str:
    """As Hadoop's ``Path`` shows it, without percent encoding."""
    scheme, authority, path = uri.getScheme(), uri.getAuthority(), uri.getPath()
    return f"{scheme}:{f'//{authority}' if authority else ''}{path}" if scheme else str(path)


def _type(field: StructField) -> str:
    """The catalog has CHAR and VARCHAR beside the type, which calls them strings."""
    return str((field.metadata or {}).get(_LIMITED) or field.dataType.simpleString())


def _format(storage: Any, provider: str | None) -> StorageFormat:
    if provider is not None and provider in HIVE_FORMATS:
        return replace(HIVE_FORMATS[provider], serde_parameters=entries(storage.properties()))
    return StorageFormat(
        input_format=_option(storage.inputFormat()) or "",
        output_format=_option(storage.outputFormat()) or "",
        serde=_option(storage.serde()) or "",
        serde_parameters=entries(storage.properties()),
    )


def _option(option: Any) -> Any:
    return option.get() if option.isDefined() else None


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))
