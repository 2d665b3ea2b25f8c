"""A Hive metastore, spoken to in Thrift from the driver; needs neither Spark nor Java.

The stubs are those of ``pymetastore``, generated from Hive's own IDL. Only calls are used that Hive
2.3 has and later ones kept; where a newer one took the place of an older one, both are known.

Changing a partition means reading it and writing it back, as in every client of this service: who
changes the same partition in the same moment may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from filesink.arguments import instance_of
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import MetastoreConflictError, MetastoreError
from filesink.metastore.api import (
    Metastore,
    Partition,
    Table,
    TableChange,
    TableName,
    Values,
    batches,
    check_keys,
    no_partition,
    no_table,
    partition_name,
)
from filesink.metastore.hive.connection import HiveConnections, Kerberos, load_service
from filesink.metastore.hive.servers import Servers, parse_uris
from filesink.metastore.hive.structs import (
    changed,
    fields,
    partition_of,
    table_of,
    thrift_partition,
    thrift_table,
)
from filesink.metastore.service_errors import TO_DO, is_denied, is_refused, sentence
from filesink.ports import Clock
from filesink.system import SystemClock, ThreadRunner

R = TypeVar("R")

_BATCH = 500  # partitions in one request; a server does some milliseconds of work for each
_CONNECTIONS = 4  # at once, for an epoch of more than one batch; a server has a thread for each


class HiveMetastore(Metastore):
    """A metastore of Hive 2.3 or newer.

    Args:
        uris: ``"thrift://host:9083"``, several with commas between; others are tried if one fails.
        security: ``Kerberos()``, or ``None`` for a metastore without authentication.
        timeout: how long to wait for a connection and for each answer; ``int`` is milliseconds.
        clock: waits between attempts to connect.

    Raises:
        ConfigError: ``METASTORE_URI``, ``BAD_VALUE``.
        DependencyError: the extra ``hive`` is not installed.
    """

    runner = ThreadRunner(_CONNECTIONS)

    def __init__(
        self,
        uris: str,
        *,
        security: Kerberos | None = None,
        timeout: Duration = "60 s",
        clock: Clock | None = None,
    ) -> None:
        self._servers = parse_uris(instance_of(uris, str, name="uris"))
        if security is not None:
            instance_of(security, Kerberos, name="security")
        load_service()
        self._connections = HiveConnections(
            Servers(self._servers),
            security=security,
            timeout_ms=parse_duration_ms(timeout, name="timeout"),
            clock=clock or SystemClock(),
        )

    def __repr__(self) -> str:
        return f"HiveMetastore({', '.join(map(str, self._servers))})"

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        found = self._find(name)
        return None if found is None else table_of(name, found)

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        from pymetastore.hive_metastore.ttypes import AlreadyExistsException

        def create(client: Any) -> None:
            try:
                client.create_table(thrift_table(table))
            except AlreadyExistsException:
                return  # the contract: the one that exists is left alone

        self._tell(create, f"create table {table.name}")

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``; columns are added to the partitions as well."""
        found = self._existing(name)
        added = change.missing_from(column.name for column in (*found.sd.cols, *(found.partitionKeys or ())))
        for column in found.sd.cols:
            column.type = change.type_of(column.name, column.type)
        found.sd.cols = [*found.sd.cols, *fields(added)]
        found.parameters = {**(found.parameters or {}), **change.parameters}
        if change.location is not None:
            found.sd.location = change.location
        self._tell(
            lambda client: client.alter_table_with_cascade(name.database, name.table, found, bool(added)),
            f"change table {name}",
        )

    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        return [partition_of(found) for found in self._partitions(table, values)]

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """See ``Metastore.add_partitions``."""
        if not partitions:
            return set()
        found = self._same(table)
        new: set[Values] = set()
        for batch in batches(partitions, _BATCH):
            added = self._tell(_add(found, batch), f"add partitions to {table.name}")
            new.update(tuple(one.values) for one in added)
        return new

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``; what is as it should be is not written."""
        name = table.name
        for batch in batches(partitions, _BATCH):
            found = {tuple(one.values): one for one in self._partitions(table, [one.values for one in batch])}
            if any(wanted.values not in found for wanted in batch):
                self._same(table)
                raise no_partition(name)
            news = [one for wanted in batch if (one := changed(found[wanted.values], wanted)) is not None]
            if news:
                self._tell(_alter(name, news), f"change partitions of {name}")

    def drop_partitions(self, table: Table, values: Sequence[Values]) -> None:
        """See ``Metastore.drop_partitions``."""
        if not values:
            return
        self._same(table)
        for batch in batches(values, _BATCH):
            names = [partition_name(table, one) for one in batch]
            self._tell(_drop(table.name, names), f"drop partitions of {table.name}")

    def close(self) -> None:
        """See ``Metastore.close``."""
        self._connections.close()

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

    def _same(self, table: Table) -> Any:
        """The table as it is now, which has still the keys that the caller knows."""
        found = self._existing(table.name)
        check_keys(table, [key.name for key in found.partitionKeys or ()])
        return found

    def _partitions(self, table: Table, values: Sequence[Values]) -> Iterator[Any]:
        name = table.name
        for batch in batches(values, _BATCH):
            yield from self._ask(
                _named(name, [partition_name(table, one) for one in batch]), f"read partitions of {name}"
            )

    def _ask(self, question: Callable[[Any], R], what: str) -> R:
        return _translated(lambda: self._connections.ask(question), what)

    def _tell(self, order: Callable[[Any], R], what: str) -> R:
        return _translated(lambda: self._connections.tell(order), what)


def _translated(call: Callable[[], R], what: str) -> R:
    """``call`` with the service's own errors as ours, and its own words in the message."""
    from thrift.Thrift import TApplicationException, TException

    try:
        return call()
    except TException as error:
        kind, text = type(error).__name__, str(getattr(error, "message", None) or error)
        unknown = isinstance(error, TApplicationException) and error.type == error.UNKNOWN_METHOD
        if unknown or is_refused(kind) or is_denied(text):
            raise MetastoreConflictError(
                f"the metastore refused to {what} ({kind}): {sentence(text)}. {TO_DO}",
                code="METASTORE_REFUSED",
            ) from error
        raise MetastoreError(
            f"the metastore could not {what} ({kind}): {sentence(text)}", code="METASTORE_FAILED"
        ) from error


