"""Every error that filesink raises.

    FilesinkError
    ├── ConfigError               the sink was built or started in a way that cannot work
    │   ├── DependencyError       an optional package is missing
    │   ├── JobError              a job file says what cannot be, or a job cannot do what it was told
    │   ├── ShadowedError         another package has the name of one that filesink was installed with
    │   └── VersionError          this Spark, Python or operating system is not supported
    ├── SchemaError               columns or types do not fit the format or the buckets
    ├── DataError                 a value of a record cannot be written
    │   ├── BucketError           a bucket id is not usable as a directory
    │   └── EncoderError          a user's encoder, assigner or policy failed
    ├── StorageError              a store did not do what it was asked
    │   ├── CommitConflictError   something else stands under a final name; it was not overwritten
    │   ├── StagedDataLost        bytes that an epoch has decided on are gone
    │   ├── CommitStateUnknown    it is not known whether a step took effect; nothing was deleted
    │   └── CleanupError          all is visible, and files that should be gone could not be removed
    ├── MetastoreError            a metastore did not answer, or not as asked; it may be tried again
    │   └── MetastoreConflictError  what a metastore holds does not fit; trying again cannot help
    ├── CommitFailedError         a committer still asked for retries after the last one
    ├── StateError                durable state cannot be used
    │   ├── StateCorruptError     checksum, magic or structure is wrong
    │   └── StateVersionError     written by a newer release
    ├── IdentityError             this query, uid or path does not belong to this ledger
    │   ├── CheckpointMismatchError   same batch id, other input
    │   ├── ReplayMismatchError       same batch, other number of rows
    │   ├── RepeatedTxnError          same txn_id, other data
    │   └── ReplayTooOldError         the batch is older than the records that are kept
    ├── SourceError               there is nothing to read, or not what was found or was asked for
    ├── CompactionError           small files could not be merged; they are kept as they are
    ├── ConcurrentDriverError     another driver went on with this sink
    ├── ExportError               a target of an export could not be brought to a version
    ├── DeliveryError             a service did not take what it was sent
    ├── LetterError               asynchronous work of a writer failed, or gave no sign of life
    ├── TaskCancelledError        nobody waits for the task any more in which a writer waits
    ├── SecurityError             a path would leave the base directory
    └── InternalError             Spark did not provide what it always provides, or a bug

Rules: one sentence that says what, where, why and what to do. No secret and no value of a
record ever enters a message; what a user's own code raises is repeated. ``code`` is stable and
meant for programs.
"""

from __future__ import annotations

#: Codes of ``StorageError`` that stay until somebody has mended their cause; others may pass by themselves.
_PERMANENT = frozenset(
    {
        *("PERMISSION", "READ_ONLY", "NAME_TOO_LONG", "WRONG_KIND", "CROSS_DEVICE"),
        *("NO_BUCKET", "REGION", "ARCHIVED", "CLOCK", "KMS_KEY", "REFUSED"),
        *("NO_CREDENTIALS", "WRONG_CREDENTIALS", "EXPIRED_CREDENTIALS", "SNAPSHOT_GONE"),
        *("POSTGRES_LOGIN", "POSTGRES_REFUSED"),
        *("KAFKA_LOGIN", "KAFKA_REFUSED", "KAFKA_RIGHTS", "KAFKA_TOPIC"),
    }
)


