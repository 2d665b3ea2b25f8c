"""The catalog of the Spark session as a metastore: whatever the session uses, Hive's above all.

Tables and partitions are changed with SQL, which every version of Spark has. Only a partition's
parameters have no SQL; they go through the session's catalog, a class private to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

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
    values_of,
)
from filesink.metastore.table_formats import HIVE_FORMATS, hive_format_of
from filesink.partition_paths import DEFAULT_PARTITION

T = TypeVar("T")
R = TypeVar("R")

_BATCH = 100  # partitions in one statement
_KINDS = {"EXTERNAL": TableKind.EXTERNAL, "MANAGED": TableKind.MANAGED}


class SparkCatalog(Metastore):
    """The catalog of a session. Its tables are what ``spark.table`` finds.

    Args:
        session: by default the active one.
    """

    def __init__(self, session: SparkSession | None = None) -> None:
        self._given = session

    def __repr__(self) -> str:
        return "SparkCatalog()"

    def get_table(self, name: TableName) -> Table | None:
        """See ``Metastore.get_table``."""
        found = _translated(lambda: self._find(name), f"read table {name}")
        return None if found is None else _table(name, found)

    def create_table(self, table: Table) -> None:
        """See ``Metastore.create_table``."""
        stored_as = hive_format_of(table.format)
        if stored_as is None:
            raise MetastoreConflictError(
                f"Spark has no name for the format of table {table.name}", code="METASTORE_REFUSED"
            )
        external = "EXTERNAL " if table.kind is TableKind.EXTERNAL else ""
        keys = f" PARTITIONED BY ({_columns(table.partition_keys)})" if table.partition_keys else ""
        as_format = (
            f"ROW FORMAT SERDE {_text(table.format.serde)}"
            if stored_as == "json"
            else f"STORED AS {stored_as}"
        )
        self._sql(
            f"CREATE {external}TABLE IF NOT EXISTS {_name(table.name)} ({_columns(table.columns)}){keys} "
            f"{as_format} LOCATION {_text(table.location)}{_properties(' TBLPROPERTIES', table.parameters)}",
            f"create table {table.name}",
        )

    def alter_table(self, name: TableName, change: TableChange) -> None:
        """See ``Metastore.alter_table``."""
        table = self._existing(name)
        known = {column.name.lower() for column in (*table.columns, *table.partition_keys)}
        added = [column for column in change.new_columns if column.name.lower() not in known]
        what, properties = f"change table {name}", _properties(" TBLPROPERTIES", change.parameters)
        if added:
            self._sql(f"ALTER TABLE {_name(name)} ADD COLUMNS ({_columns(added)})", what)
        if properties:
            self._sql(f"ALTER TABLE {_name(name)} SET{properties}", what)
        if change.location is not None:
            self._sql(f"ALTER TABLE {_name(name)} SET LOCATION {_text(change.location)}", what)

    def get_partitions(self, name: TableName, values: Sequence[Values]) -> list[Partition]:
        """See ``Metastore.get_partitions``."""
        if not values:
            return []
        table = self._existing(name)
        there = self._there(table)
        return [_partition(one, self._partition(table, one)) for one in dict.fromkeys(values) if one in there]

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.add_partitions``. Parameters are set after, partition by partition."""
        if not partitions:
            return
        table = self._existing(name)
        there = self._there(table)
        new = [one for one in partitions if one.values not in there]
        for start in range(0, len(new), _BATCH):
            pieces = [
                f"PARTITION ({_spec(table, one.values)}) LOCATION {_text(one.location)}"
                for one in new[start : start + _BATCH]
            ]
            self._sql(
                f"ALTER TABLE {_name(name)} ADD IF NOT EXISTS {' '.join(pieces)}", f"add partitions to {name}"
            )
        self._set_parameters(table, [one for one in new if one.parameters])

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """See ``Metastore.alter_partitions``."""
        if not partitions:
            return
        table = self._existing(name)
        found = {one.values: one for one in self.get_partitions(name, [one.values for one in partitions])}
        if len(found) < len({one.values for one in partitions}):
            raise no_partition(name)
        for one in partitions:
            if found[one.values].location != one.location:
                self._sql(
                    f"ALTER TABLE {_name(name)} PARTITION ({_spec(table, one.values)}) "
                    f"SET LOCATION {_text(one.location)}",
                    f"move a partition of {name}",
                )
        self._set_parameters(
            table,
            [one for one in partitions if not one.parameters.items() <= found[one.values].parameters.items()],
        )

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

    def _existing(self, name: TableName) -> Table:
        table = self.get_table(name)
        if table is None:
            raise no_table(name)
        return table

    def _there(self, table: Table) -> set[Values]:
        """The values of every partition, in the order of the keys."""
        rows = self._sql(f"SHOW PARTITIONS {_name(table.name)}", f"list partitions of {table.name}")
        found = (values_of(row[0]) for row in rows)
        return {tuple(values[key.name.lower()] for key in table.partition_keys) for values in found}

    def _partition(self, table: Table, values: Values) -> Any:
        keys = [key.name for key in table.partition_keys]
        spec = self._map(dict(zip(keys, values, strict=True)))
        identifier = self._identifier(table.name)
        return _translated(
            lambda: self._catalog.getPartition(identifier, spec), f"read a partition of {table.name}"
        )

    def _set_parameters(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Written back as they are but for the parameters."""
        jvm: Any = self._session._jvm  # noqa: SLF001
        changed = []
        for one in partitions:
            old = self._partition(table, one.values)
            parameters = self._map({**_entries(old.parameters()), **one.parameters})
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

    def _sql(self, statement: str, what: str) -> list[Any]:
        return list(_translated(lambda: self._session.sql(statement).collect(), what))


def _translated(call: Callable[[], R], what: str) -> R:
    """``call`` with Spark's errors as ours. Its texts stay in the cause: they hold values."""
    try:
        return call()
    except (PySparkException, Py4JJavaError) as error:
        kind = type(error).__name__
        if kind in {"AnalysisException", "ParseException"}:
            raise MetastoreConflictError(
                f"the catalog refused to {what} ({kind}, see the cause)", code="METASTORE_REFUSED"
            ) from error
        raise MetastoreError(
            f"the catalog could not {what} ({kind}, see the cause)", code="METASTORE_FAILED"
        ) from error


def _is_news(wanted: Partition, found: Partition) -> bool:
    return any(found.parameters.get(name) != value for name, value in wanted.parameters.items())


def _name(name: TableName) -> str:
    return f"`{name.database}`.`{name.table}`"


def _text(value: str) -> str:
    """A literal of Spark SQL, under its default settings."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _columns(columns: Sequence[Column]) -> str:
    names = (column.name.replace("`", "``") for column in columns)
    return ", ".join(f"`{name}` {column.type}" for name, column in zip(names, columns, strict=True))


def _properties(word: str, values: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{_text(name)}={_text(value)}" for name, value in sorted(values.items()))
    return f"{word} ({pairs})" if pairs else ""


def _spec(table: Table, values: Values) -> str:
    pairs = zip(table.partition_keys, values, strict=True)
    return ", ".join(
        f"`{key.name}`={'NULL' if value == DEFAULT_PARTITION else _text(value)}" for key, value in pairs
    )


def _option(option: Any) -> Any:
    return option.get() if option.isDefined() else None


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))


def _entries(mapping: Any) -> dict[str, str]:
    return {pair._1(): pair._2() for pair in _items(mapping.toSeq())}  # noqa: SLF001 - a tuple in Scala


def _partition(values: Values, found: Any) -> Partition:
    location = _option(found.storage().locationUri())
    return Partition(
        values=values,
        location="" if location is None else _path(location),
        parameters=_entries(found.parameters()),
    )


def _path(uri: Any) -> str:
    """As Hadoop's ``Path`` shows it, without percent encoding."""
    scheme, authority, path = uri.getScheme(), uri.getAuthority(), uri.getPath()
    return f"{scheme}:{f'//{authority}' if authority else ''}{path}" if scheme else str(path)


def _table(name: TableName, found: Any) -> Table:
    fields = StructType.fromJson(_json(found.schema().json())).fields
    columns = {field.name: Column(name=field.name, type=_type(field.dataType)) for field in fields}
    keys = list(_items(found.partitionColumnNames()))
    storage, provider = found.storage(), _option(found.provider())
    location = _option(storage.locationUri())
    of_spark = {"spark.sql.sources.provider": provider} if provider not in {None, "hive"} else {}
    return Table(
        name=name,
        columns=tuple(column for one, column in columns.items() if one not in keys),
        partition_keys=tuple(columns[key] for key in keys),
        location="" if location is None else _path(location),
        format=_format(storage, provider),
        kind=_KINDS.get(found.tableType().name(), TableKind.OTHER),
        parameters={**_entries(found.properties()), **of_spark},
    )


def _json(text: str) -> dict[str, Any]:
    import json

    values: dict[str, Any] = json.loads(text)
    return values


def _type(kind: Any) -> str:
    return str(kind.simpleString()).replace("timestamp_ntz", "timestamp")


def _format(storage: Any, provider: str | None) -> StorageFormat:
    if provider is not None and provider in HIVE_FORMATS:
        return HIVE_FORMATS[provider]
    return StorageFormat(
        input_format=_option(storage.inputFormat()) or "",
        output_format=_option(storage.outputFormat()) or "",
        serde=_option(storage.serde()) or "",
        serde_parameters=_entries(storage.properties()),
    )
