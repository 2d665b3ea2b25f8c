"""The catalog of the Spark session as a metastore: whatever the session uses, Hive's above all.

Tables and partitions are changed with SQL, which every version of Spark has. Only a partition's
parameters and a column's type have none; they go through the session's catalog, a class private to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from filesink.arguments import instance_of
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
    values_of,
)
from filesink.metastore.service_errors import TO_DO, is_away, is_denied, is_refused, sentence
from filesink.metastore.tables.formats import hive_format_of
from filesink.spark.catalog import sql
from filesink.spark.catalog.values import entries, partition_of, table_of

R = TypeVar("R")

_BATCH = 100  # partitions in one statement
_OF_CLIENT = "_LEGACY_ERROR_TEMP_3065"  # an error of the session's client of Hive, whatever it is
_NO_SESSION = {"NO_ACTIVE_OR_DEFAULT_SESSION", "NO_ACTIVE_SESSION"}


class SparkCatalog(Metastore):
    """The catalog of a session. Its tables are what ``spark.table`` finds.

    Args:
        session: by default the one that is active at each call; ``recover()`` needs one, too.
    """

    def __init__(self, session: SparkSession | None = None) -> None:
        self._given = None if session is None else instance_of(session, SparkSession, name="session")

    def __repr__(self) -> str:
        return "SparkCatalog()"

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        found = _translated(lambda: self._find(name), f"read table {name}")
        return None if found is None else table_of(name, found)

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        stored_as = hive_format_of(table.format)
        if stored_as is None:
            raise MetastoreConflictError(
                f"Spark has no name for the format of table {table.name}", code="METASTORE_REFUSED"
            )
        self._sql(sql.create_table(table, stored_as), f"create table {table.name}")

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``."""
        added = change.missing_from(self.existing_table(name).column_names())
        what, properties = f"change table {name}", sql.properties(" TBLPROPERTIES", change.parameters)
        if added:
            self._sql(f"ALTER TABLE {sql.quoted(name)} ADD COLUMNS ({sql.columns(added)})", what)
        if change.new_types:
            _translated(lambda: self._set_types(name, change), what)
        if properties:
            self._sql(f"ALTER TABLE {sql.quoted(name)} SET{properties}", what)
        if change.location is not None:
            self._sql(f"ALTER TABLE {sql.quoted(name)} SET LOCATION {sql.text(change.location)}", what)

    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        if not values:
            return []
        there = self._there(table)
        return [
            partition_of(one, self._partition(table, one)) for one in dict.fromkeys(values) if one in there
        ]

    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """See ``Metastore.add_partitions``: Spark does not tell. Parameters are set after, one by one."""
        if not partitions:
            return set()
        there = self._there(table)
        new = [one for one in partitions if one.values not in there]
        for batch in batches(new, _BATCH):
            pieces = [
                f"PARTITION ({sql.spec(table, one.values)}) LOCATION {sql.text(one.location)}"
                for one in batch
            ]
            self._sql(
                f"ALTER TABLE {sql.quoted(table.name)} ADD IF NOT EXISTS {' '.join(pieces)}",
                f"add partitions to {table.name}",
            )
        self._set_parameters(table, [one for one in new if one.parameters])
        return set()

    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``."""
        found = {one.values: one for one in self.get_partitions(table, [one.values for one in partitions])}
        if any(one.values not in found for one in partitions):
            raise no_partition(table.name)
        for one in partitions:
            if found[one.values].location != one.location:
                self._sql(
                    f"ALTER TABLE {sql.quoted(table.name)} PARTITION ({sql.spec(table, one.values)}) "
                    f"SET LOCATION {sql.text(one.location)}",
                    f"move a partition of {table.name}",
                )
        self._set_parameters(
            table,
            [one for one in partitions if not one.parameters.items() <= found[one.values].parameters.items()],
        )

    def drop_partitions(self, table: Table, values: Sequence[Values]) -> None:
        """See ``Metastore.drop_partitions``. Not in SQL, which removes the files of a managed table."""
        if not values:
            return
        check_keys(table, [key.name for key in self.existing_table(table.name).partition_keys])
        jvm: Any = self._session._jvm  # noqa: SLF001
        specs = jvm.PythonUtils.toSeq([self._spec(table, one) for one in values])
        identifier, if_exists, purge, keep_files = self._identifier(table.name), True, False, True
        _translated(
            lambda: self._catalog.dropPartitions(identifier, specs, if_exists, purge, keep_files),
            f"drop partitions of {table.name}",
        )
        self._sql(f"REFRESH TABLE {sql.quoted(table.name)}", f"refresh table {table.name}")

    @property
    def _session(self) -> SparkSession:
        return self._given or SparkSession.active()

    @property
    def _catalog(self) -> Any:
        return self._session._jsparkSession.sessionState().catalog()  # noqa: SLF001 - see the head of this file

    def _identifier(self, name: TableName) -> Any:
        jvm: Any = self._session._jvm  # noqa: SLF001
        database = jvm.scala.Option.apply(name.database)
        return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name.table, database)

    def _map(self, values: Mapping[str, str]) -> Any:
        jvm: Any = self._session._jvm  # noqa: SLF001
        return jvm.PythonUtils.toScalaMap(dict(values))

    def _find(self, name: TableName) -> Any:
        identifier = self._identifier(name)
        if not self._catalog.tableExists(identifier):
            return None
        return self._catalog.getTableMetadata(identifier)

    def _there(self, table: Table) -> set[Values]:
        """The values of every partition, in the order of the keys; the table is as the caller knows it."""
        check_keys(table, [key.name for key in self.existing_table(table.name).partition_keys])
        rows = self._sql(f"SHOW PARTITIONS {sql.quoted(table.name)}", f"list partitions of {table.name}")
        found = (values_of(row[0]) for row in rows)
        return {tuple(values[key.name.lower()] for key in table.partition_keys) for values in found}

    def _partition(self, table: Table, values: Values) -> Any:
        spec, identifier = self._spec(table, values), self._identifier(table.name)
        return _translated(
            lambda: self._catalog.getPartition(identifier, spec), f"read a partition of {table.name}"
        )

    def _spec(self, table: Table, values: Values) -> Any:
        return self._map(dict(zip((key.name for key in table.partition_keys), values, strict=True)))

    def _set_parameters(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Written back as they are but for the parameters."""
        jvm: Any = self._session._jvm  # noqa: SLF001
        changed = []
        for one in partitions:
            old = self._partition(table, one.values)
            parameters = self._map({**entries(old.parameters()), **one.parameters})
            changed.append(
                old.copy(
                    old.spec(), old.storage(), parameters, old.createTime(), old.lastAccessTime(), old.stats()
                )
            )
        if changed:
            identifier, sequence = self._identifier(table.name), jvm.PythonUtils.toSeq(changed)
            _translated(
                lambda: self._catalog.alterPartitions(identifier, sequence),
                f"change partitions of {table.name}",
            )

    def _set_types(self, name: TableName, change: TableChange) -> None:
        """The columns as they are, but for their types."""
        jvm: Any = self._session._jvm  # noqa: SLF001
        kinds, identifier = jvm.org.apache.spark.sql.types.DataType, self._identifier(name)
        found = json.loads(self._catalog.getTableMetadata(identifier).dataSchema().json())
        for column in found["fields"]:
            if wanted := change.new_types.get(column["name"].lower()):
                column["type"] = json.loads(kinds.fromDDL(wanted).json())
        self._catalog.alterTableDataSchema(identifier, kinds.fromJson(json.dumps(found)))

    def _sql(self, statement: str, what: str) -> list[Any]:
        return list(_translated(lambda: self._session.sql(statement).collect(), what))


