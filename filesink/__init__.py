"""filesink: exactly-once part files from batch and streaming PySpark DataFrames."""

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
    DependencyError,
    EncoderError,
    FilesinkError,
    IdentityError,
    InternalError,
    MetastoreConflictError,
    MetastoreError,
    RepeatedTxnError,
    ReplayMismatchError,
    ReplayTooOldError,
    SchemaError,
    SecurityError,
    StagedDataLost,
    StateCorruptError,
    StateError,
    StateVersionError,
    StorageError,
    VersionError,
)
from filesink.file_sink.report import EpochReport, FinishedFile, RecoveryReport, SweepPlan
from filesink.metastore.api import Metastore, TableKind
from filesink.metastore.glue.metastore import GlueCatalog
from filesink.metastore.hive.connection import Kerberos
from filesink.metastore.hive.metastore import HiveMetastore
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import (
    CommittedPartition,
    ListenerPolicy,
    PartitionPolicy,
    SuccessFilePolicy,
)
from filesink.naming import OutputFileConfig
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.part_file import PartFileInfo
from filesink.parts.rolling import CheckpointRollingPolicy, RollingPolicy
from filesink.sink import FileSink, FileSinkBuilder
from filesink.spark.catalog.metastore import SparkCatalog

__all__ = [
    "BucketAssigner",
    "BucketError",
    "CheckpointMismatchError",
    "CheckpointRollingPolicy",
    "CleanupError",
    "CommitConflictError",
    "CommitFailedError",
    "CommitStateUnknown",
    "CommittedPartition",
    "CompactionError",
    "ConcurrentDriverError",
    "ConfigError",
    "DataError",
    "DeadLetters",
    "DependencyError",
    "EncoderError",
    "EpochReport",
    "FileSink",
    "FileSinkBuilder",
    "FilesinkError",
    "FinishedFile",
    "GlueCatalog",
    "HiveMetastore",
    "IdentityError",
    "InternalError",
    "Kerberos",
    "ListenerPolicy",
    "Metastore",
    "MetastoreConflictError",
    "MetastoreError",
    "MetastorePolicy",
    "OutputFileConfig",
    "PartFileInfo",
    "PartitionCommit",
    "PartitionPolicy",
    "RecoveryReport",
    "RepeatedTxnError",
    "ReplayMismatchError",
    "ReplayTooOldError",
    "RollingPolicy",
    "SchemaError",
    "SecurityError",
    "SparkCatalog",
    "StagedDataLost",
    "StateCorruptError",
    "StateError",
    "StateVersionError",
    "StorageError",
    "SuccessFilePolicy",
    "SweepPlan",
    "TableKind",
    "VersionError",
    "register",
]
