"""Compares live files with a metastore: whether each directory with files is a partition, at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from filesink.errors import MetastoreConflictError
from filesink.file_sink.table_destination import find_table
from filesink.metastore.announcements import Announcement, AnnouncementCodec
from filesink.metastore.api import Metastore, Partition, Table, Values, batches
from filesink.metastore.locations import bucket_location, same_place
from filesink.metastore.tables.partitions import keys_of, values_in
from filesink.naming import parent
from filesink.operations.fsck.files import Known
from filesink.operations.fsck.seen import Draft, SeenChain

_BATCH = 500  # partitions in one request


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which metastore is compared, and its table."""

    metastore: Metastore
    table: str


def compare_partitions(
    asked: Asked, known: Known, chains: Sequence[SeenChain], base_path: str
) -> Iterator[Draft]:
    """What the metastore does not know, or knows elsewhere.

    Raises:
        ConfigError, MetastoreError: there is no such table, or no answer.
    """
    table = find_table(asked.table, asked.metastore)
    if not table.partition_keys:
        if not same_place(table.location, base_path):
            yield Draft("PARTITION_ELSEWHERE", "", f"{asked.table} is at '{table.location}'")
        return
    waiting = {bucket for chain in chains for bucket in _waiting(chain)}
    wanted: dict[Values, str] = {}
    for bucket in sorted({parent(path) for path in known.live} - waiting):
        try:
            wanted[values_in(table.name, keys_of(table), bucket)] = bucket
        except MetastoreConflictError as error:
            yield Draft("PARTITION_MISSING", bucket, error.message)
    found = {one.values: one for one in _known(asked.metastore, table, list(wanted))}
    for values, bucket in wanted.items():
        if values not in found:
            yield Draft("PARTITION_MISSING", bucket, f"{asked.table} does not have it")
        elif not same_place(found[values].location, bucket_location(table.location, base_path, bucket)):
            yield Draft("PARTITION_ELSEWHERE", bucket, f"it is at '{found[values].location}'")


def _known(metastore: Metastore, table: Table, values: Sequence[Values]) -> list[Partition]:
    answers = metastore.runner.run(
        lambda some: metastore.get_partitions(table, some), batches(values, _BATCH)
    )
    return [one for answer in answers for one in answer]


def _waiting(chain: SeenChain) -> Iterator[str]:
    """Directories that are announced later, or by an epoch at work."""
    newest = chain.newest()
    if newest is None:
        return
    sections = [newest.waiting]
    sections += [chain.records[slot].announcement for slot in chain.unfinished & chain.records.keys()]
    for section in sections:
        for one in section.decode(AnnouncementCodec()) if section.data else ():
            if isinstance(one, Announcement):
                yield one.bucket
