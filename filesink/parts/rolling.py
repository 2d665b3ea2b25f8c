"""When the open part of a bucket is closed and the next one begun.

Rules: a policy answers one question about one part with a bool and never acts; it is pickled to the
tasks and must not keep state of a part. Names, defaults and comparisons are Flink's: sizes roll when
they are exceeded (``>``), times when they are reached (``>=``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, final

from filesink.durations import has_passed, parse_duration_ms
from filesink.errors import ConfigError, EncoderError, FilesinkError
from filesink.parts.part_file import PartFileInfo
from formats.errors import FormatError, told
from formats.sizes import parse_size

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """How much may be written to a part before ``should_roll_on_event`` is asked again.

    Writing continues while the part has grown by at most ``bytes`` and by fewer than ``rows`` records. The
    record that crosses a limit is written, too: one record may exceed ``bytes``. ``None`` means no limit.
    """

    bytes: int | None
    rows: int | None

    def __post_init__(self) -> None:
        if not (_is_limit(self.bytes, least=0) and _is_limit(self.rows, least=1)):
            raise ConfigError(
                f"an allowance needs bytes >= 0 and rows >= 1, got bytes={repr(self.bytes)[:40]}, "
                f"rows={repr(self.rows)[:40]}; correct RollingPolicy.allowance",
                code="BAD_VALUE",
            )


def _is_limit(value: object, *, least: int) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= least)


UNLIMITED = Allowance(bytes=None, rows=None)
ONE_RECORD = Allowance(bytes=0, rows=1)


class RollingPolicy(ABC):
    """Decides when a part file is closed. Subclass it for rules of your own.

    A subclass that overrides ``should_roll_on_event`` but not ``allowance`` is asked before every
    record: correct, but slow.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # An inherited allowance speaks for the inherited rule, not for the overriding one.
        if "should_roll_on_event" in vars(cls) and "allowance" not in vars(cls):
            cls.allowance = RollingPolicy.allowance  # type: ignore[method-assign]

    @abstractmethod
    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """Whether to close ``part`` before the next record is written.

        Never asked when no part is open, so every part holds at least one record; asked again after
        as much as ``allowance`` permits.
        """

    @abstractmethod
    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """Whether to close ``part`` at the end of the epoch. Asked once per epoch and open part."""

    @abstractmethod
    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        """Whether to close ``part`` at ``now_ms``, milliseconds of the driver's clock.

        Asked at the end of each epoch, and about every ``bucket_check_interval`` without one.
        """

    def allowance(self, part: PartFileInfo) -> Allowance:
        """How much may be written before ``should_roll_on_event`` must be asked again.

        Asked for a part just opened and after each answer "do not roll".
        """
        del part
        return ONE_RECORD

    @staticmethod
    def default_rolling_policy(
        part_size: int | str = "128MiB",
        rollover_interval: int | str | timedelta = 60_000,
        inactivity_interval: int | str | timedelta = 60_000,
    ) -> RollingPolicy:
        """Close by size, age and inactivity; parts may stay open across epochs. For row formats.

        Args:
            part_size: bytes, or ``"128MiB"``; a part is closed once it is larger.
            rollover_interval: a part is closed at this age; ``int`` is milliseconds.
            inactivity_interval: a part is closed this long after its last record.

        Raises:
            ConfigError: ``BAD_VALUE``.
        """
        return DefaultRollingPolicy(
            part_size=_size(part_size),
            rollover_interval_ms=parse_duration_ms(rollover_interval, name="rollover_interval"),
            inactivity_interval_ms=parse_duration_ms(inactivity_interval, name="inactivity_interval"),
        )

    @staticmethod
    def on_checkpoint_rolling_policy(
        part_size: int | str | None = None, max_rows: int | None = None
    ) -> CheckpointRollingPolicy:
        """Close every part at every epoch, and earlier by size or number of records.

        Args:
            part_size: bytes, or ``"128MiB"``; a part is closed once it is larger.
            max_rows: a part is closed when it holds this many records.

        Raises:
            ConfigError: ``BAD_VALUE``.
        """
        size = None if part_size is None else _size(part_size)
        return OnCheckpointRollingPolicy(part_size=size, max_rows=max_rows)


