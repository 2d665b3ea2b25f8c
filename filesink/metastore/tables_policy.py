"""Tells a metastore about many tables below one base path: to each of them its own policy.

Rules:
1. A table is made, or compared with what is written, when an epoch comes that puts its first files: before
   the epoch is decided, so that it can still be refused.
2. A table's policy sees a path, a store and partitions as if there were no other table.
3. If a table that the metastore refuses shall not stop the others, its files become visible all the same, and
   the next epoch with files for it tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Literal

import pyarrow as pa

from filesink.arguments import choice, instance_of, one_of
from filesink.buckets.contract import find_column
from filesink.buckets.table_paths import check_text
from filesink.errors import (
    ConfigError,
    MetastoreConflictError,
    MetastoreError,
    SchemaError,
    StorageError,
)
from filesink.metastore.api import Metastore, TableKind, check_metastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.policies import CommitPolicy, CommittedPartition, Site
from filesink.naming import join
from filesink.storage.api import Entry, PutResult, Store
from filesink.storage.wrapped import WrappedStore

log = logging.getLogger("filesink")

_REFUSALS = (MetastoreConflictError, SchemaError, ConfigError)


class OnBrokenTable(Enum):
    """What becomes of a table that the metastore refuses."""

    FAIL = "fail"
    SKIP = "skip"


class MetastoreTablesPolicy(CommitPolicy):
    """Adds announced partitions of many tables, each to its own; for ``table_bucket_assigner``.

    Args:
        table: with placeholders, as in ``"${schema_name}.${table_name}"``.
        metastore: where the tables are.
        create: see ``MetastorePolicy``; ``None`` refuses an epoch with files for a table that is not there.
        on_new_columns, on_wider_types: see ``MetastorePolicy``.
        on_broken_table: ``"fail"`` refuses an epoch with files for a table that has other columns, keys,
            format or place; ``"skip"`` leaves that table as it is, with a warning, and goes on with all
            others. ``broken`` names it.

    Raises:
        ConfigError: ``BAD_VALUE``.
    """

    def __init__(
        self,
        table: str,
        metastore: Metastore,
        *,
        create: TableKind | None = None,
        on_new_columns: Literal["refuse", "add"] = "refuse",
        on_wider_types: Literal["refuse", "alter"] = "refuse",
        on_broken_table: Literal["fail", "skip"] = "fail",
    ) -> None:
        self._table = check_text(table, of="the table of a metastore")
        self._metastore = check_metastore(metastore)
        self._create = None if create is None else instance_of(create, TableKind, name="create")
        one_of(on_new_columns, ("refuse", "add"), name="on_new_columns")
        one_of(on_wider_types, ("refuse", "alter"), name="on_wider_types")
        self._on_new_columns, self._on_wider_types = on_new_columns, on_wider_types
        self._on_broken = choice(OnBrokenTable, on_broken_table, "on_broken_table")
        self._policies: dict[str, MetastorePolicy] = {}
        self._prepared: set[str] = set()
        self._broken: dict[str, str] = {}
        self._schema: pa.Schema | None = None

    def __repr__(self) -> str:
        return f"MetastoreTablesPolicy('{self._table}', {self._metastore!r})"

    @property
    def broken(self) -> Mapping[str, str]:
        """Tables that were left out of the last epoch that has files for them, by name, and why."""
        return dict(self._broken)

    def prepare(self, site: Site, schema: pa.Schema) -> None:
        """Note the columns; which tables there will be, nobody knows.

        Raises:
            ConfigError: ``CONFLICT``; the sink has no tables.
        """
        if site.tables is None:
            raise ConfigError(
                "MetastoreTablesPolicy goes with BucketAssigner.table_bucket_assigner(…); for one table use "
                "MetastorePolicy",
                code="CONFLICT",
            )
        self._schema = schema
        self._prepared.clear()  # columns may be others than before

    def check(self, partitions: Sequence[CommittedPartition], site: Site) -> None:
        """See ``CommitPolicy.check``; also makes tables that are not there, and adds new columns."""

        def look(table: str, own: Sequence[CommittedPartition], place: Site) -> Sequence[CommittedPartition]:
            self._prepared_policy(table, place, site).check(own, place)
            self._broken.pop(table, None)
            return ()

        self._each(look, partitions, site)

    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        """See ``CommitPolicy.commit_all``."""

        def tell(table: str, own: Sequence[CommittedPartition], place: Site) -> Sequence[CommittedPartition]:
            if table in self._broken:
                return ()
            try:  # what could not be asked before the epoch was decided is made up for
                policy = self._prepared_policy(table, place, site)
            except MetastoreConflictError:
                raise
            except (MetastoreError, StorageError) as error:
                log.warning("table '%s' could not be looked at, and is tried again: %s", table, error)
                self.failure = error
                return own
            left = policy.commit_all(own, place)
            self.failure = policy.failure if left else self.failure
            return left

        return self._each(tell, partitions, site)

    def close(self) -> None:
        """See ``CommitPolicy.close``."""
        self._metastore.close()

    def _each(
        self, call: _Call, partitions: Sequence[CommittedPartition], site: Site
    ) -> list[CommittedPartition]:
        """What ``call`` leaves of each table, as it was given."""
        groups: dict[str, list[CommittedPartition]] = {}
        for one in partitions:
            name = site.tables.path.name_of(one.bucket) if site.tables else None
            if name is not None:  # a directory of no table was emptied by an overwrite
                groups.setdefault(name, []).append(one)

        def of_table(table: str) -> list[CommittedPartition]:
            own = groups[table]
            try:
                left = call(table, [*_inside(own, site)], _place(own[0], site))
            except _REFUSALS as error:
                if self._on_broken is OnBrokenTable.FAIL:
                    raise
                log.warning("table '%s' is left out of the metastore, and the others go on: %s", table, error)
                self._broken[table] = f"[{error.code}] {error.message}"
                return []
            kept = {one.bucket for one in left}
            return [
                one for one, stripped in zip(own, _inside(own, site), strict=True) if stripped.bucket in kept
            ]

        found = self._metastore.runner.run(of_table, sorted(groups))
        return [one for left in found for one in left]

    def _prepared_policy(self, table: str, place: Site, site: Site) -> MetastorePolicy:
        policy = self._policy(table, site)
        if table not in self._prepared and self._schema is not None:
            policy.prepare(place, _columns_of(table, self._schema, site))
            self._prepared.add(table)
        return policy

    def _policy(self, table: str, site: Site) -> MetastorePolicy:
        if table not in self._policies:
            name = self._table if site.tables is None else site.tables.path.plain(self._table, table)
            self._policies[table] = MetastorePolicy(
                name,
                self._metastore,
                create=self._create,
                on_new_columns=self._on_new_columns,
                on_wider_types=self._on_wider_types,
            )
        return self._policies[table]


_Call = Callable[[str, Sequence[CommittedPartition], Site], Sequence[CommittedPartition]]


class _Below(WrappedStore):
    """What a policy asks a store, of one directory."""

    def __init__(self, store: Store, directory: str) -> None:
        super().__init__(store)
        self._directory = directory

    def list(self, directory: str) -> list[Entry]:
        """See ``Store.list``."""
        return self._store.list(join(self._directory, directory) if directory else self._directory)

    def put_if_absent(self, path: str, data: bytes) -> PutResult:
        """See ``Store.put_if_absent``."""
        return self._store.put_if_absent(join(self._directory, path), data)


def _place(one: CommittedPartition, site: Site) -> Site:
    """``site``, as if the table of ``one`` were alone."""
    tables = site.tables
    depth = 0 if tables is None else tables.path.depth
    directory = "/".join(one.bucket.split("/")[:depth])
    return replace(
        site,
        store=_Below(site.store, directory),
        base_path=f"{site.base_path.rstrip('/')}/{directory}",
        tables=None,
    )


def _inside(partitions: Sequence[CommittedPartition], site: Site) -> Iterator[CommittedPartition]:
    """``partitions`` as their table sees them."""
    for one in partitions:
        bucket = one.bucket if site.tables is None else site.tables.path.inside(one.bucket)
        yield replace(one, bucket=bucket)


def _columns_of(table: str, schema: pa.Schema, site: Site) -> pa.Schema:
    """The columns of the files of ``table``, with its partition keys."""
    wanted = None if site.tables is None else site.tables.columns.get(table)
    if wanted is None:
        return schema
    names = {*wanted, *(site.partition_columns or ())}
    places = sorted({find_column(schema, name) for name in names})
    return pa.schema([schema.field(place) for place in places])
