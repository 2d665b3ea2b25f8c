"""Tables and partitions as Glue's requests and answers have them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from filesink.metastore.api import Column, Partition, StorageFormat, Table, TableKind, TableName


def partition_input(storage: Mapping[str, Any], one: Partition) -> dict[str, Any]:
    """A partition with the storage of ``storage``, but for its location."""
    return {
        "Values": list(one.values),
        "StorageDescriptor": {**storage, "Location": one.location},
        "Parameters": dict(one.parameters),
    }


def entry(old: Mapping[str, Any], wanted: Partition, table: Table) -> dict[str, Any]:
    """A partition that is there, with new location and parameters; other parameters stay.

    It gets the columns that were added to ``table`` since: Glue does not hand them on, and Athena reads a
    partition by its own. Where its columns differ in another way, somebody wanted that, and they stay.
    """
    kept = replace(wanted, parameters={**old.get("Parameters", {}), **wanted.parameters})
    storage = old["StorageDescriptor"]
    known = storage.get("Columns", [])
    if known and _found_columns(known) == _lower(table.columns[: len(known)]):
        storage = {**storage, "Columns": [*known, *columns(table.columns[len(known) :])]}
    return {"PartitionValueList": list(wanted.values), "PartitionInput": partition_input(storage, kept)}


def columns(columns: Iterable[Column]) -> list[dict[str, str]]:
    """Names, in lower case, and types."""
    return [{"Name": column.name.lower(), "Type": column.type} for column in columns]


def table_input(table: Table) -> dict[str, Any]:
    """A table to be created."""
    form = table.format
    external = {"EXTERNAL": "TRUE"} if table.kind is TableKind.EXTERNAL else {}
    return {
        "Name": table.name.table,
        "TableType": table.kind.value,
        "Parameters": {**external, **table.parameters},
        "PartitionKeys": columns(table.partition_keys),
        "StorageDescriptor": {
            "Columns": columns(table.columns),
            "Location": table.location,
            "InputFormat": form.input_format,
            "OutputFormat": form.output_format,
            "SerdeInfo": {"SerializationLibrary": form.serde, "Parameters": dict(form.serde_parameters)},
        },
    }


def table_of(name: TableName, found: dict[str, Any]) -> Table:
    """A table as Glue answers with it."""
    storage = found.get("StorageDescriptor", {})
    serde = storage.get("SerdeInfo", {})
    return Table(
        name=name,
        columns=_found_columns(storage.get("Columns", ())),
        partition_keys=_found_columns(found.get("PartitionKeys", ())),
        location=storage.get("Location", ""),
        format=StorageFormat(
            input_format=storage.get("InputFormat", ""),
            output_format=storage.get("OutputFormat", ""),
            serde=serde.get("SerializationLibrary", ""),
            serde_parameters=dict(serde.get("Parameters", {})),
        ),
        kind=TableKind.of(found.get("TableType")),
        parameters=dict(found.get("Parameters", {})),
        bucket_columns=tuple(storage.get("BucketColumns", ())),
    )


def _lower(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(replace(column, name=column.name.lower()) for column in columns)


def _found_columns(columns: Iterable[dict[str, Any]]) -> tuple[Column, ...]:
    return tuple(Column(name=column["Name"], type=column.get("Type", "")) for column in columns)
