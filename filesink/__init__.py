"""filesink: exactly-once part files from batch and streaming PySpark DataFrames."""

from filesink.buckets import BucketAssigner
from filesink.dead_letters import DeadLetters
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
from filesink.metastore.api import Metastore, TableKind
from filesink.metastore.glue import GlueCatalog
from filesink.metastore.hive import HiveMetastore
from filesink.metastore.hive_connection import Kerberos
from filesink.metastore.metastore_policy import MetastorePolicy
from filesink.metastore.partition_commit import PartitionCommit
from filesink.metastore.policies import (
    CommittedPartition,
    ListenerPolicy,
    PartitionPolicy,
    SuccessFilePolicy,
)
from filesink.naming import OutputFileConfig
from filesink.part_file import PartFileInfo
from filesink.report import EpochReport, FinishedFile, RecoveryReport, SweepPlan
from filesink.rolling import CheckpointRollingPolicy, RollingPolicy
from filesink.sink import FileSink, FileSinkBuilder
from filesink.spark.catalog import SparkCatalog
from filesink.spark.register import register

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
