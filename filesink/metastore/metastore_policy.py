"""Tells a metastore about partitions: adds those that are new, and keeps the statistics of all.

Rules:
1. It looks before the epoch is decided, when everything can still be refused: table, keys, columns, format,
   and where each partition is. What was not found then is added without another look.
2. It can be repeated because it looks first: a partition that exists is compared, not added again. If an
   answer was lost, the next call begins with the same look and finds out.
3. After adding it looks only for partitions which the metastore does not say that this call has added:
   somebody else may have been first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from filesink.arguments import instance_of, one_of
from filesink.errors import ConfigError, MetastoreConflictError, MetastoreError, StorageError
from filesink.metastore.api import (
    Metastore,
    Partition,
    Table,
    TableChange,
    TableKind,
    TableName,
    Values,
    batches,
    check_metastore,
    no_table,
)
from filesink.metastore.locations import bucket_location
from filesink.metastore.policies import CommitPolicy, CommittedPartition, Site
from filesink.metastore.statistics import file_sizes, statistics
from filesink.metastore.tables.columns import (
    check_evolvable,
    check_table,
    new_columns,
    table_for,
    wider_types,
)
from filesink.metastore.tables.partitions import (
    AFTER,
    BEFORE,
    by_values,
    can_be_of,
    check_place,
    in_place,
    values_in,
)
from filesink.metastore.tables.properties import check_properties
from filesink.metastore.tables.readers import check_readers

log = logging.getLogger("filesink")

_BATCH = 500  # partitions between two looks; a batch that is done stays done


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What was seen before the epoch was decided: a table with partitions, and which it did not have."""

    table: Table
    absent: frozenset[Values]


