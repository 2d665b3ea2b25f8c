"""What a user chooses: when small files are merged, and how large the merged files become."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from compaction.contract import BaseFileCompactor
from compaction.stage import CompactParts
from compaction.trigger import Trigger
from filesink.durations import parse_duration_ms
from filesink.errors import ConfigError
from filesink.parts.file_format import code_of
from filesink.parts.stages.merger import SinkFiles
from filesink.parts.stages.merging import Merging
from filesink.parts.stages.open_parts import Part
from formats.errors import FormatError
from formats.sizes import parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCompactStrategy:
    """Merges the small files of a bucket when any of its conditions holds, and when the input ends.

    Attributes:
        size_threshold: merge once the waiting files have this size together; bytes or ``"128MiB"``. It is
            also the target size of merged files. A file that is already as large is published as it is.
        checkpoints: merge in this epoch, counted from 1 for the epoch in which the oldest waiting file was
            closed. The name is Flink's; an epoch is a micro-batch, or a step of the sink without input.
        max_age: merge once the first record of the oldest waiting file is this old; ``int`` is
            milliseconds. Needs no new data: it bounds how long records stay invisible.
        max_concurrent: how many merges of an epoch run at a time, at most.

    Raises:
        ConfigError: ``COMPACTION``, there is no condition; ``BAD_VALUE``, a condition can never hold.
    """

    size_threshold: int | str | None = None
    checkpoints: int | None = None
    max_age: int | str | timedelta | None = None
    max_concurrent: int | None = None

    def __post_init__(self) -> None:
        if self.size_threshold is None and self.checkpoints is None and self.max_age is None:
            raise ConfigError(
                "FileCompactStrategy needs at least one of size_threshold, checkpoints and max_age: without "
                "any, small files would stay invisible until the input ends",
                code="COMPACTION",
            )
        _check_number(self.checkpoints, "checkpoints")
        _check_number(self.max_concurrent, "max_concurrent")
        self.trigger()

    def trigger(self) -> Trigger:
        """The conditions in bytes, epochs and milliseconds."""
        return Trigger(
            size=None if self.size_threshold is None else _size(self.size_threshold),
            epochs=self.checkpoints,
            age_ms=None if self.max_age is None else parse_duration_ms(self.max_age, name="max_age"),
        )

    def stage(self, compactor: BaseFileCompactor, files: SinkFiles) -> CompactParts:
        """See ``filesink.parts.stages.closed_parts.CompactStrategy``."""
        if not isinstance(compactor, BaseFileCompactor):
            raise ConfigError(
                f"enable_compact takes a FileCompactor, got {type(compactor).__name__}; choose one of "
                "FileCompactor.concat_file_compactor(), .record_wise_file_compactor() and "
                ".identical_file_compactor()",
                code="BAD_VALUE",
            )
        compactor.check(files.format)
        merging = Merging(
            files=files,
            combine=compactor.combine(files),
            on_driver=compactor.on_driver,
            at_once=self.max_concurrent,
        )
        own = code_of(files.format).signature()
        return CompactParts(self.trigger(), merging, key=partial(_key, compactor, own))


def _key(compactor: BaseFileCompactor, own: str, part: Part) -> Hashable:
    """The compactor's key for files of the sink's present format and options, ``own``.

    A part in another format or with other options is published as it is: this compactor could not read it,
    or joining its bytes would not be enough.
    """
    form, _, _columns = part[-1].signature.rpartition("#")
    return compactor.key(part) if form == own else part[0].group


def _size(value: int | str) -> int:
    try:
        return parse_size(value, name="size_threshold")
    except FormatError as error:
        raise ConfigError(error.message, code="BAD_VALUE") from error


def _check_number(value: object, name: str) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError(f"{name} must be a whole number > 0, got {repr(value)[:80]}", code="BAD_VALUE")
