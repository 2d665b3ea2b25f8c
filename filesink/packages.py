"""What is imported: our packages or a stranger's, and in which module each public name lives.

``formats`` and ``compaction`` are common names. A ``formats.py`` beside a program, or in the directory of a
Spark worker, comes first on the module path, and what fails then is an import somewhere deep in here.

Rules:
1. Asked before anything of these packages is imported, so that the code of a stranger is not run by us.
2. By Python's own search of its path, which it has to do anyway; no other look at the file system.
"""

from __future__ import annotations

import sys
import sysconfig
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from filesink.errors import ShadowedError, VersionError

_HOME = Path(__file__).parents[1]  # a directory, or a zip file


def refuse_strange_pythons() -> None:
    """Raise on Windows, and in a Python that was built without the global interpreter lock.

    Raises:
        VersionError: ``WINDOWS`` or ``FREE_THREADED``.
    """
    if sys.platform == "win32":
        raise VersionError(
            "filesink needs Linux or macOS, whose file systems have the steps that it publishes with; on "
            "Windows run Python in WSL",
            code="WINDOWS",
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise VersionError(
            f"'{sys.executable}' is a free-threaded Python, in which neither PySpark nor filesink was tried; "
            "run one with the global interpreter lock, such as python3.13 in place of python3.13t",
            code="FREE_THREADED",
        )


def refuse_shadows(*names: str) -> None:
    """Raise if another package than the one beside this is found under one of ``names``.

    One that was not installed beside this package cannot be shadowed, and is not asked for.

    Raises:
        ShadowedError: ``SHADOWED``; names the file that is found and the one that should be.
    """
    for name in names:
        ours = PathFinder.find_spec(name, [str(_HOME)])
        stranger = None if ours is None else _stranger(name, ours)
        if ours is not None and stranger is not None:
            raise ShadowedError(
                f"'import {name}' finds {stranger}, not what filesink was installed with, {_place(ours)}: "
                "rename yours, or run from another directory, so that filesink's is first on sys.path",
                code="SHADOWED",
            )


def _stranger(name: str, ours: ModuleSpec) -> str | None:
    """What an import gives, or has given, in place of ``ours``."""
    try:
        found = find_spec(name)
    except ValueError:  # it is in ``sys.modules`` without a word on where it came from
        return "a module that was made by hand"
    if found is None or _is_same(found, ours):
        return None  # where none is found, the import says so itself
    return _place(found)


def _is_same(one: ModuleSpec, other: ModuleSpec) -> bool:
    """Whether two searches have led to one file, be it through symbolic links."""
    places = {one.origin, other.origin}
    return None not in places and len({Path(str(place)).resolve() for place in places}) == 1


def _place(spec: ModuleSpec) -> str:
    """The file, in quotes; of a package without one, its directory."""
    return repr(spec.origin or next(iter(spec.submodule_search_locations or ()), "no file"))


#: Modules and the public names that ``filesink`` imports from them when one is first asked for.
_NAMES: Final = {
    "filesink.api.events": (
        "Changes EpochBegan EpochComplete EpochDecided EpochFailed EpochVisible ExportEnded "
        "FinishedFile HiddenFilesSwept Listener PartsMerged PartsRolled SinkEvent"
    ),
    "filesink.buckets.assigner": "BucketAssigner",
    "filesink.data_source.register": "register",
    "filesink.errors": (
        "BucketError CheckpointMismatchError CleanupError CommitConflictError CommitFailedError "
        "CommitStateUnknown CompactionError ConcurrentDriverError ConfigError DataError "
        "DeliveryError DependencyError EncoderError ExportError FilesinkError IdentityError "
        "InternalError JobError LetterError MetastoreConflictError MetastoreError RepeatedTxnError "
        "ReplayMismatchError ReplayTooOldError SchemaError SecurityError ShadowedError SourceError "
        "StagedDataLost StateCorruptError StateError StateVersionError StorageError "
        "TaskCancelledError VersionError"
    ),
    "filesink.exports.api": "Exporter ExportReport",
    "filesink.exports.delta.export": "DeltaExport",
    "filesink.exports.export": "drop_export export",
    "filesink.exports.iceberg.export": "IcebergExport",
    "filesink.exports.manifests.export": "ManifestExport",
    "filesink.exports.notifications.function": "FunctionNotification",
    "filesink.exports.notifications.kafka": "KafkaNotification",
    "filesink.exports.notifications.notification": "Notification",
    "filesink.exports.notifications.queues": "SnsNotification SqsNotification",
    "filesink.exports.notifications.webhook": "WebhookNotification",
    "filesink.exports.spark_metadata.export": "SparkMetadataExport",
    "filesink.file_sink.report": "EpochReport RecoveryReport SweepPlan TableReport",
    "filesink.file_source": "FileSource FileSourceBuilder StreamFormat",
    "filesink.metastore.api": "Metastore TableKind",
    "filesink.metastore.glue.metastore": "GlueCatalog",
    "filesink.metastore.hive.connection": "Kerberos",
    "filesink.metastore.hive.metastore": "HiveMetastore",
    "filesink.metastore.metastore_policy": "MetastorePolicy",
    "filesink.metastore.partition_commit": "PartitionCommit",
    "filesink.metastore.policies": (
        "CommitPolicy CommittedPartition ListenerPolicy PartitionPolicy SuccessFilePolicy"
    ),
    "filesink.metastore.tables_policy": "MetastoreTablesPolicy",
    "filesink.naming": "OutputFileConfig",
    "filesink.operations.changes": (
        "copy erase plan_copy plan_erase plan_retain plan_rollback retain rollback"
    ),
    "filesink.operations.copying.copy": "CopyPlan CopyReport",
    "filesink.operations.erasing.erase": "Erasure ErasurePlan Matching",
    "filesink.operations.erasing.left": "Left",
    "filesink.operations.fsck.finding": "Finding FsckReport",
    "filesink.operations.open_path": "adopt follow fsck open",
    "filesink.operations.replacing.retain": "DroppedFiles RetentionPlan",
    "filesink.operations.replacing.retention": "Retention",
    "filesink.operations.replacing.rollback": "RollbackPlan",
    "filesink.parts.dead_letters": "DeadLetters",
    "filesink.parts.part_file": "PartFileInfo",
    "filesink.parts.rolling": "CheckpointRollingPolicy RollingPolicy",
    "filesink.row_kind": "RowKind",
    "filesink.sink": "FileSink FileSinkBuilder",
    "filesink.sink_directory.directory": "SinkDirectory",
    "filesink.sink_directory.epochs": "Epoch",
    "filesink.sink_directory.feed": "FeedEntry",
    "filesink.sink_directory.live_files": "FileChanges LiveFile",
    "filesink.sink_directory.sink_states": "HeldPart SinkState",
    "filesink.sink_directory.snapshot": "Snapshot",
    "filesink.sink_directory.status": "PathStatus",
    "filesink.sinks.asynchronous": "Sending",
    "filesink.sinks.collect.position": "CollectPosition",
    "filesink.sinks.collect.results": "CollectResults",
    "filesink.sinks.collect.sink": "CollectSink",
    "filesink.sinks.doors": "SinkReport SparkSink",
    "filesink.sinks.http.service": "HttpAnswer HttpService",
    "filesink.sinks.http.sink": "HttpSink",
    "filesink.sinks.kafka.settings": "KafkaCluster",
    "filesink.sinks.kafka.sink": "KafkaSink",
    "filesink.sinks.postgres.settings": "PostgresServer PostgresTable",
    "filesink.sinks.postgres.sink": "PostgresSink",
    "filesink.sinks.store_ledger": "LedgerSink StoreLedger",
    "filesink.source.directories": "Root",
    "filesink.source.enumerators": "FileEnumerator FileEnumeratorProvider RecursiveFileEnumerator",
    "filesink.source.files": "FileSplit SourceFile",
    "filesink.source.splits": "FileSplitAssignerProvider SizeSplitAssigner SplitAssigner",
    "filesink.spark.catalog.metastore": "SparkCatalog",
    "filesink.spark.tables": "Tables",
    "formats": (
        "ArrowWriterFactory AvroWriterFactory BaseEncoder BinaryOutput BulkWriter BulkWriterFactory "
        "CompressWriterFactory Encoder ExcelWriterFactory FormatError LimitError LineEncoder "
        "OrcBulkWriterFactory OrcIndexes ParquetEncryption ParquetLayout ParquetWriterFactory "
        "ReadLimits ReadableFormat RowEncoder SequenceFileWriterFactory Split XmlWriterFactory "
        "bounded"
    ),
}
#: Public name to module.
HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
