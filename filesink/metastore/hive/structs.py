"""Structures of Hive's Thrift service and ours, turned into each other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from filesink.metastore.api import Column, Partition, StorageFormat, Table, TableKind, TableName


def table_of(name: TableName, found: Any) -> Table:
    """The service's table as ours."""
    serde = found.sd.serdeInfo
    return Table(
        name=name,
        columns=_columns(found.sd.cols),
        partition_keys=_columns(found.partitionKeys or ()),
        location=found.sd.location or "",
        format=StorageFormat(
            input_format=found.sd.inputFormat or "",
            output_format=found.sd.outputFormat or "",
            serde=serde.serializationLib or "",
            serde_parameters=dict(serde.parameters or {}),
        ),
        kind=TableKind.of(found.tableType),
        parameters=dict(found.parameters or {}),
        bucket_columns=tuple(found.sd.bucketCols or ()),
    )


def partition_of(found: Any) -> Partition:
    """The service's partition as ours."""
    return Partition(
        values=tuple(found.values), location=found.sd.location, parameters=dict(found.parameters or {})
    )


def changed(found: Any, wanted: Partition) -> Any:
    """The service's partition as it should be; ``None`` if it is."""
    parameters = {**(found.parameters or {}), **wanted.parameters}
    if found.sd.location == wanted.location and parameters == found.parameters:
        return None
    found.sd.location, found.parameters = wanted.location, parameters
    return found


def fields(columns: Sequence[Column]) -> list[Any]:
    """Our columns as the service's."""
    from pymetastore.hive_metastore.ttypes import FieldSchema

    return [FieldSchema(name=column.name.lower(), type=column.type, comment="") for column in columns]


def thrift_table(table: Table) -> Any:
    """Our table as the service's."""
    from pymetastore.hive_metastore import ttypes

    external = {"EXTERNAL": "TRUE"} if table.kind is TableKind.EXTERNAL else {}
    form = table.format
    return ttypes.Table(
        dbName=table.name.database,
        tableName=table.name.table,
        sd=ttypes.StorageDescriptor(
            cols=fields(table.columns),
            location=table.location,
            inputFormat=form.input_format,
            outputFormat=form.output_format,
            serdeInfo=ttypes.SerDeInfo(serializationLib=form.serde, parameters=dict(form.serde_parameters)),
        ),
        partitionKeys=fields(table.partition_keys),
        tableType=table.kind.value,
        parameters={**external, **table.parameters},
    )


def thrift_partition(table: Any, partition: Partition) -> Any:
    """Our partition as the service's, with all that its ``table`` says of columns and format."""
    from pymetastore.hive_metastore.ttypes import Partition as ThriftPartition

    storage = copy(table.sd)
    storage.location = partition.location
    return ThriftPartition(
        dbName=table.dbName,
        tableName=table.tableName,
        values=list(partition.values),
        sd=storage,
        parameters=dict(partition.parameters),
    )


def _columns(found: Sequence[Any]) -> tuple[Column, ...]:
    return tuple(Column(name=column.name, type=column.type) for column in found)