def _get_table_as_before(client: Any, name: TableName) -> Any:
    from pymetastore.hive_metastore.ttypes import NoSuchObjectException

    try:
        return client.get_table(name.database, name.table)
    except NoSuchObjectException:
        return None


def _named(name: TableName, names: list[str]) -> Callable[[Any], list[Any]]:
    from pymetastore.hive_metastore.ttypes import NoSuchObjectException

    def question(client: Any) -> list[Any]:
        try:
            return list(client.get_partitions_by_names(name.database, name.table, names))
        except NoSuchObjectException:  # no such table, for some versions; for others, no partitions
            return []

    return question


def _add(table: Any, partitions: Sequence[Partition]) -> Callable[[Any], list[Any]]:
    """Adds those that are not there, and answers with them."""
    from pymetastore.hive_metastore.ttypes import AddPartitionsRequest

    request = AddPartitionsRequest(
        dbName=table.dbName,
        tblName=table.tableName,
        parts=[thrift_partition(table, partition) for partition in partitions],
        ifNotExists=True,
        needResult=True,
    )
    return lambda client: client.add_partitions_req(request).partitions or []


def _drop(name: TableName, names: list[str]) -> Callable[[Any], Any]:
    """Drops those that are there, and no files."""
    from pymetastore.hive_metastore.ttypes import DropPartitionsRequest, RequestPartsSpec

    request = DropPartitionsRequest(
        dbName=name.database,
        tblName=name.table,
        parts=RequestPartsSpec(names=names),
        deleteData=False,
        ifExists=True,
        needResult=False,
    )
    return lambda client: client.drop_partitions_req(request)


def _alter(name: TableName, changed: list[Any]) -> Callable[[Any], Any]:
    return lambda client: client.alter_partitions(name.database, name.table, changed)
