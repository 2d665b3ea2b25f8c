"""A Hive metastore, spoken to in Thrift from the driver; needs neither Spark nor Java.

The stubs are those of ``pymetastore``, generated from Hive's own IDL. Only calls are used that Hive
2.3 has and later ones kept; where a newer one took the place of an older one, both are known.

Changing a partition means reading it and writing it back, as in every client of this service: who
changes the same partition in the same moment may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from filesink.durations import Duration, parse_duration_ms
from filesink.errors import MetastoreConflictError, MetastoreError
from filesink.metastore.api import (
    Column,
    Metastore,
    Partition,
    StorageFormat,
    Table,
    TableChange,
    TableKind,
    TableName,
    Values,
    no_partition,
    no_table,
    partition_name,
)
from filesink.metastore.hive_connection import HiveConnection, Kerberos, load_service, parse_uris
from filesink.ports import Clock
from filesink.system import SystemClock

T = TypeVar("T")
R = TypeVar("R")

_BATCH = 500  # partitions in one request; a server does some milliseconds of work for each


class HiveMetastore(Metastore):
    """A metastore of Hive 2.3 or newer.

    Args:
        uris: ``"thrift://host:9083"``, several with commas between; others are tried if one fails.
        security: ``Kerberos()``, or ``None`` for a metastore without authentication.
        timeout: how long to wait for a connection and for each answer.
        clock: waits between attempts to connect.

    Raises:
        ConfigError: ``METASTORE_URI``, ``BAD_VALUE``.
        DependencyError: the extra ``hive`` is not installed.
    """

    def __init__(
        self,
        uris: str,
        *,
        security: Kerberos | None = None,
        timeout: Duration = "60 s",
        clock: Clock | None = None,
    ) -> None:
        self._servers = parse_uris(uris)
        load_service()
        self._connection = HiveConnection(
            self._servers,
            security=security,
            timeout_ms=parse_duration_ms(timeout, name="timeout"),
            clock=clock or SystemClock(),
        )

    def __repr__(self) -> str:
        return f"HiveMetastore({', '.join(map(str, self._servers))})"

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        found = self._find(name)
        return None if found is None else _table(name, found)

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        from pymetastore.hive_metastore.ttypes import AlreadyExistsException

        def create(client: Any) -> None:
            try:
                client.create_table(_thrift_table(table))
            except AlreadyExistsException:
                return  # the contract: the one that exists is left alone

        self._tell(create, f"create table {table.name}")

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``; columns are added to the partitions as well."""
        found = self._existing(name)
        known = {column.name.lower() for column in (*found.sd.cols, *(found.partitionKeys or ()))}
        added = [column for column in change.new_columns if column.name.lower() not in known]
        found.sd.cols = [*found.sd.cols, *_fields(added)]
        found.parameters = {**(found.parameters or {}), **change.parameters}
        if change.location is not None:
            found.sd.location = change.location
        self._tell(
            lambda client: client.alter_table_with_cascade(name.database, name.table, found, bool(added)),
            f"change table {name}",
        )

    def get_partitions(self, name: TableName, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        if not values:
            return []
        table = _table(name, self._existing(name))
        return [
            Partition(
                values=tuple(found.values),
                location=found.sd.location,
                parameters=dict(found.parameters or {}),
            )
            for found in self._partitions(table, values)
        ]

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.add_partitions``."""
        from pymetastore.hive_metastore.ttypes import AddPartitionsRequest

        if not partitions:
            return
        table = self._existing(name)
        for batch in _batches(partitions):
            request = AddPartitionsRequest(
                dbName=name.database,
                tblName=name.table,
                parts=[_thrift_partition(table, partition) for partition in batch],
                ifNotExists=True,
                needResult=False,
            )
            self._tell(_add(request), f"add partitions to {name}")

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``; what is as it should be is not written."""
        if not partitions:
            return
        table = _table(name, self._existing(name))
        for batch in _batches(partitions):
            found = {tuple(one.values): one for one in self._partitions(table, [one.values for one in batch])}
            changed = [one for wanted in batch if (one := _changed(name, found, wanted)) is not None]
            if changed:
                self._tell(_alter(name, changed), f"change partitions of {name}")

    def close(self) -> None:
        """See ``Metastore.close``."""
        self._connection.close()

    def _find(self, name: TableName) -> Any:
        from pymetastore.hive_metastore.ttypes import GetTableRequest, NoSuchObjectException
        from thrift.Thrift import TApplicationException

        def question(client: Any) -> Any:
            request = GetTableRequest(dbName=name.database, tblName=name.table)
            try:
                return client.get_table_req(request).table
            except NoSuchObjectException:
                return None
            except TApplicationException as error:
                if error.type != TApplicationException.UNKNOWN_METHOD:
                    raise
                return _get_table_as_before(client, name)

        return self._ask(question, f"read table {name}")

    def _existing(self, name: TableName) -> Any:
        found = self._find(name)
        if found is None:
            raise no_table(name)
        return found

    def _partitions(self, table: Table, values: Sequence[Values]) -> Iterator[Any]:
        name = table.name
        for batch in _batches(values):
            yield from self._ask(
                _named(name, [partition_name(table, one) for one in batch]), f"read partitions of {name}"
            )

    def _ask(self, question: Callable[[Any], R], what: str) -> R:
        return _translated(lambda: self._connection.ask(question), what)

    def _tell(self, order: Callable[[Any], R], what: str) -> R:
        return _translated(lambda: self._connection.tell(order), what)


def _translated(call: Callable[[], R], what: str) -> R:
    """``call`` with the service's own errors as ours. Its texts stay in the cause: they hold values."""
    from thrift.Thrift import TException

    try:
        return call()
    except TException as error:
        kind = type(error).__name__
        if kind in {"NoSuchObjectException", "InvalidObjectException", "InvalidOperationException"}:
            raise MetastoreConflictError(
                f"the metastore refused to {what} ({kind}, see the cause)", code="METASTORE_REFUSED"
            ) from error
        raise MetastoreError(
            f"the metastore could not {what} ({kind}, see the cause)", code="METASTORE_FAILED"
        ) from error


def _get_table_as_before(client: Any, name: TableName) -> Any:
    from pymetastore.hive_metastore.ttypes import NoSuchObjectException

    try:
        return client.get_table(name.database, name.table)
    except NoSuchObjectException:
        return None


def _named(name: TableName, names: list[str]) -> Callable[[Any], list[Any]]:
    return lambda client: list(client.get_partitions_by_names(name.database, name.table, names))


def _add(request: Any) -> Callable[[Any], Any]:
    return lambda client: client.add_partitions_req(request)


def _alter(name: TableName, changed: list[Any]) -> Callable[[Any], Any]:
    return lambda client: client.alter_partitions(name.database, name.table, changed)


def _changed(name: TableName, found: dict[Values, Any], wanted: Partition) -> Any:
    """The service's partition as it should be; ``None`` if it is."""
    one = found.get(wanted.values)
    if one is None:
        raise no_partition(name)
    parameters = {**(one.parameters or {}), **wanted.parameters}
    if one.sd.location == wanted.location and parameters == one.parameters:
        return None
    one.sd.location, one.parameters = wanted.location, parameters
    return one


def _batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[start : start + _BATCH] for start in range(0, len(values), _BATCH))


