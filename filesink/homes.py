"""In which module each public name lives; ``filesink`` imports it when it is first asked for. Pure data."""

from __future__ import annotations

from typing import Final

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
    "filesink.metastore.policies": "CommittedPartition ListenerPolicy PartitionPolicy SuccessFilePolicy",
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
        "ArrowWriterFactory AvroWriterFactory BinaryOutput BulkWriter BulkWriterFactory "
        "CompressWriterFactory Encoder ExcelWriterFactory FormatError LimitError "
        "OrcBulkWriterFactory OrcIndexes ParquetEncryption ParquetLayout ParquetWriterFactory "
        "ReadLimits RowEncoder SequenceFileWriterFactory XmlWriterFactory bounded"
    ),
}
HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
