"""``filesink.open``, ``follow``, ``adopt`` and ``fsck``: on S3 with the settings of an active session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from filesink.inventory.adoption.adopt import AdoptionPlan
from filesink.metastore.api import Metastore
from filesink.operations.fsck import check
from filesink.operations.fsck.check import Depth
from filesink.operations.fsck.exported import Exported
from filesink.operations.fsck.finding import FsckReport
from filesink.operations.progress import Progress, progress_of, telling
from filesink.sink_directory import opening
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.feed import FeedEntry
from filesink.sink_directory.waiting import Wait
from filesink.spark.input.s3a import of_active_session
from filesink.storage.base_path import spelling

__all__ = ["AdoptionPlan", "adopt", "follow", "fsck", "open", "plan_adopt"]


def open(  # noqa: A001 - as in gzip and zipfile: it is called filesink.open
    path: str | PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> SinkDirectory:
    """What sinks have written to ``path``: its files, epochs, columns and sinks, without Spark.

    Only needs the right to read. ``filesink.open("/data/trips").snapshot().dataset()`` has every row once.

    Args:
        path: the base path of the sinks.
        storage_options: of the store, as ``with_storage_options`` takes them. For a path on S3 they come
            before the settings ``spark.hadoop.fs.s3a.*`` of a Spark session that is active.

    Raises:
        ConfigError: ``NO_PATH``, there is nothing; ``NO_SINK``, no sink has written there, and the message
            names sinks nearby; ``OTHER_SINK``, a sink that writes no files keeps its ledger
            there; or the path or the options cannot be used.
    """
    return opening.open(path, of_active_session(spelling(path), storage_options))


def follow(
    path: str | PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    after: int | None = None,
    until: int | None = None,
    wait: Wait = 0,
) -> Iterator[FeedEntry]:
    """What each epoch has changed below ``path``, in the order of versions: the feed of the path.

    ``for entry in filesink.follow("/data/trips", after=17, wait="forever")`` has every entry once. Needs
    neither Spark nor the right to write.

    Args:
        path: see ``open``.
        storage_options: see ``open``.
        after: the version of the last entry that is done with; ``None`` for all that is remembered.
        until: the last version that is wanted; ``None`` for no end.
        wait: how long to wait for an entry after the newest one; ``"forever"``, or a duration, counted anew
            behind each entry.

    Raises:
        ConfigError: as from ``open``. The others when an entry is asked for: ``NO_VERSION``, there is no
            version ``after``.
        StateError: ``HISTORY_EXPIRED``, some of what comes next is not remembered any more; ``NO_INVENTORY``,
            ``ADOPTING``.
        StateCorruptError: the inventory is damaged; the message names the file.
        IdentityError: ``OTHER_INVENTORY``, the path was removed and written anew meanwhile.
    """
    return open(path, storage_options).follow(after, until=until, wait=wait)


def adopt(
    path: str | PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    progress: Progress | None = None,
) -> SinkDirectory:
    """Make the inventory of a path that was written by a release without one, or whose inventory is damaged.

    Lists all directories. What is lost is not named any more, and a file that is in another directory than it
    was written to does not count; ``filesink adopt`` shows before what would change. May be called while
    sinks write, and may be repeated. Snapshots can be read from the version of the adoption on.

    Args:
        path: see ``open``.
        storage_options: see ``open``.
        progress: called now and then, if given.

    Raises:
        ConfigError: as from ``open``; ``BAD_VALUE``.
        StateError: ``AT_WORK``, an epoch is decided but does not complete; ``CONCURRENT``, call again;
            ``DOUBLED``, a file is there twice, and nothing tells which is the copy.
        StateCorruptError: a ledger is damaged.
    """
    told = progress_of(progress)
    site = opening.site_of(path, of_active_session(spelling(path), storage_options))
    steps = {"list": "directories listed", "open_input": "files opened"}
    opening.adopt(replace(site, store=telling(lambda: site.store, told, steps)()))
    return SinkDirectory(_site=site)


def plan_adopt(
    path: str | PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    progress: Progress | None = None,
) -> AdoptionPlan:
    """What ``adopt`` would change now. Needs no right to write.

    Raises:
        ConfigError, StateError: as ``adopt``, but for ``AT_WORK``.
    """
    told = progress_of(progress)
    site = opening.site_of(path, of_active_session(spelling(path), storage_options))
    steps = {"list": "directories listed"}
    return opening.plan_adopt(replace(site, store=telling(lambda: site.store, told, steps)()))


def fsck(  # noqa: PLR0913 - a metastore and a table are one thing
    path: str | PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    depth: Depth = "ends",
    progress: Progress | None = None,
    metastore: Metastore | None = None,
    table: str | None = None,
    exporters: Sequence[Exported] = (),
) -> FsckReport:
    """What is wrong with ``path``: ledgers, inventory, listing and files are compared with each other.

    Needs neither Spark nor the right to write, and may run beside writers.

    Args:
        path: the base path of the sinks.
        storage_options: see ``open``.
        depth: ``"quick"`` only lists; ``"ends"`` also opens each file that ends with its number of rows;
            ``"deep"`` reads all of each file, with the checksums that its format has.
        progress: called now and then, if given.
        metastore: compared as well, if given: whether it knows each directory with files.
        table: of ``metastore``, ``"database.table"``.
        exporters: compared as well: whether what they keep names the files of its version, and a new one.

    Raises:
        ConfigError: as from ``filesink.open``; ``BAD_VALUE``, ``CONFLICT``.
        StorageError: the store does not answer.
        MetastoreError: the metastore does not answer, or has no such table.
    """
    return check.fsck(
        path,
        of_active_session(spelling(path), storage_options),
        depth=depth,
        progress=progress,
        metastore=metastore,
        table=table,
        exporters=exporters,
    )
