"""``filesink.retain``, ``rollback`` and ``erase``: operations on a path, for who knows only that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from filesink.arguments import instance_of
from filesink.commit.outcome import Outcome
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import CleanupError, ConfigError
from filesink.file_sink.report import EpochReport, report_of
from filesink.file_sink.tiers import FileTiers
from filesink.ledger.directory import ledger_ids
from filesink.ledger.identity import is_collected
from filesink.metastore.api import Metastore
from filesink.operations.copying.copy import Copy, CopyPlan, CopyReport
from filesink.operations.erasing.condition import parse
from filesink.operations.erasing.erase import Erase, Erasure, ErasurePlan
from filesink.operations.path_tiers import Announcing, path_tiers
from filesink.operations.progress import Progress, progress_of, telling
from filesink.operations.replacing.retain import Retain, RetentionPlan
from filesink.operations.replacing.retention import Retention
from filesink.operations.replacing.rollback import Rollback, RollbackPlan
from filesink.parts.committables import Committable
from filesink.ports import Ports
from filesink.sink_directory.opening import site_of
from filesink.spark.input.s3a import of_active_session
from filesink.storage.address import StoreAddress
from filesink.storage.base_path import spelling
from filesink.system import SystemClock, SystemIds, ThreadRunner, this_driver
from formats.parquet.writer import ParquetWriterFactory

Path = str | PathLike[str]
Options = Mapping[str, Any] | None


def plan_retain(
    path: Path, retention: Retention, storage_options: Options = None, *, progress: Progress | None = None
) -> RetentionPlan:
    """What ``retain`` would drop now. Needs no right to write.

    Raises:
        ConfigError, StateError: as ``retain``.
    """
    tiers, base_path = _sink(path, storage_options, Announcing())
    return _retain(_told(tiers, progress), retention, base_path).plan(SystemClock())


def retain(  # noqa: PLR0913 - a metastore and a table are one thing
    path: Path,
    retention: Retention,
    storage_options: Options = None,
    *,
    reader_grace: Duration = 0,
    metastore: Metastore | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> EpochReport | None:
    """Drop what ``retention`` does not keep, in one epoch; ``None`` if there is nothing to drop.

    May run beside a stream and beside batch writes that append. Only live files are dropped: not those of a
    stranger, nor what a stream holds back.

    Args:
        path: the base path of the sinks.
        retention: what is kept.
        storage_options: see ``filesink.open``.
        reader_grace: how long dropped files stay for readers of older versions, see ``with_reader_grace``.
        metastore: is told of directories that have lost files.
        table: of ``metastore``, ``"database.table"``.
        progress: told how far it is, as in ``filesink.fsck``.

    Raises:
        ConfigError: as from ``filesink.open``; ``NO_REMOVAL``; ``BAD_VALUE``, no directory tells a time.
        StateError: ``NO_INVENTORY``, call ``adopt`` first; ``ADOPTING``.
        ConcurrentDriverError: another operation, an overwrite or a compaction came first. Nothing was
            dropped.
        CleanupError: ``NOT_REMOVED``; all are dropped from the inventory, and some could not be removed.
    """
    tiers, base_path = _sink(path, storage_options, Announcing(metastore=metastore, table=table or ""))
    kept = replace(tiers, reader_grace_ms=parse_duration_ms(reader_grace, name="reader_grace", least=0))
    return _removed(_retain(_told(kept, progress), retention, base_path).run(_ports("retain")))


def plan_rollback(path: Path, version: int, storage_options: Options = None) -> RollbackPlan:
    """What ``rollback`` would do now. Needs no right to write.

    Raises:
        ConfigError, StateError: as ``rollback``.
    """
    tiers, base_path = _sink(path, storage_options, Announcing())
    return _rollback(tiers, version, base_path).plan(SystemClock())


def rollback(
    path: Path,
    version: int,
    storage_options: Options = None,
    *,
    metastore: Metastore | None = None,
    table: str | None = None,
) -> EpochReport | None:
    """Make the live files those of ``version`` again, in one epoch; ``None`` if they are.

    Files that became visible since are removed; those that went since come back as copies, while their bytes
    are there, as after a compaction with ``reader_grace``. Only files go back: the batches of a stream, and
    writes with a ``txn_id``, count as written. What is published meanwhile stays: stop the streams before.

    Args:
        path: the base path of the sinks.
        version: see ``SinkDirectory.snapshot``.
        storage_options: see ``filesink.open``.
        metastore: is told of directories whose files are others.
        table: of ``metastore``, ``"database.table"``.

    Raises:
        ConfigError: as from ``filesink.open``; ``NO_VERSION``; ``NO_REMOVAL``.
        StateError: ``FILES_GONE``, it names files of the version that are not there any more;
            ``HISTORY_EXPIRED``; ``AT_WORK``, call ``recover`` first; ``UNKNOWN_ROWS``; ``NO_INVENTORY``.
        ConcurrentDriverError: another operation, an overwrite or a compaction came first. Nothing was
            changed.
        CleanupError: ``NOT_REMOVED``, as from ``retain``.
    """
    tiers, base_path = _sink(path, storage_options, Announcing(metastore=metastore, table=table or ""))
    return _removed(_rollback(tiers, version, base_path).run(_ports("rollback")))


def plan_erase(
    path: Path,
    where: str,
    storage_options: Options = None,
    *,
    form: ParquetWriterFactory | None = None,
    progress: Progress | None = None,
) -> ErasurePlan:
    """What ``erase`` would do now. Needs no right to write, and reads what may have such rows.

    Raises:
        ConfigError, SchemaError, StateError: as ``erase``.
    """
    tiers, base_path = _sink(path, storage_options, Announcing())
    return replace(_erase(tiers, where, base_path, form), progress=progress_of(progress)).plan(SystemClock())


def erase(  # noqa: PLR0913 - a metastore and a table are one thing
    path: Path,
    where: str,
    storage_options: Options = None,
    *,
    form: ParquetWriterFactory | None = None,
    metastore: Metastore | None = None,
    table: str | None = None,
    progress: Progress | None = None,
) -> Erasure:
    """Take the rows that ``where`` names out of all live files, in one epoch, and search all again.

    For Parquet files. May run beside a stream: what it publishes meanwhile, or still holds back, is told as
    left. Call it again until ``Erasure.certificate`` has nothing to object.

    Args:
        path: the base path of the sinks.
        where: comparisons with ``AND`` between them: ``"customer_id = 7"``, ``"name IN ('a', 'b')"``,
            ``"left_on IS NOT NULL"``, ``"at < '2026-01-01T00:00:00Z'"``. A comparison with null is not true.
        storage_options: see ``filesink.open``.
        form: how files are written anew; ``None``: each with its own codec, unencrypted.
        metastore: is told of directories whose files are others.
        table: of ``metastore``, ``"database.table"``.
        progress: told how far it is, as in ``filesink.fsck``.

    Raises:
        ConfigError: ``CONDITION``, it cannot be read, or a column not be compared so; ``NO_COLUMN``;
            ``ERASE_FORMAT``, there are files of another format; ``NO_REMOVAL``; as from ``filesink.open``.
        SchemaError: ``TWO_SCHEMAS``, one column has two types.
        StateError: ``UNREADABLE``, ``FILE_ROWS`` or ``FILE_LOST``, a file is damaged, encrypted or not there;
            ``NO_INVENTORY``. Nothing was changed.
        StorageError: ``PERMISSION``, a file may not be read, or the store does not answer.
        ConcurrentDriverError: another operation, an overwrite or a compaction came first. Nothing was
            changed.
    """
    tiers, base_path = _sink(path, storage_options, Announcing(metastore=metastore, table=table or ""))
    erasing = replace(_erase(tiers, where, base_path, form), progress=progress_of(progress))
    return erasing.run(_ports("erase"))


def _erase(tiers: FileTiers, where: str, base_path: str, form: ParquetWriterFactory | None) -> Erase:
    if form is not None:
        instance_of(form, ParquetWriterFactory, name="form")
    return Erase(tiers=tiers, condition=parse(where), base_path=base_path, form=form)


def plan_copy(
    path: Path, target: Path, storage_options: Options = None, *, target_options: Options = None
) -> CopyPlan:
    """What ``copy`` would do now. Touches nothing.

    Raises:
        ConfigError, StateError: as ``copy``.
    """
    return _copy(path, target, storage_options, target_options).plan()


def copy(
    path: Path,
    target: Path,
    storage_options: Options = None,
    *,
    target_options: Options = None,
    progress: Progress | None = None,
) -> CopyReport:
    """Copy a path to another place or store: files, ledgers, inventory. The copy is a sink itself.

    A stream goes on there with a copy of its checkpoint that was made when the stream was stopped. May be
    called again after it was interrupted. Nothing in the target is overwritten.

    Args:
        path: the base path of the sinks. Stop its writers: the copy is of one moment, and asks up to five
            times for one.
        target: a place where nothing is, or an interrupted copy of ``path``.
        storage_options: see ``filesink.open``.
        target_options: the same for ``target``.
        progress: told how far it is, as in ``filesink.fsck``.

    Raises:
        ConfigError: ``TARGET_NOT_EMPTY``; as from ``filesink.open``; ``CONFLICT``, one path is in the other.
        StateError: ``AT_WORK``, an epoch is decided and not complete; ``FILE_LOST``, a file is not there as
            it was written; ``NO_INVENTORY``. Call it again when that is mended.
        ConcurrentDriverError: the path is written to faster than it is copied, or a file was replaced.
    """
    copying = _copy(path, target, storage_options, target_options)
    return replace(copying, progress=progress_of(progress)).run()


def _copy(path: Path, target: Path, storage_options: Options, target_options: Options) -> Copy:
    source = site_of(path, of_active_session(spelling(path), storage_options))
    place = spelling(target)
    address = StoreAddress(base_path=place, storage_options=of_active_session(place, target_options))
    ends = [f"{one.rstrip('/')}/" for one in (source.base_path, place)]
    if ends[0].startswith(ends[1]) or ends[1].startswith(ends[0]):
        raise ConfigError(
            f"'{source.base_path}' and '{place}': one is in the other. Nothing was copied", code="CONFLICT"
        )
    ports = Ports(
        clock=source.clock, ids=SystemIds(), runner=ThreadRunner(), who=this_driver("filesink copy")
    )
    return Copy(source=source, open_target=address, target_path=place, ports=ports)


def _rollback(tiers: FileTiers, version: int, base_path: str) -> Rollback:
    given: object = version
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ConfigError(f"version must be 0, 1, 2 …; got {repr(given)[:40]}", code="BAD_VALUE")
    return Rollback(tiers=tiers, version=given, base_path=base_path)


def _retain(tiers: FileTiers, retention: Retention, base_path: str) -> Retain:
    return Retain(
        tiers=tiers, retention=instance_of(retention, Retention, name="retention"), base_path=base_path
    )


def _sink(path: Path, storage_options: Options, announcing: Announcing) -> tuple[FileTiers, str]:
    options = of_active_session(spelling(path), storage_options)
    site = site_of(path, options)
    if any(is_collected(sink_id) for sink_id in ledger_ids(site.store)):
        raise ConfigError(
            f"'{site.base_path}' is the path of a CollectSink, whose rows go when its client has taken them. "
            "Nothing was changed",
            code="OTHER_SINK",
        )
    address = StoreAddress(base_path=site.base_path, storage_options=options)
    return path_tiers(address, announcing), site.base_path


def _told(tiers: FileTiers, progress: Progress | None) -> FileTiers:
    """With a store that tells what takes long where many files go."""
    steps = {"list": "directories listed", "delete_if_unchanged": "files removed"}
    return replace(tiers, address=telling(tiers.address, progress_of(progress), steps))


def _ports(what: str) -> Ports:
    return Ports(
        clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner(), who=this_driver(f"filesink {what}")
    )


def _removed(outcome: Outcome[Committable] | None) -> EpochReport | None:
    """The report, unless files are left that readers of directories see.

    Raises:
        CleanupError: ``NOT_REMOVED``.
    """
    report = None if outcome is None else report_of(outcome)
    if report is not None and report.not_removed:
        shown = ", ".join(f"'{path}'" for path in report.not_removed[:3])
        raise CleanupError(
            f"the epoch is complete, and {len(report.not_removed)} of "
            f"{len(report.replaced) + len(report.not_removed)} files could not be removed, such as {shown}: "
            "readers by versions see them no more, and readers of directories do. The log has the reasons. "
            "Later operations and overwrites try again; or remove them by hand",
            code="NOT_REMOVED",
        )
    return report