class MetastorePolicy(CommitPolicy):
    """Adds announced partitions to a table.

    Args:
        table: ``"database.table"``.
        metastore: where the table is.
        create: make the table if there is none, external or managed; ``None`` refuses to start.
        on_new_columns: what happens to columns that the table does not have: ``"refuse"`` does not start,
            ``"add"`` adds them to the table.
        on_wider_types: what happens to columns whose type has every value of the table's and more (whole
            numbers, ``float`` to ``double``, decimals): ``"refuse"`` does not start, ``"alter"`` gives the
            table the wider type.
        properties: of a table that is made (``TBLPROPERTIES``), as ``{"owner_team": "sales"}``; everybody
            who may see the table sees them. One that is there keeps its own.

    Raises:
        ConfigError: ``TABLE_NAME``, ``BAD_VALUE``; ``CONFLICT``, ``properties`` without ``create``.
    """

    def __init__(
        self,
        table: str,
        metastore: Metastore,
        *,
        create: TableKind | None = None,
        on_new_columns: Literal["refuse", "add"] = "refuse",
        on_wider_types: Literal["refuse", "alter"] = "refuse",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.table = TableName.parse(table)
        self.metastore = check_metastore(metastore)
        if create is not None:
            instance_of(create, TableKind, name="create")
        one_of(on_new_columns, ("refuse", "add"), name="on_new_columns")
        one_of(on_wider_types, ("refuse", "alter"), name="on_wider_types")
        self._create = create
        self._properties = check_properties(properties)
        if self._properties and create is None:
            raise ConfigError(
                "properties are given to a table that this sink makes; say create=TableKind.EXTERNAL or "
                "TableKind.MANAGED, or set them with ALTER TABLE",
                code="CONFLICT",
            )
        self._on_new_columns = on_new_columns
        self._on_wider_types = on_wider_types
        self._schema: pa.Schema | None = None  # of the input; not known before ``prepare``
        self._look: _Look | None = None  # for the one call that follows it

    def __repr__(self) -> str:
        return f"MetastorePolicy('{self.table}', {self.metastore!r})"

    def prepare(self, site: Site, schema: pa.Schema) -> None:
        """Compare the table with what will be written, and create or extend it if that is wanted.

        Raises:
            MetastoreError: the metastore does not answer.
            MetastoreConflictError: there is no such table, or it is not the one that the sink writes.
            SchemaError: its columns do not fit those of the input.
        """
        table = self.metastore.get_table(self.table)
        if table is None:
            if self._create is None:
                raise no_table(self.table)
            wanted = table_for(self.table, self._create, site, schema)
            check_readers(wanted, site, schema)
            self.metastore.create_table(replace(wanted, parameters=self._properties))
            table = self.metastore.existing_table(self.table)
        check_readers(table, site, schema)
        change = self._change(table, site, schema)
        if change.new_columns or change.new_types:
            check_evolvable(table)
            self.metastore.alter_table(self.table, change)
            table = self.metastore.existing_table(self.table)
        check_table(table, site, schema)
        self._schema = schema

    def check(self, partitions: Sequence[CommittedPartition], site: Site) -> None:
        """See ``CommitPolicy.check``; two requests, whatever the number of partitions in a batch.

        Raises:
            MetastoreError: the metastore does not answer.
            MetastoreConflictError: the table is gone, or has another format or other keys, or a partition is
                elsewhere.
            SchemaError: its columns no longer fit those that ``prepare`` was given.
        """
        table = self.metastore.existing_table(self.table)
        check_readers(table, site, pa.schema([]) if self._schema is None else self._schema)
        if self._schema is not None:
            check_table(table, site, self._schema)
        wanted = by_values(
            table, partitions, has_files=lambda one: bool(one.files or file_sizes(one.bucket, site.store))
        )
        if not table.partition_keys:
            check_place(table, site, so_far=BEFORE)
            return
        known = self.metastore.runner.run(
            lambda values: self._known(table, {one: wanted[one] for one in values}, site, so_far=BEFORE),
            batches(list(wanted), _BATCH),
        )
        self._look = _Look(table=table, absent=frozenset(wanted).difference(*known))

    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        """See ``CommitPolicy.commit_all``.

        Raises:
            MetastoreConflictError: the table is gone or has other keys, or a partition is elsewhere.
        """
        look, self._look = self._look, None
        left = self.metastore.runner.run(
            lambda batch: self._left_of(batch, site, look), batches(partitions, _BATCH)
        )
        return [one for batch in left for one in batch]

    def close(self) -> None:
        """See ``CommitPolicy.close``."""
        self.metastore.close()

    def _change(self, table: Table, site: Site, schema: pa.Schema) -> TableChange:
        """What the table lacks, as far as it may be changed."""
        return TableChange(
            new_columns=new_columns(table, site, schema) if self._on_new_columns == "add" else (),
            new_types=wider_types(table, schema) if self._on_wider_types == "alter" else {},
        )

    def _left_of(
        self, batch: Sequence[CommittedPartition], site: Site, look: _Look | None
    ) -> Sequence[CommittedPartition]:
        try:
            self._announce(batch, site, look)
        except MetastoreConflictError:
            raise
        except (MetastoreError, StorageError) as error:
            log.warning("telling %s of %d partitions failed: %s", self.table, len(batch), error)
            self.failure = error
            return batch
        return ()

    def _announce(self, batch: Sequence[CommittedPartition], site: Site, look: _Look | None) -> None:
        table = self.metastore.existing_table(self.table) if look is None else look.table
        batch = [one for one in batch if one.file_count or can_be_of(table, one)]
        if not table.partition_keys:
            self._describe_table(table, batch, site)
            return
        wanted = by_values(table, batch, has_files=lambda one: bool(file_sizes(one.bucket, site.store)))
        absent = frozenset[Values]() if look is None else look.absent
        looked_for = {values: one for values, one in wanted.items() if values not in absent}
        known = self._known(table, looked_for, site, so_far=AFTER)
        missing = {values: one for values, one in wanted.items() if one.file_count and values not in known}
        if missing:
            known |= self._add(table, missing, site)
        changed = list(_changed(known.values(), wanted, site))
        if changed:
            self.metastore.alter_partitions(table, changed)
        if dropped := [values for values in known if wanted[values].is_dropped]:
            self.metastore.drop_partitions(table, dropped)

    def _add(
        self, table: Table, missing: Mapping[Values, CommittedPartition], site: Site
    ) -> dict[Values, Partition]:
        """Add partitions with their statistics; returns those that are there without any."""
        new = [
            Partition(
                values=values,
                location=bucket_location(table.location, site.base_path, one.bucket),
                parameters=statistics(one, site.store, {}),
            )
            for values, one in missing.items()
        ]
        added = self.metastore.add_partitions(table, new)
        others = {one.values: missing[one.values] for one in new if one.values not in added}
        there = self._there_already(table, others, site)
        return {values: one for values, one in there.items() if "numFiles" not in one.parameters}

    def _known(
        self, table: Table, wanted: Mapping[Values, CommittedPartition], site: Site, *, so_far: str
    ) -> dict[Values, Partition]:
        """The partitions that exist, each at its place; only one that was emptied may be elsewhere."""
        if not wanted:
            return {}
        found = self.metastore.get_partitions(table, list(wanted))
        return in_place(table, found, wanted, site, so_far=so_far)

    def _there_already(
        self, table: Table, others: Mapping[Values, CommittedPartition], site: Site
    ) -> dict[Values, Partition]:
        """Partitions that somebody else has added first, maybe elsewhere; or has dropped again at once."""
        found = self._known(table, others, site, so_far=AFTER)
        if len(found) < len(others):
            raise MetastoreError(
                f"partitions that were added to {self.table} are not there; trying again", code="NOT_ADDED"
            )
        return found

    def _describe_table(self, table: Table, batch: Sequence[CommittedPartition], site: Site) -> None:
        """Set the statistics of a table without partitions; its directory is the base path."""
        check_place(table, site, so_far=AFTER)
        for one in batch:
            values_in(table.name, (), one.bucket)
            changed = statistics(one, site.store, table.parameters)
            if any(table.parameters.get(name) != value for name, value in changed.items()):
                self.metastore.alter_table(self.table, TableChange(parameters=changed))


def _changed(
    known: Iterable[Partition], wanted: Mapping[Values, CommittedPartition], site: Site
) -> Iterator[Partition]:
    """The partitions whose statistics are not what they should be."""
    for partition in known:
        changed = statistics(wanted[partition.values], site.store, partition.parameters)
        if any(partition.parameters.get(name) != value for name, value in changed.items()):
            yield Partition(values=partition.values, location=partition.location, parameters=changed)
