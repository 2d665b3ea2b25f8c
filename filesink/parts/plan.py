"""How a sink writes: everything a writer needs but its task and its store. Crosses to the tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from filesink.buckets.contract import BaseBucketAssigner
from filesink.errors import ConfigError
from filesink.naming import OutputFileConfig
from filesink.parts import dead_letters, file_format
from filesink.parts.bucket import Closed
from filesink.parts.dead_letters import DeadLetters
from filesink.parts.file_format import BulkFormat, FileFormat
from filesink.parts.rolling import RollingPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterLimits:
    """What one task may keep open at a time.

    Attributes:
        memory: bytes of records that wait in memory, over all buckets. Beyond it the largest buffers are
            written out first; all of them, if the records that wait are of too many buckets. Records that
            are still to be routed may take up to a quarter more.
        open_files: files with a descriptor; beyond it the largest are closed first.
    """

    memory: int = 128 << 20
    open_files: int = 400

    def __post_init__(self) -> None:
        given: tuple[object, ...] = (self.memory, self.open_files)
        if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 1 for each in given):
            raise ConfigError("writer limits must be whole numbers greater than 0", code="BAD_VALUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a sink writes: everything a writer needs except its task and its store.

    Attributes:
        watermark_column: the column whose latest time tasks report.
        watermark_zone: the time zone of its times that have none; ``None`` for the session's.
        on_bad_record: where records go that have no bucket, or that the encoder cannot write; ``None``
            fails the epoch.
    """

    format: FileFormat
    assigner: BaseBucketAssigner
    policy: RollingPolicy
    names: OutputFileConfig
    check_interval_ms: int
    closed: Closed = Closed.PENDING
    limits: WriterLimits = field(default_factory=WriterLimits)
    watermark_column: str | None = None
    watermark_zone: str | None = None
    on_bad_record: DeadLetters | None = None

    def of_dead_letters(self) -> Plan:
        """How to write the records that this plan cannot write."""
        return replace(
            self,
            format=BulkFormat(dead_letters.FORMAT),
            policy=RollingPolicy.on_checkpoint_rolling_policy(),
            names=OutputFileConfig(part_prefix=self.names.part_prefix, part_suffix=self._suffix_of_letters()),
            closed=Closed.PENDING,
            on_bad_record=None,
        )

    def _suffix_of_letters(self) -> str | None:
        """Another suffix than that of data: globs of DuckDB and polars look into ``_dead_letters``, too."""
        extension = dead_letters.FORMAT.extension
        same = self.names.suffix(file_format.code_of(self.format).extension).endswith(extension)
        return f"{extension}.dead" if same else None