class FilesinkError(Exception):
    """Base of all errors of this package.

    Args:
        message: what happened, where, why, and what to do about it.
        code: a short stable word for programs, such as ``PATH_REQUIRED``.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    @property
    def is_permanent(self) -> bool:
        """Whether something has to be repaired first: trying the same again does not help."""
        return True

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross from Spark's Python workers to the driver.
        return _rebuild, (type(self), self.message, self.code)


def _rebuild(kind: type[FilesinkError], message: str, code: str) -> FilesinkError:
    return kind(message, code=code)


class ConfigError(FilesinkError, ValueError):
    """The sink was built or started in a way that cannot work."""


class DependencyError(ConfigError):
    """An optional package is missing; the message names the extra to install."""


class JobError(ConfigError):
    """A job file says what cannot be, or a job cannot do what it was told; see ``filesink.jobs``."""

    @property
    def is_permanent(self) -> bool:
        """All but ``JOB_TIMEOUT``: a slow micro-batch may be fast the next time."""
        return self.code != "JOB_TIMEOUT"


class ShadowedError(ConfigError, ImportError):
    """Python finds another package under the name of one that filesink was installed with.

    Also an ``ImportError``: ``import filesink`` raises it, and an ``except`` around that statement cannot
    name a class of ours.
    """


class VersionError(ConfigError, ImportError):
    """Spark, Python or the operating system is none that this release supports.

    Also an ``ImportError``, as ``ShadowedError`` is.
    """


class SchemaError(FilesinkError, ValueError):
    """Columns or types do not fit the format or the bucket assigner."""


class DataError(FilesinkError, ValueError):
    """A value of a record cannot be written."""


class BucketError(DataError):
    """A bucket id cannot be used as a directory below the base path."""


class EncoderError(DataError):
    """A user's encoder, bucket assigner or rolling policy failed."""


class StorageError(FilesinkError, OSError):
    """A store did not do what it was asked to do; ``code`` tells why (``NO_SPACE``, ``PERMISSION`` …)."""

    @property
    def is_permanent(self) -> bool:
        """See ``FilesinkError.is_permanent``; by the code."""
        return self.code in _PERMANENT

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"


class CommitConflictError(StorageError):
    """Another file already has a final name. It was not overwritten."""

    is_permanent = True


class StagedDataLost(StorageError):  # noqa: N818 - the field's word for it, as in Flink's and our docs
    """Bytes that an epoch has decided on are gone; see ``FileSink.recover(lost=…)``."""

    is_permanent = True


class CommitStateUnknown(StorageError):  # noqa: N818 - Iceberg's name for the same outcome
    """It is not known whether a step took effect. Nothing was deleted; restart to resolve."""


class CleanupError(StorageError):
    """Everything is visible, but some replaced files could not be removed: readers see both."""


class MetastoreError(FilesinkError, OSError):
    """A metastore did not do what it was asked to do, or it is not known whether it did."""

    is_permanent = False

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"


class MetastoreConflictError(MetastoreError):
    """What a metastore holds does not fit: another location, other keys, no such table."""

    is_permanent = True


class CommitFailedError(FilesinkError):
    """A committer still asked for retries after the last one; the epoch stays decided."""


class StateError(FilesinkError):
    """Durable state cannot be used."""


class StateCorruptError(StateError):
    """Checksum, magic or structure of a durable value is wrong."""


class StateVersionError(StateError):
    """A durable value was written by a newer release."""


class IdentityError(FilesinkError):
    """This query, uid or path does not belong to this ledger."""


class CheckpointMismatchError(IdentityError):
    """A decided micro-batch came back with other input offsets."""


class ReplayMismatchError(IdentityError):
    """A decided micro-batch came back with another number of rows."""


class RepeatedTxnError(IdentityError):
    """A ``txn_id`` came back with other data than it was written with."""


class ReplayTooOldError(IdentityError):
    """A micro-batch came back that is older than the records the ledger keeps."""


class CompactionError(FilesinkError):
    """Small files could not be merged. They are kept as they are."""


class SourceError(FilesinkError):
    """A source has nothing to read, or a file is not what it was when it was found."""


class ConcurrentDriverError(FilesinkError):
    """Another driver has continued this sink; what this one had prepared was discarded."""


class ExportError(FilesinkError):
    """What is kept beside the files of a path, such as the log of a table, could not be brought to a version.

    The files are visible all the same, and the target is at the version it was; see ``filesink.export``.
    """


class DeliveryError(FilesinkError):
    """A service did not take what it was sent. What it has taken before, it will be sent again."""

    @property
    def is_permanent(self) -> bool:
        """See ``FilesinkError.is_permanent``; by the code."""
        return self.code != "RETRIES"


class LetterError(FilesinkError):
    """Asynchronous work of a writer failed, or gave no sign of life."""


class TaskCancelledError(FilesinkError):
    """Nobody waits for this task any more: its job was cancelled, or another attempt was faster."""


class SecurityError(FilesinkError):
    """A path would leave the base directory, or leads through a symbolic link."""


class InternalError(FilesinkError):
    """Spark did not provide what it always provides, or filesink has a bug."""
