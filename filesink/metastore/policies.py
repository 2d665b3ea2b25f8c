"""What is done when a partition is announced. Policies run one after the other, in their order.

Rules: a policy may be called again for the same partition, after any failure and by another driver,
and looks for itself what was done already. It is called only when all files of the announcement are
visible and durable. It lives on the driver and is never sent to a task.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from filesink.arguments import instance_of
from filesink.buckets.table_assigner import TableBucketAssigner
from filesink.errors import (
    CommitFailedError,
    ConfigError,
    FilesinkError,
    MetastoreConflictError,
    MetastoreError,
    StorageError,
)
from filesink.metastore.service_errors import sentence
from filesink.naming import join
from filesink.storage.api import Store

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedPartition:
    """A partition that is announced.

    Attributes:
        bucket: its directory below the base path; ``""`` is the base path itself.
        values: of the partition columns in the directory's name; null is ``None``.
        location: its directory, as a URI.
        epoch: the slot that announces it.
        files: paths, relative to the base path, that this epoch has made visible.
        file_count, rows, bytes: what was added since it was last announced. ``0`` if an overwrite emptied the
            directory; any directory below the base path that had files can be reported in this way.
        may_be_repeated: whether this announcement may have been made before, in part or as a whole.
        is_dropped: whether the partition is to go, since retention, erasure or rollback has left it no file.
    """

    bucket: str
    values: Mapping[str, str | None]
    location: str
    epoch: int
    files: Sequence[str]
    file_count: int
    rows: int
    bytes: int
    may_be_repeated: bool
    is_dropped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a sink writes, and what.

    Attributes:
        base_path: as the user gave it.
        partition_columns: the columns that name the directories; ``None`` if the assigner does not tell.
        hive_format: what Hive calls the format of the files; ``None`` if it has no name for it.
        tables: how many tables lie below the base path; ``None`` if it is one.
        avro_schema: the JSON that the user gave for Avro files; ``None`` if their schema follows from the
            columns, or the files are not Avro.
    """

    store: Store
    base_path: str
    partition_columns: tuple[str, ...] | None = None
    tables: TableBucketAssigner | None = None
    hive_format: str | None = None
    avro_schema: str | None = None


class CommitPolicy(ABC):
    """One step of announcing. For steps of your own, ``PartitionPolicy`` is simpler.

    Attributes:
        failure: why the last ``commit_all`` returned partitions to try again; ``None`` if it is not known.
    """

    failure: Exception | None = None

    def prepare(self, site: Site, schema: pa.Schema) -> None:  # noqa: B027 - most have nothing to check
        """Check that announcing can work, before anything is written; ``schema`` is that of the input.

        Called when a stream starts and before each batch write.
        """

    def check(self, partitions: Sequence[CommittedPartition], site: Site) -> None:  # noqa: B027 - as above
        """Raise if ``partitions``, which are never empty, cannot be announced.

        Called before an epoch is decided that announces them, or that puts first files, see ``files``, into
        partitions that are announced later. Raising here still refuses the epoch; later nothing can.
        Errors that may pass, ``MetastoreError`` or ``StorageError`` without a conflict, do not refuse it.
        """

    @abstractmethod
    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        """Announce the partitions of an epoch, at least one; return those to try again. Replayable.

        Raises if trying again can never succeed. Called on the driver after all files of the epoch are
        visible.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Release everything; a later call may open it again."""


class PartitionPolicy(CommitPolicy):
    """Announces one partition at a time. Subclass it and override ``commit``."""

    @abstractmethod
    def commit(self, partition: CommittedPartition) -> None:
        """Announce one partition. Replayable.

        Raise ``StorageError`` or ``MetastoreError`` to be called again after a pause. Any other exception
        fails the epoch, which stays decided: the next start calls again.
        """

    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        """See ``CommitPolicy.commit_all``."""
        del site
        return [partition for partition in partitions if not self._done(partition)]

    def _done(self, partition: CommittedPartition) -> bool:
        try:
            self.commit(partition)
        except MetastoreConflictError:
            raise
        except (StorageError, MetastoreError) as error:
            log.warning("announcing '%s' failed: %s", partition.bucket, error)
            self.failure = error
            return False
        except FilesinkError:
            raise
        except Exception as error:  # raised again as ours; the epoch stays decided
            raise CommitFailedError(
                f"policy {type(self).__qualname__} failed with {type(error).__name__}: "
                f"{sentence(str(error))}. The files of '{partition.bucket}' are visible, and the next start "
                "announces them again",
                code="COMMIT_POLICY",
            ) from error
        return True


class SuccessFilePolicy(CommitPolicy):
    """Puts an empty file into the partition's directory; an existing one is left alone.

    Args:
        name: begins with ``_`` or ``.``, so that readers of data skip it.
    """

    def __init__(self, name: str = "_SUCCESS") -> None:
        instance_of(name, str, name="name of a success file")
        if name[:1] not in {"_", "."} or "/" in name or len(name) < 2 or not name.isprintable():
            raise ConfigError(
                f"success file {name[:80]!r} must begin with '_' or '.', or readers would take it for data",
                code="BAD_VALUE",
            )
        self._name = name

    def __repr__(self) -> str:
        return f"SuccessFilePolicy({self._name!r})"

    def commit_all(self, partitions: Sequence[CommittedPartition], site: Site) -> list[CommittedPartition]:
        """See ``CommitPolicy.commit_all``."""
        left = []
        for partition in partitions:
            if not partition.file_count:
                continue  # emptied by an overwrite: nothing new is whole
            try:
                site.store.put_if_absent(join(partition.bucket, self._name), b"")
            except StorageError as error:  # unknown too: the next call finds it there, or not
                log.warning("making the success file of '%s' failed: %s", partition.bucket, error)
                self.failure = error
                left.append(partition)
        return left


class ListenerPolicy(PartitionPolicy):
    """Calls a function for each partition that is announced.

    Args:
        listener: called at least once for each partition; may raise the same as ``PartitionPolicy.commit``.
    """

    def __init__(self, listener: Callable[[CommittedPartition], object]) -> None:
        if not callable(listener):
            raise ConfigError("ListenerPolicy takes a function", code="BAD_VALUE")
        self._listener = listener

    def __repr__(self) -> str:
        return f"ListenerPolicy({getattr(self._listener, '__qualname__', type(self._listener).__name__)})"

    def commit(self, partition: CommittedPartition) -> None:
        """See ``PartitionPolicy.commit``."""
        self._listener(partition)
