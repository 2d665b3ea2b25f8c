"""The table to which the data source announces partitions, as its options name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from filesink.data_source.option_texts import Texts
from filesink.errors import ConfigError
from filesink.file_sink.tiers import FileTiers, Publishing
from filesink.metastore.api import TableKind
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit

_CREATE: Mapping[str, TableKind | None] = {
    "external": TableKind.EXTERNAL,
    "managed": TableKind.MANAGED,
    "never": None,
}
_ON_NEW_COLUMNS: Mapping[str, Literal["refuse", "add"]] = {"refuse": "refuse", "add": "add"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveTable:
    """A table to which partitions are announced: texts, since each commit gets a pickle and no connection.

    Attributes:
        name: ``"database.table"``.
        metastore: URIs of a Hive metastore.
        base_path: where the sink writes.
        create, on_new_columns: see ``MetastorePolicy``.
    """

    name: str
    metastore: str
    base_path: str
    create: TableKind | None = None
    on_new_columns: Literal["refuse", "add"] = "refuse"

    def publishing(self) -> Publishing:
        """Announce with each epoch. Nothing is connected before the first call to the metastore."""
        policy = MetastorePolicy(
            self.name,
            HiveMetastore(self.metastore),
            create=self.create,
            on_new_columns=self.on_new_columns,
        )
        return Publishing(commit=PartitionCommit(policies=[policy]), base_path=self.base_path)


def announcing(sink: FileTiers, table: HiveTable | None) -> FileTiers:
    """``sink``, with the table to which it announces partitions."""
    return sink if table is None else replace(sink, publishing=table.publishing())


def table_of(given: Texts, base_path: str) -> HiveTable | None:
    """The table that the options name; ``None`` if they name none.

    Raises:
        ConfigError: ``CONFLICT``, or an option has none of its values.
    """
    about = given.given(name="table", metastore="metastore", create="createTable", added="onNewColumns")
    if not about:
        return None
    if "name" not in about or "metastore" not in about:
        raise ConfigError(
            "'table' and 'metastore' go together, 'createTable' and 'onNewColumns' need both: set 'table' "
            "to 'database.table' and 'metastore' to 'thrift://host:9083', or leave all of them out",
            code="CONFLICT",
        )
    table = HiveTable(
        name=about["name"],
        metastore=about["metastore"],
        base_path=base_path,
        create=given.choice("createTable", _CREATE, default="never"),
        on_new_columns=given.choice("onNewColumns", _ON_NEW_COLUMNS, default="refuse"),
    )
    table.publishing()  # raises if it cannot be
    return table