class CheckpointRollingPolicy(RollingPolicy):
    """A policy that closes every part at every epoch; the only kind that bulk formats accept."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "should_roll_on_checkpoint" in vars(cls):
            raise ConfigError(
                f"{cls.__qualname__} must not override should_roll_on_checkpoint: bulk formats rely on it "
                "being True; derive from RollingPolicy instead",
                code="FINAL",
            )

    @final
    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """Always True."""
        del part
        return True

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """False unless overridden."""
        del part
        return False

    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        """False unless overridden."""
        del part, now_ms
        return False

    def allowance(self, part: PartFileInfo) -> Allowance:
        """No limit, as long as ``should_roll_on_event`` is not overridden."""
        del part
        return UNLIMITED


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DefaultRollingPolicy(RollingPolicy):
    """See ``RollingPolicy.default_rolling_policy``. ``part_size`` in bytes, intervals in ms."""

    part_size: int
    rollover_interval_ms: int
    inactivity_interval_ms: int

    def __post_init__(self) -> None:
        _size(self.part_size)
        parse_duration_ms(self.rollover_interval_ms, name="rollover_interval")
        parse_duration_ms(self.inactivity_interval_ms, name="inactivity_interval")

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """Whether the part is larger than ``part_size``."""
        return part.size > self.part_size

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """Whether the part is larger than ``part_size``."""
        return part.size > self.part_size

    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        """Whether the part is old enough, or was left alone for long enough."""
        return has_passed(part.creation_time, now_ms, self.rollover_interval_ms) or has_passed(
            part.last_update_time, now_ms, self.inactivity_interval_ms
        )

    def allowance(self, part: PartFileInfo) -> Allowance:
        """The bytes that are left."""
        return Allowance(bytes=max(0, self.part_size - part.size), rows=None)

    def __repr__(self) -> str:
        return (
            f"DefaultRollingPolicy(part_size={self.part_size} B, rollover_interval="
            f"{self.rollover_interval_ms} ms, inactivity_interval={self.inactivity_interval_ms} ms)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnCheckpointRollingPolicy(CheckpointRollingPolicy):
    """See ``RollingPolicy.on_checkpoint_rolling_policy``. ``part_size`` in bytes."""

    part_size: int | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.part_size is not None:
            _size(self.part_size)
        if not _is_limit(self.max_rows, least=1):
            raise ConfigError(
                f"max_rows must be a number of records > 0, got {repr(self.max_rows)[:80]}", code="BAD_VALUE"
            )

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """Whether the part is larger than ``part_size`` or holds ``max_rows`` records."""
        too_large = self.part_size is not None and part.size > self.part_size
        return too_large or (self.max_rows is not None and part.rows >= self.max_rows)

    def allowance(self, part: PartFileInfo) -> Allowance:
        """The bytes and records that are left."""
        return Allowance(
            bytes=None if self.part_size is None else max(0, self.part_size - part.size),
            rows=None if self.max_rows is None else max(1, self.max_rows - part.rows),
        )

    def __repr__(self) -> str:
        size = None if self.part_size is None else f"{self.part_size} B"
        return f"OnCheckpointRollingPolicy(part_size={size}, max_rows={self.max_rows})"


@dataclass(frozen=True, slots=True)
class AnsweringPolicy(RollingPolicy):
    """Asks a user's policy; what that raises becomes an error that says whose code it was.

    Raises:
        EncoderError: ``POLICY``; each method.
    """

    policy: RollingPolicy

    def should_roll_on_event(self, part: PartFileInfo) -> bool:
        """See ``RollingPolicy``."""
        return self._ask(lambda: self.policy.should_roll_on_event(part))

    def should_roll_on_checkpoint(self, part: PartFileInfo) -> bool:
        """See ``RollingPolicy``."""
        return self._ask(lambda: self.policy.should_roll_on_checkpoint(part))

    def should_roll_on_processing_time(self, part: PartFileInfo, now_ms: int) -> bool:
        """See ``RollingPolicy``."""
        return self._ask(lambda: self.policy.should_roll_on_processing_time(part, now_ms))

    def allowance(self, part: PartFileInfo) -> Allowance:
        """See ``RollingPolicy``."""
        return self._ask(lambda: self.policy.allowance(part))

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except FilesinkError:
            raise
        except Exception as error:  # nothing is lost: the task or the upkeep fails before anything is decided
            raise EncoderError(
                f"rolling policy {type(self.policy).__qualname__} failed with "
                f"{told(error, by=self.policy)}; nothing of this batch was committed",
                code="POLICY",
            ) from error


def _size(value: int | str) -> int:
    """A size > 0 in bytes."""
    try:
        return parse_size(value, name="part_size")
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error
