"""filesink: exactly-once part files from batch and streaming PySpark DataFrames."""

from filesink.buckets import BucketAssigner
from filesink.errors import (
    BucketError,
    CheckpointMismatchError,
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
from filesink.naming import OutputFileConfig
from filesink.part_file import PartFileInfo
from filesink.report import EpochReport, FinishedFile, RecoveryReport, SweepPlan
from filesink.rolling import CheckpointRollingPolicy, RollingPolicy
from filesink.sink import FileSink, FileSinkBuilder
from filesink.spark.register import register

__all__ = [
    "BucketAssigner",
    "BucketError",
    "CheckpointMismatchError",
    "CheckpointRollingPolicy",
    "CommitConflictError",
    "CommitFailedError",
    "CommitStateUnknown",
    "CompactionError",
    "ConcurrentDriverError",
    "ConfigError",
    "DataError",
    "DependencyError",
    "EncoderError",
    "EpochReport",
    "FileSink",
    "FileSinkBuilder",
    "FilesinkError",
    "FinishedFile",
    "IdentityError",
    "InternalError",
    "OutputFileConfig",
    "PartFileInfo",
    "RecoveryReport",
    "ReplayMismatchError",
    "ReplayTooOldError",
    "RollingPolicy",
    "SchemaError",
    "SecurityError",
    "StagedDataLost",
    "StateCorruptError",
    "StateError",
    "StateVersionError",
    "StorageError",
    "SweepPlan",
    "VersionError",
    "register",
]
