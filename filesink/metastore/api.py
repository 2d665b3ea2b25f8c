"""The contract between filesink and a metastore: a place that knows where the partitions of a table are.

What every metastore promises:

* A call that returns has taken effect. One that raises ``MetastoreError`` has taken effect, has not, or
  still will: the caller looks (``get_partitions``) and continues from what it finds.
* ``MetastoreConflictError`` is raised only if trying again cannot help.
* What a call does not name stays as it is: other partitions, other parameters, all other fields.
* ``add_partitions`` never replaces a partition: one that somebody else has added first is left alone.
* Callers read the table once and pass it to calls on its partitions, so that it is not read for each of
  them. A metastore that notices a change since then says so: ``MetastoreConflictError`` if the table is
  gone, ``MetastoreError`` (``TABLE_CHANGED``) if it has other keys, or (``PARTITION_MISSING``) if a
  partition is gone. Then the caller looks again.

Names of tables and columns are compared regardless of case, as Hive and Spark do. Values of
partition columns are their text, unescaped; the default partition's is ``DEFAULT_PARTITION``.
A metastore is configuration until its first call. It is used on the driver only, where several sinks
may share one and call it from their threads. After its connection was closed or has failed, the next call
opens a new one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from filesink.arguments import instance_of
from filesink.buckets.partition_paths import DEFAULT_PARTITION, fragment, partition_values
from filesink.errors import ConfigError, MetastoreConflictError, MetastoreError
from filesink.ports import SerialRunner, TaskRunner

_NAME = re.compile(r"[A-Za-z0-9_]{1,128}")

Values = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A database and a table in it; lower case, as metastores keep them."""

    database: str
    table: str

    def __post_init__(self) -> None:
        for name in (self.database, self.table):
            if not _NAME.fullmatch(instance_of(name, str, name="the name of a database or table")):
                raise ConfigError(
                    f"{repr(name)[:80]} cannot name a database or table: letters, digits and '_' only",
                    code="TABLE_NAME",
                )
        object.__setattr__(self, "database", self.database.lower())
        object.__setattr__(self, "table", self.table.lower())

    @staticmethod
    def parse(text: str) -> TableName:
        """``"db.table"``; a name without a database is refused, since defaults differ by client."""
        database, dot, table = instance_of(text, str, name="table").partition(".")
        if not dot:
            raise ConfigError(f"table {text[:80]!r} must be given as 'database.table'", code="TABLE_NAME")
        return TableName(database=database, table=table)

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. ``type`` is Hive's text of it, such as ``decimal(10,2)``, or Spark's own."""

    name: str
    type: str


class TableKind(Enum):
    """Whether dropping the table removes its files."""

    EXTERNAL = "EXTERNAL_TABLE"
    MANAGED = "MANAGED_TABLE"
    OTHER = "other"  # views and whatever else cannot be written to

    @staticmethod
    def of(text: str | None) -> TableKind:
        """The kind by Hive's word for it."""
        return next((kind for kind in TableKind if kind.value == text), TableKind.OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFormat:
    """The Java classes that read and write a table's files, and the serde's parameters."""

    input_format: str
    output_format: str
    serde: str
    serde_parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a metastore knows of a table.

    Attributes:
        columns: those in the files; partition keys are not among them.
        partition_keys: in the order of the directories; empty for a table without partitions.
        location: URI or path of its directory, as the metastore has it.
        bucket_columns: those after ``CLUSTERED BY``; empty for a table without buckets.
    """

    name: TableName
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    location: str
    format: StorageFormat
    kind: TableKind = TableKind.EXTERNAL
    parameters: Mapping[str, str] = field(default_factory=dict)
    bucket_columns: tuple[str, ...] = ()

    def column_names(self) -> list[str]:
        """The names of the columns and of the partition keys."""
        return [column.name for column in (*self.columns, *self.partition_keys)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition: the values of all partition keys in their order, where it is, and parameters."""

    values: Values
    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """What to change in a table; what is left out stays.

    Attributes:
        new_columns: added after the last one; those that exist are left alone.
        new_types: of columns that exist, by their names in lower case.
        parameters: set; others stay.
        location: where the files are from now on, for a table without partitions.
    """

    new_columns: tuple[Column, ...] = ()
    new_types: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None

    def missing_from(self, columns: Iterable[str]) -> tuple[Column, ...]:
        """The new columns that are not among ``columns``, the names of those of the table and of its keys."""
        known = {name.lower() for name in columns}
        return tuple(column for column in self.new_columns if column.name.lower() not in known)

    def type_of(self, column: str, so_far: str) -> str:
        """The type that ``column`` has from now on."""
        return self.new_types.get(column.lower(), so_far)


class Metastore(ABC):
    """A catalog of tables; see the promises above.

    Every method raises ``MetastoreError`` or ``MetastoreConflictError`` and nothing else.
    """

    #: Works on many batches of partitions: several at a time where that is worth several connections.
    runner: TaskRunner = SerialRunner()

    @abstractmethod
    def get_table(self, name: TableName) -> Table | None:
        """The table, or ``None`` if there is none."""

    def existing_table(self, name: TableName) -> Table:
        """The table; raises ``MetastoreConflictError`` (``TABLE_NOT_FOUND``) if there is none."""
        found = self.get_table(name)
        if found is None:
            raise no_table(name)
        return found

    @abstractmethod
    def create_table(self, table: Table) -> None:
        """Create a table. An existing table of that name is left alone."""

    @abstractmethod
    def alter_table(self, name: TableName, change: TableChange) -> None:
        """Change what ``change`` names. A table that does not exist is a conflict."""

    @abstractmethod
    def get_partitions(self, table: Table, values: Sequence[Values]) -> list[Partition]:
        """The partitions of ``values`` that exist, in any order. A table that is gone may look empty."""

    @abstractmethod
    def add_partitions(self, table: Table, partitions: Sequence[Partition]) -> set[Values]:
        """Add partitions; those that exist are left alone, wherever they are.

        They get the columns and the format that the table has at that moment, whatever ``table`` says.
        May take effect in part if it raises. A table that does not exist is a conflict.

        Returns the values of those that this very call has added. The others exist, and the caller has to
        look where; so a metastore that cannot tell them apart returns none.
        """

    @abstractmethod
    def alter_partitions(self, table: Table, partitions: Sequence[Partition]) -> None:
        """Set location and parameters of partitions that exist; parameters not named here stay.

        Where a metastore keeps columns for each partition, it adds those that ``table`` has got since.
        Raises ``MetastoreError`` if one does not exist (``PARTITION_MISSING``), ``MetastoreConflictError``
        if the table does not. May take effect in part if it raises.
        """

    def drop_partitions(self, table: Table, values: Sequence[Values]) -> None:  # noqa: B027 - see below
        """Forget partitions; files stay, also those of a managed table. One that does not exist is no error.

        May take effect in part if it raises. A table that does not exist is a conflict. A metastore of yours
        that has no such call keeps them: it is told that they have no files.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Close the connection. The next call opens a new one."""


def batches(values: Sequence[T], most: int) -> list[Sequence[T]]:
    """``values`` in their order, so many at a time."""
    return [values[start : start + most] for start in range(0, len(values), most)]


def check_metastore(metastore: object) -> Metastore:
    """Raise ``ConfigError`` (``BAD_VALUE``) unless it is one."""
    if not isinstance(metastore, Metastore):
        raise ConfigError(
            "metastore must be HiveMetastore('thrift://…'), SparkCatalog() or GlueCatalog(), got "
            f"{type(metastore).__name__}",
            code="BAD_VALUE",
        )
    return metastore


def partition_name(table: Table, values: Values) -> str:
    """``k=v/k2=v2`` with the table's own keys, escaped as Hive does: its name in a metastore."""
    keys = [key.name.lower() for key in table.partition_keys]
    texts = [None if value == DEFAULT_PARTITION else value for value in values]
    return "/".join(fragment(key, text) for key, text in zip(keys, texts, strict=True))


def no_table(name: TableName) -> MetastoreConflictError:
    """The error for a table that does not exist."""
    return MetastoreConflictError(
        f"there is no table {name}; create it, or let the sink do so with create=TableKind.EXTERNAL",
        code="TABLE_NOT_FOUND",
    )


def no_partition(name: TableName) -> MetastoreError:
    """The error if a partition to change does not exist; the caller may look again and add it."""
    return MetastoreError(
        f"a partition of {name} was dropped meanwhile; announce it again", code="PARTITION_MISSING"
    )


def check_keys(table: Table, now: Sequence[str]) -> None:
    """Raise ``MetastoreError`` (``TABLE_CHANGED``) unless ``now`` are still the names of its keys."""
    if [key.name.lower() for key in table.partition_keys] != [name.lower() for name in now]:
        raise MetastoreError(
            f"the partition keys of {table.name} have just changed to ({', '.join(now)}); it is read again",
            code="TABLE_CHANGED",
        )


def values_of(bucket: str) -> dict[str, str]:
    """Partition columns (lower case) and values of a bucket's directory; see ``Metastore``."""
    return {
        name.lower(): DEFAULT_PARTITION if text is None else text for name, text in partition_values(bucket)
    }