def _table(name: TableName, found: Any) -> Table:
    serde = found.sd.serdeInfo
    kinds = {kind.value: kind for kind in TableKind}
    return Table(
        name=name,
        columns=tuple(Column(name=column.name, type=column.type) for column in found.sd.cols),
        partition_keys=tuple(
            Column(name=column.name, type=column.type) for column in found.partitionKeys or ()
        ),
        location=found.sd.location or "",
        format=StorageFormat(
            input_format=found.sd.inputFormat or "",
            output_format=found.sd.outputFormat or "",
            serde=serde.serializationLib or "",
            serde_parameters=dict(serde.parameters or {}),
        ),
        kind=kinds.get(found.tableType, TableKind.OTHER),
        parameters=dict(found.parameters or {}),
    )


def _fields(columns: Sequence[Column]) -> list[Any]:
    from pymetastore.hive_metastore.ttypes import FieldSchema

    return [FieldSchema(name=column.name.lower(), type=column.type, comment="") for column in columns]


def _thrift_table(table: Table) -> Any:
    from pymetastore.hive_metastore import ttypes

    external = {"EXTERNAL": "TRUE"} if table.kind is TableKind.EXTERNAL else {}
    form = table.format
    return ttypes.Table(
        dbName=table.name.database,
        tableName=table.name.table,
        sd=ttypes.StorageDescriptor(
            cols=_fields(table.columns),
            location=table.location,
            inputFormat=form.input_format,
            outputFormat=form.output_format,
            serdeInfo=ttypes.SerDeInfo(serializationLib=form.serde, parameters=dict(form.serde_parameters)),
        ),
        partitionKeys=_fields(table.partition_keys),
        tableType=table.kind.value,
        parameters={**external, **table.parameters},
    )


def _thrift_partition(table: Any, partition: Partition) -> Any:
    from copy import copy

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
