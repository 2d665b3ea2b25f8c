"""Which partition of a table each announced directory is, and where. Asks nobody but the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from filesink.errors import MetastoreConflictError
from filesink.metastore.api import Partition, Table, TableName, Values, partition_name, values_of
from filesink.metastore.locations import bucket_location, same_place
from filesink.metastore.policies import CommittedPartition, Site

# What is said of an epoch whose announcement does not fit, by when that was found.
BEFORE = "Nothing of this epoch has become visible"
AFTER = (
    "The files are visible, the table was not changed. Start again when that is mended, or go on without "
    "telling the table: recover(announce='skip')"
)


def keys_of(table: Table) -> tuple[str, ...]:
    """The names of the partition keys, in lower case."""
    return tuple(key.name.lower() for key in table.partition_keys)


def values_in(name: TableName, keys: Sequence[str], bucket: str) -> Values:
    """The values of a bucket's directory in the order of the table's keys.

    Raises:
        MetastoreConflictError: ``PARTITION_KEYS``; it is not a directory of these keys.
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


def can_be_of(table: Table, partition: CommittedPartition) -> bool:
    """Whether a directory that an overwrite has emptied can be a partition, or the whole table."""
    keys = set(keys_of(table))
    if not keys:
        return not partition.bucket
    return set(values_of(partition.bucket)) == keys and partition.bucket.count("/") == len(keys) - 1


def by_values(
    table: Table, batch: Sequence[CommittedPartition], *, has_files: Callable[[CommittedPartition], bool]
) -> dict[Values, CommittedPartition]:
    """The directory of each partition. Several may mean one, if the order of the columns was changed.

    Args:
        table: whose partitions they are.
        batch: the directories.
        has_files: asked of directories that mean one partition. Only the directories can tell: what was
            announced may have been overwritten since.

    Raises:
        MetastoreConflictError: ``PARTITION_KEYS``; ``OTHER_LOCATION``, two that mean one have files.
    """
    found: dict[Values, list[CommittedPartition]] = {}
    for one in sorted(batch, key=lambda one: one.file_count):
        found.setdefault(values_in(table.name, keys_of(table), one.bucket), []).append(one)
    return {values: _only(table, same, has_files) for values, same in found.items()}


def _only(
    table: Table, same: Sequence[CommittedPartition], has_files: Callable[[CommittedPartition], bool]
) -> CommittedPartition:
    """The directory, of all that mean one partition, that has files; if none has, the one with most news."""
    if len(same) == 1:
        return same[0]
    filled = [one for one in same if has_files(one)]
    if len(filled) > 1:
        raise MetastoreConflictError(
            f"'{filled[0].bucket}' and '{filled[1].bucket}' are one partition of {table.name}, and both have "
            "files: its readers would see the files of one directory only. The table was not changed. Write "
            "into one directory. Move visible files of the other one into it and start again; if moved files "
            "are then reported as lost, call recover(lost='accept')",
            code="OTHER_LOCATION",
        )
    return (filled or same)[-1]


def in_place(
    table: Table,
    found: Sequence[Partition],
    wanted: Mapping[Values, CommittedPartition],
    site: Site,
    *,
    so_far: str,
) -> dict[Values, Partition]:
    """The partitions that exist, each where it should be. One that was emptied may be elsewhere: left out.

    Args:
        table: as read a moment ago.
        found: what the metastore has of ``wanted``.
        wanted: the directory of each partition.
        site: where the sink writes.
        so_far: ``BEFORE`` or ``AFTER``, for the message.

    Raises:
        MetastoreConflictError: ``OTHER_LOCATION``.
    """
    known = {}
    for partition in found:
        one = wanted.get(partition.values)
        if one is None:  # the keys have another order now; whoever adds is told
            continue
        ours = bucket_location(table.location, site.base_path, one.bucket)
        if same_place(partition.location, ours):
            known[partition.values] = partition
        elif one.file_count:
            raise MetastoreConflictError(
                f"partition '{partition_name(table, partition.values)}' of {table.name} is registered at "
                f"'{partition.location}', and its files are written to '{ours}', where readers of the table "
                "would not see them. Move or drop the partition, or write to where it is. "
                f"{so_far}",
                code="OTHER_LOCATION",
            )
    return known


def check_place(table: Table, site: Site, *, so_far: str) -> None:
    """Raise unless a table without partitions is where the sink writes.

    Raises:
        MetastoreConflictError: ``OTHER_LOCATION``.
    """
    if not same_place(table.location, site.base_path):
        raise MetastoreConflictError(
            f"{table.name} is at '{table.location}', and its files are written to '{site.base_path}', where "
            f"its readers would not see them. Move the table, or write to where it is. {so_far}",
            code="OTHER_LOCATION",
        )
