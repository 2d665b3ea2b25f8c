"""Tells a metastore of partitions: adds those that are new, and keeps the statistics of all.

Replayable because it looks first: a partition that is there is compared, not added again. An answer
that got lost is found out by the next call, which begins with the same look. After adding it looks only
for those that the metastore does not say it has added by this call: somebody may have been faster.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from filesink.errors import MetastoreConflictError, MetastoreError, StorageError
from filesink.metastore.api import (
    Metastore,
    Partition,
    Table,
    TableChange,
    TableKind,
    TableName,
    Values,
    no_table,
    values_of,
)
from filesink.metastore.locations import bucket_location, same_place
from filesink.metastore.policies import CommitPolicy, CommittedPartition, Site
from filesink.metastore.statistics import file_sizes, statistics
from filesink.metastore.table_columns import check_evolvable, check_table, new_columns, table_for
from filesink.metastore.table_readers import check_readers

log = logging.getLogger("filesink")

_BATCH = 500  # partitions between two looks; what is done by then stays done


class MetastorePolicy(CommitPolicy):
    """Adds announced partitions to a table.

    Args:
        table: ``"database.table"``.
        metastore: where the table is.
        create: make the table if there is none, external or managed; ``None`` refuses to start.
        on_new_columns: what becomes of columns that the table does not have: ``"refuse"`` to start, or
            ``"add"`` them to the table.

    Raises:
        ConfigError: ``TABLE_NAME``.
    """

    def __init__(
        self,
        table: str,
        metastore: Metastore,
        *,
        create: TableKind | None = None,
        on_new_columns: Literal["refuse", "add"] = "refuse",
    ) -> None:
        self.table = TableName.parse(table)
        self.metastore = metastore
        self._create = create
        self._on_new_columns = on_new_columns
        self._keys: tuple[str, ...] | None = None  # in lower case; not known before ``prepare``

    def __repr__(self) -> str:
        return f"MetastorePolicy('{self.table}', {self.metastore!r})"

    def prepare(self, site: Site, schema: pa.Schema) -> None:
        """Compare the table with what will be written, and create or extend it if that is wanted.

        Raises:
            MetastoreError: the metastore does not answer.
            MetastoreConflictError: there is no such table, or it is another than the sink writes.
            SchemaError: its columns do not fit those of the input.
        """
        table = self.metastore.get_table(self.table)
        if table is None:
            if self._create is None:
                raise no_table(self.table)
            wanted = table_for(self.table, self._create, site, schema)
            check_readers(wanted, site, schema)
            self.metastore.create_table(wanted)
            table = self._existing()
        check_readers(table, site, schema)
        added = new_columns(table, site, schema)
        if added and self._on_new_columns == "add":
            check_evolvable(table)
            self.metastore.alter_table(self.table, TableChange(new_columns=added))
            table = self._existing()
        check_table(table, site, schema)
        self._keys = _keys(table)

    def check_buckets(self, buckets: Collection[str]) -> None:
        """See ``CommitPolicy.check_buckets``; the keys are those of the table as ``prepare`` has seen it."""
        if self._keys is not None:
            for bucket in buckets:
                _values(self.table, self._keys, bucket)

    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        """See ``CommitPolicy.commit_all``.

        Raises:
            MetastoreConflictError: the table is gone or has other keys, or a partition is elsewhere.
        """
        batches = [partitions[start : start + _BATCH] for start in range(0, len(partitions), _BATCH)]
        left = self.metastore.runner.run(lambda batch: self._left_of(batch, site), batches)
        return [one for batch in left for one in batch]

    def close(self) -> None:
        """See ``CommitPolicy.close``."""
        self.metastore.close()

    def _existing(self) -> Table:
        table = self.metastore.get_table(self.table)
        if table is None:
            raise no_table(self.table)
        return table

    def _left_of(self, batch: Sequence[CommittedPartition], site: Site) -> Sequence[CommittedPartition]:
        try:
            self._announce(batch, site)
        except MetastoreConflictError:
            raise
        except (MetastoreError, StorageError) as error:
            log.warning("telling %s of %d partitions failed: %s", self.table, len(batch), error)
            self.failure = error
            return batch
        return ()

    def _announce(self, batch: Sequence[CommittedPartition], site: Site) -> None:
        table = self._existing()
        batch = [one for one in batch if one.file_count or _is_of(table, one)]
        if not table.partition_keys:
            self._describe_table(table, batch, site)
            return
        wanted = self._wanted(table, batch, site)
        known = self._known(table, wanted, site)
        new = [
            Partition(
                values=values,
                location=bucket_location(table.location, site.base_path, one.bucket),
                parameters=statistics(one, site.store, {}),
            )
            for values, one in wanted.items()
            if one.file_count and values not in known
        ]
        if new:
            added = self.metastore.add_partitions(table, new)
            others = {one.values: wanted[one.values] for one in new if one.values not in added}
            self._check_there(table, others, site)
        changed = list(_changed(known.values(), wanted, site))
        if changed:
            self.metastore.alter_partitions(table, changed)

    def _wanted(
        self, table: Table, batch: Sequence[CommittedPartition], site: Site
    ) -> dict[Values, CommittedPartition]:
        """The directory of each partition. Several may mean one, if the order of the columns was changed."""
        found: dict[Values, list[CommittedPartition]] = {}
        for one in sorted(batch, key=lambda one: one.file_count):
            found.setdefault(_values(table.name, _keys(table), one.bucket), []).append(one)
        return {values: self._only(same, site) for values, same in found.items()}

    def _only(self, same: Sequence[CommittedPartition], site: Site) -> CommittedPartition:
        """Of directories of one partition the one with files; if none has, that of the most news."""
        if len(same) == 1:
            return same[0]
        # What was announced may have been overwritten since, so only the directories can tell.
        filled = [one for one in same if file_sizes(one.bucket, site.store)]
        if len(filled) > 1:
            raise MetastoreConflictError(
                f"'{filled[0].bucket}' and '{filled[1].bucket}' are one partition of {self.table}, and both "
                "have files: its readers would see those of one directory only. The files are visible there, "
                "the table was not changed. Move those of one into the other, then recover(lost='accept')",
                code="OTHER_LOCATION",
            )
        return (filled or same)[-1]

    def _known(
        self, table: Table, wanted: Mapping[Values, CommittedPartition], site: Site
    ) -> dict[Values, Partition]:
        """The partitions that exist, each where it should be; one that was emptied may be elsewhere."""
        found = {one.values: one for one in self.metastore.get_partitions(table, list(wanted))}
        for values, partition in list(found.items()):
            ours = bucket_location(table.location, site.base_path, wanted[values].bucket)
            if same_place(partition.location, ours):
                continue
            if wanted[values].file_count:
                raise MetastoreConflictError(
                    f"{self.table} has a partition at '{partition.location}' whose files were written to "
                    f"'{ours}'. The files are visible there, the table was not changed. Move the "
                    "partition, or write to the table's own directory",
                    code="OTHER_LOCATION",
                )
            del found[values]
        return found

    def _check_there(self, table: Table, others: Mapping[Values, CommittedPartition], site: Site) -> None:
        """Somebody may have been faster, with another location; or have dropped them at once."""
        if others and len(self._known(table, others, site)) < len(others):
            raise MetastoreError(
                f"partitions that were added to {self.table} are not there; trying again", code="NOT_ADDED"
            )

    def _describe_table(self, table: Table, batch: Sequence[CommittedPartition], site: Site) -> None:
        """A table without partitions: its directory is the base path, and has the statistics."""
        if not same_place(table.location, site.base_path):
            raise MetastoreConflictError(
                f"{self.table} is at '{table.location}' and the files were written to '{site.base_path}'. "
                "They are visible there; the table was not changed",
                code="OTHER_LOCATION",
            )
        for one in batch:
            _values(self.table, (), one.bucket)
            changed = statistics(one, site.store, table.parameters)
            if any(table.parameters.get(name) != value for name, value in changed.items()):
                self.metastore.alter_table(self.table, TableChange(parameters=changed))


def _changed(
    known: Iterable[Partition], wanted: Mapping[Values, CommittedPartition], site: Site
) -> Iterator[Partition]:
    """Those whose statistics are not what they should be."""
    for partition in known:
        changed = statistics(wanted[partition.values], site.store, partition.parameters)
        if any(partition.parameters.get(name) != value for name, value in changed.items()):
            yield Partition(values=partition.values, location=partition.location, parameters=changed)


def _is_of(table: Table, partition: CommittedPartition) -> bool:
    """Whether a directory that an overwrite has emptied can be a partition, or the whole table."""
    keys = set(_keys(table))
    if not keys:
        return not partition.bucket
    return set(values_of(partition.bucket)) == keys and partition.bucket.count("/") == len(keys) - 1


def _keys(table: Table) -> tuple[str, ...]:
    return tuple(key.name.lower() for key in table.partition_keys)


def _values(name: TableName, keys: Sequence[str], bucket: str) -> Values:
    """The values of a bucket's directory in the order of the table's keys.

    Raises:
        MetastoreConflictError: ``PARTITION_KEYS``; it is no directory of these keys.
    """
    found = values_of(bucket)
    if set(found) == set(keys) and (keys or not bucket):
        return tuple(found[key] for key in keys)
    what = f"is partitioned by {', '.join(keys)}" if keys else "has no partition keys"
    assigner = "partition_bucket_assigner with the table's keys" if keys else "base_path_bucket_assigner()"
    named = ", ".join(found) or "no column"
    raise MetastoreConflictError(
        f"table {name} {what}, and the directory '{bucket}' names {named}. Use BucketAssigner.{assigner}",
        code="PARTITION_KEYS",
    )