def _translated(call: Callable[[], R], what: str) -> R:
    """``call`` with Spark's errors as ours, and its own words in the message."""
    try:
        return call()
    except (PySparkException, Py4JError) as error:
        kind, text = type(error).__name__, _text(error)
        if isinstance(error, PySparkException) and error.getCondition() in _NO_SESSION:
            raise MetastoreConflictError(
                f"there is no Spark session to {what}: start one, or pass it, as in SparkCatalog(spark)",
                code="NO_SESSION",
            ) from error
        if _is_final(error, text):
            raise MetastoreConflictError(
                f"the catalog refused to {what} ({kind}): {sentence(text)}. {TO_DO}",
                code="METASTORE_REFUSED",
            ) from error
        raise MetastoreError(
            f"the catalog could not {what} ({kind}): {sentence(text)}", code="METASTORE_FAILED"
        ) from error


def _text(error: PySparkException | Py4JError) -> str:
    """What Java's first cause says, if Java failed."""
    if not isinstance(error, Py4JJavaError):
        return str(error)
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())


def _is_final(error: PySparkException | Py4JError, text: str) -> bool:
    """Whether trying again cannot help. Spark calls it analysis, too, when its metastore is away."""
    if is_denied(text) or is_refused(text):
        return True
    if not isinstance(error, AnalysisException):  # ParseException is one
        return False
    return error.getCondition() != _OF_CLIENT and not is_away(text)
