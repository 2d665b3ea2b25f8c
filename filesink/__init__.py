"""filesink: exactly-once part files from batch and streaming PySpark DataFrames.

The one door for imports: what a program needs of ``formats`` is here, too. ``compaction`` stands above
this package and is imported by its own name.

``open`` is not in ``__all__``: ``from filesink import *`` would hide Python's own.

Beside the rooms there are single modules. On top are ``sink`` and ``file_source``, the builders that users
meet, and ``changes``, the door to functions of ``spark``. *The ground*, for each room, is ``errors``,
``ports``, ``row_kind``, ``save_mode``, ``system``, ``arguments``, ``durations``, ``framing``, ``naming``,
``packages``, ``retry`` and ``local_time``; every room may also use ``formats``, except where its ``__init__``
says otherwise.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from filesink.packages import HOMES, refuse_shadows, refuse_strange_pythons

refuse_strange_pythons()
refuse_shadows("formats", "compaction")

if TYPE_CHECKING:
    from filesink.api.events import (
        Changes,
        EpochBegan,
        EpochComplete,
        EpochDecided,
        EpochFailed,
        EpochVisible,
        ExportEnded,
        FinishedFile,
        HiddenFilesSwept,
        Listener,
        PartsMerged,
        PartsRolled,
        SinkEvent,
    )
    from filesink.buckets.assigner import BucketAssigner
    from filesink.data_source.register import register
    from filesink.errors import (
        BucketError,
        CheckpointMismatchError,
        CleanupError,
        CommitConflictError,
        CommitFailedError,
        CommitStateUnknown,
        CompactionError,
        ConcurrentDriverError,
        ConfigError,
        DataError,
        DeliveryError,
        DependencyError,
        EncoderError,
        ExportError,
        FilesinkError,
        IdentityError,
        InternalError,
        JobError,
        LetterError,
        MetastoreConflictError,
        MetastoreError,
        RepeatedTxnError,
        ReplayMismatchError,
        ReplayTooOldError,
        SchemaError,
        SecurityError,
        ShadowedError,
        SourceError,
        StagedDataLost,
        StateCorruptError,
        StateError,
        StateVersionError,
        StorageError,
        TaskCancelledError,
        VersionError,
    )
    from filesink.exports.api import Exporter, ExportReport
    from filesink.exports.delta.export import DeltaExport
    from filesink.exports.export import drop_export, export
    from filesink.exports.iceberg.export import IcebergExport
    from filesink.exports.manifests.export import ManifestExport
    from filesink.exports.notifications.function import FunctionNotification
    from filesink.exports.notifications.kafka import KafkaNotification
    from filesink.exports.notifications.notification import Notification
    from filesink.exports.notifications.queues import SnsNotification, SqsNotification
    from filesink.exports.notifications.webhook import WebhookNotification
    from filesink.exports.spark_metadata.export import SparkMetadataExport
    from filesink.file_sink.report import EpochReport, RecoveryReport, SweepPlan, TableReport
    from filesink.file_source import FileSource, FileSourceBuilder, StreamFormat
    from filesink.metastore.api import Metastore, TableKind
    from filesink.metastore.glue.metastore import GlueCatalog
    from filesink.metastore.hive.connection import Kerberos
    from filesink.metastore.hive.metastore import HiveMetastore
    from filesink.metastore.metastore_policy import MetastorePolicy
    from filesink.metastore.partition_commit import PartitionCommit
    from filesink.metastore.policies import (
        CommitPolicy,
        CommittedPartition,
        ListenerPolicy,
        PartitionPolicy,
        SuccessFilePolicy,
    )
    from filesink.metastore.tables_policy import MetastoreTablesPolicy
    from filesink.naming import OutputFileConfig
    from filesink.operations.changes import (
        copy,
        erase,
        plan_copy,
        plan_erase,
        plan_retain,
        plan_rollback,
        retain,
        rollback,
    )
    from filesink.operations.copying.copy import CopyPlan, CopyReport
    from filesink.operations.erasing.erase import Erasure, ErasurePlan, Matching
    from filesink.operations.erasing.left import Left
    from filesink.operations.fsck.finding import Finding, FsckReport
    from filesink.operations.open_path import adopt, follow, fsck
    from filesink.operations.open_path import open as open  # noqa: A004 - as gzip.open, and public for type checkers
    from filesink.operations.replacing.retain import DroppedFiles, RetentionPlan
    from filesink.operations.replacing.retention import Retention
    from filesink.operations.replacing.rollback import RollbackPlan
    from filesink.parts.dead_letters import DeadLetters
    from filesink.parts.part_file import PartFileInfo
    from filesink.parts.rolling import CheckpointRollingPolicy, RollingPolicy
    from filesink.row_kind import RowKind
    from filesink.sink import FileSink, FileSinkBuilder
    from filesink.sink_directory.directory import SinkDirectory
    from filesink.sink_directory.epochs import Epoch
    from filesink.sink_directory.feed import FeedEntry
    from filesink.sink_directory.live_files import FileChanges, LiveFile
    from filesink.sink_directory.sink_states import HeldPart, SinkState
    from filesink.sink_directory.snapshot import Snapshot
    from filesink.sink_directory.status import PathStatus
    from filesink.sinks.asynchronous import Sending
    from filesink.sinks.collect.position import CollectPosition
    from filesink.sinks.collect.results import CollectResults
    from filesink.sinks.collect.sink import CollectSink
    from filesink.sinks.doors import SinkReport, SparkSink
    from filesink.sinks.http.service import HttpAnswer, HttpService
    from filesink.sinks.http.sink import HttpSink
    from filesink.sinks.kafka.settings import KafkaCluster
    from filesink.sinks.kafka.sink import KafkaSink
    from filesink.sinks.postgres.settings import PostgresServer, PostgresTable
    from filesink.sinks.postgres.sink import PostgresSink
    from filesink.sinks.store_ledger import LedgerSink, StoreLedger
    from filesink.source.directories import Root
    from filesink.source.enumerators import FileEnumerator, FileEnumeratorProvider, RecursiveFileEnumerator
    from filesink.source.files import FileSplit, SourceFile
    from filesink.source.splits import FileSplitAssignerProvider, SizeSplitAssigner, SplitAssigner
    from filesink.spark.catalog.metastore import SparkCatalog
    from filesink.spark.tables import Tables
    from formats import (
        ArrowWriterFactory,
        AvroWriterFactory,
        BaseEncoder,
        BinaryOutput,
        BulkWriter,
        BulkWriterFactory,
        CompressWriterFactory,
        Encoder,
        ExcelWriterFactory,
        FormatError,
        LimitError,
        LineEncoder,
        OrcBulkWriterFactory,
        OrcIndexes,
        ParquetEncryption,
        ParquetLayout,
        ParquetWriterFactory,
        ReadableFormat,
        ReadLimits,
        RowEncoder,
        SequenceFileWriterFactory,
        Split,
        XmlWriterFactory,
        bounded,
    )

__all__ = [
    "ArrowWriterFactory",
    "AvroWriterFactory",
    "BaseEncoder",
    "BinaryOutput",
    "BucketAssigner",
    "BucketError",
    "BulkWriter",
    "BulkWriterFactory",
    "Changes",
    "CheckpointMismatchError",
    "CheckpointRollingPolicy",
    "CleanupError",
    "CollectPosition",
    "CollectResults",
    "CollectSink",
    "CommitConflictError",
    "CommitFailedError",
    "CommitPolicy",
    "CommitStateUnknown",
    "CommittedPartition",
    "CompactionError",
    "CompressWriterFactory",
    "ConcurrentDriverError",
    "ConfigError",
    "CopyPlan",
    "CopyReport",
    "DataError",
    "DeadLetters",
    "DeliveryError",
    "DeltaExport",
    "DependencyError",
    "DroppedFiles",
    "Encoder",
    "EncoderError",
    "Epoch",
    "EpochBegan",
    "EpochComplete",
    "EpochDecided",
    "EpochFailed",
    "EpochReport",
    "EpochVisible",
    "Erasure",
    "ErasurePlan",
    "ExcelWriterFactory",
    "ExportEnded",
    "ExportError",
    "ExportReport",
    "Exporter",
    "FeedEntry",
    "FileChanges",
    "FileEnumerator",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSinkBuilder",
    "FileSource",
    "FileSourceBuilder",
    "FileSplit",
    "FileSplitAssignerProvider",
    "FilesinkError",
    "Finding",
    "FinishedFile",
    "FormatError",
    "FsckReport",
    "FunctionNotification",
    "GlueCatalog",
    "HeldPart",
    "HiddenFilesSwept",
    "HiveMetastore",
    "HttpAnswer",
    "HttpService",
    "HttpSink",
    "IcebergExport",
    "IdentityError",
    "InternalError",
    "JobError",
    "KafkaCluster",
    "KafkaNotification",
    "KafkaSink",
    "Kerberos",
    "LedgerSink",
    "Left",
    "LetterError",
    "LimitError",
    "LineEncoder",
    "Listener",
    "ListenerPolicy",
    "LiveFile",
    "ManifestExport",
    "Matching",
    "Metastore",
    "MetastoreConflictError",
    "MetastoreError",
    "MetastorePolicy",
    "MetastoreTablesPolicy",
    "Notification",
    "OrcBulkWriterFactory",
    "OrcIndexes",
    "OutputFileConfig",
    "ParquetEncryption",
    "ParquetLayout",
    "ParquetWriterFactory",
    "PartFileInfo",
    "PartitionCommit",
    "PartitionPolicy",
    "PartsMerged",
    "PartsRolled",
    "PathStatus",
    "PostgresServer",
    "PostgresSink",
    "PostgresTable",
    "ReadLimits",
    "ReadableFormat",
    "RecoveryReport",
    "RecursiveFileEnumerator",
    "RepeatedTxnError",
    "ReplayMismatchError",
    "ReplayTooOldError",
    "Retention",
    "RetentionPlan",
    "RollbackPlan",
    "RollingPolicy",
    "Root",
    "RowEncoder",
    "RowKind",
    "SchemaError",
    "SecurityError",
    "Sending",
    "SequenceFileWriterFactory",
    "ShadowedError",
    "SinkDirectory",
    "SinkEvent",
    "SinkReport",
    "SinkState",
    "SizeSplitAssigner",
    "Snapshot",
    "SnsNotification",
    "SourceError",
    "SourceFile",
    "SparkCatalog",
    "SparkMetadataExport",
    "SparkSink",
    "Split",
    "SplitAssigner",
    "SqsNotification",
    "StagedDataLost",
    "StateCorruptError",
    "StateError",
    "StateVersionError",
    "StorageError",
    "StoreLedger",
    "StreamFormat",
    "SuccessFilePolicy",
    "SweepPlan",
    "TableKind",
    "TableReport",
    "Tables",
    "TaskCancelledError",
    "VersionError",
    "WebhookNotification",
    "XmlWriterFactory",
    "adopt",
    "bounded",
    "copy",
    "drop_export",
    "erase",
    "export",
    "follow",
    "fsck",
    "plan_copy",
    "plan_erase",
    "plan_retain",
    "plan_rollback",
    "register",
    "retain",
    "rollback",
]


def __getattr__(name: str) -> Any:
    """A public name or a room, imported when first asked for (PEP 562): every Python worker imports this."""
    if home := HOMES.get(name):
        found = globals()[name] = getattr(import_module(home), name)
        return found
    room = f"{__name__}.{name}"
    try:
        if not name.startswith("_"):
            return import_module(room)
    except ModuleNotFoundError as error:
        if error.name != room:
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
