"""What a file source is made of, and the methods that choose it; ``filesink.file_source`` adds ``build``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self, cast

from filesink.arguments import choice, instance_of, one_of
from filesink.durations import Duration, parse_duration_ms
from filesink.errors import ConfigError
from filesink.source.discovery.after_reading import Action, AfterReading
from filesink.source.enumerators import FileEnumerator
from filesink.source.reading.plan import METADATA, BadRecords, Missing, Union
from filesink.source.sinks.following import OnOverwrite, Start
from filesink.source.source_plan import SourcePlan, StateLocation
from filesink.source.splits import SplitAssigner
from filesink.storage.base_path import check_base_path
from formats.errors import FormatError
from formats.sizes import parse_size


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SourceBuilder:
    """Collects what a ``FileSource`` is made of. Immutable: every method returns a new builder."""

    plan: SourcePlan
    schema: Any = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)

    def monitor_continuously(self, interval: Duration) -> Self:
        """Have a stream look for new files, with so much time at least between two looks.

        Args:
            interval: ``int`` is milliseconds. ``0`` looks at each trigger.
        """
        ms = parse_duration_ms(interval, name="the interval of monitor_continuously", least=0)
        following = self.plan.following
        return self._following(pace=replace(following.pace, interval_ms=ms), is_static=False)

    def process_static_file_set(self) -> Self:
        """Have a stream read what is there when it starts, and nothing that comes later. The default."""
        return self._following(is_static=True)

    def set_file_enumerator(self, file_enumerator: FileEnumerator) -> Self:
        """Choose which files are read; by default all visible ones below the paths."""
        chosen = instance_of(file_enumerator, FileEnumerator, name="file_enumerator")
        return replace(self, plan=replace(self.plan, enumerator=chosen))

    def set_split_assigner(self, split_assigner: SplitAssigner) -> Self:
        """Choose how splits are grouped into tasks; by default into tasks of about 128 MiB."""
        chosen = instance_of(split_assigner, SplitAssigner, name="split_assigner")
        return replace(self, plan=replace(self.plan, assigner=chosen))

    def with_schema(self, schema: Any) -> Self:
        """Say which columns the files have: a ``StructType``, or DDL such as ``"id BIGINT, name STRING"``.

        Needed for formats whose files do not say it, such as JSON and CSV.
        """
        if not (isinstance(schema, str) and schema.strip()) and not hasattr(schema, "fieldNames"):
            raise ConfigError(
                "a schema is a StructType, or text such as 'id BIGINT, name STRING', got "
                f"{type(schema).__name__}",
                code="BAD_VALUE",
            )
        return replace(self, schema=schema)

    def with_merged_schema(self) -> Self:
        """Take the columns of all files together, by name, where no schema is given. Opens each file."""
        return self._reading(union=Union.ALL)

    def with_metadata_columns(self, *names: Literal["_file", "_bucket", "_version"]) -> Self:
        """Add columns that tell where a record comes from."""
        for name in names:
            one_of(name, METADATA, name="a metadata column")
        return self._reading(metadata=names)

    def with_storage_options(self, **options: Any) -> Self:
        """Give options to the stores that are read, as fsspec's ``storage_options``.

        For a path on S3 they come before the session's own settings ``spark.hadoop.fs.s3a.*``.
        """
        return replace(self, storage_options={**self.storage_options, **options})

    def with_state_location(self, path: str | os.PathLike[str], **storage_options: Any) -> Self:
        """Say where a stream of a directory notes which files it has found: a directory of its own.

        Keep it as long as the checkpoint, on any store of ours. A stream of a sink's directory needs none.
        """
        state = StateLocation(path=check_base_path(path), storage_options=storage_options)
        return self._following(state=state)

    def with_max_files_per_trigger(self, files: int) -> Self:
        """Bound the files of a micro-batch."""
        given: object = files
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise ConfigError(
                f"the files of a trigger are a whole number > 0, got {repr(files)[:40]}", code="BAD_VALUE"
            )
        return self._following(limit=replace(self.plan.following.limit, files=files))

    def with_max_bytes_per_trigger(self, size: int | str) -> Self:
        """Bound the bytes of a micro-batch; a larger file makes one of its own."""
        try:
            parsed = parse_size(size, name="the bytes of a trigger")
        except FormatError as error:
            raise ConfigError(error.message, code="BAD_VALUE") from error
        return self._following(limit=replace(self.plan.following.limit, size=parsed))

    def with_min_file_age(self, age: Duration) -> Self:
        """Leave younger files for later looks of a stream: others may still be writing them."""
        ms = parse_duration_ms(age, name="the age of a file", least=0)
        return self._following(pace=replace(self.plan.following.pace, min_age_ms=ms))

    def after_reading(
        self,
        action: Literal["keep", "move", "delete"],
        *,
        move_to: str | os.PathLike[str] | None = None,
        **storage_options: Any,
    ) -> Self:
        """Say what becomes of files that a stream has read, once its checkpoint has what was in them.

        Args:
            action: ``"move"`` copies a file through the driver, then removes it.
            move_to: a directory outside of what is read, for ``"move"``.
            **storage_options: of its store.
        """
        after = AfterReading(
            action=choice(Action, action, "after_reading"),
            move_to="" if move_to is None else check_base_path(move_to),
            storage_options=storage_options,
        )
        after.check(self.plan.roots)
        return self._following(after=after)

    def as_of(self, at: int | datetime) -> Self:
        """Have a batch read a version of a sink's directory, or what was there at a moment.

        Args:
            at: a version, or a moment with a time zone; see ``SinkDirectory.snapshot``.
        """
        return self._reading(at=_version_or_moment(at, name="at"))

    def starting_at(self, start: int | datetime | Literal["latest"]) -> Self:
        """Say where a new stream of a sink's directory begins; by default with what is there.

        Args:
            start: the first version that is read; the first moment whose epochs are; or ``"latest"`` for
                what comes from now on.
        """
        if start == "latest":
            return self._following(start=Start(is_latest=True))
        found = _version_or_moment(start, name="start")
        return self._following(
            start=Start(time=found) if isinstance(found, datetime) else Start(version=found)
        )

    def on_overwrite(self, action: Literal["fail", "new_rows"]) -> Self:
        """Say what a stream of a sink's directory does when files are replaced that it may have read.

        ``"fail"`` (default) raises ``SourceError`` (``OVERWRITTEN``); ``"new_rows"`` reads the rows of the
        overwrite like any others.
        """
        return self._following(on_overwrite=choice(OnOverwrite, action, "on_overwrite"))

    def on_bad_record(self, mode: Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]) -> Self:
        """Say what becomes of records that cannot be read; by default the read fails.

        Lines that are not compressed are told apart one by one; of other files what comes behind the first
        bad record is left out. ``"PERMISSIVE"`` adds the column ``_rescued``.
        """
        return self._reading(bad_records=choice(BadRecords, mode, "on_bad_record"))

    def on_missing_file(self, action: Literal["fail", "ignore"]) -> Self:
        """Say what becomes of a file that vanished since it was found; by default the read fails."""
        return self._reading(missing=choice(Missing, action, "on_missing_file"))

    def _reading(self, **chosen: Any) -> Self:
        return replace(self, plan=replace(self.plan, reading=replace(self.plan.reading, **chosen)))

    def _following(self, **chosen: Any) -> Self:
        return replace(self, plan=replace(self.plan, following=replace(self.plan.following, **chosen)))

    @property
    def label(self) -> str:
        """Paths and format, for people; no option."""
        code = self.plan.reading.code
        of = f" as {type(code).__name__}" if code is not None else ""
        return f"of {', '.join(map(str, self.plan.roots))}{of}"


def _version_or_moment(given: object, *, name: str) -> int | datetime:
    is_moment = isinstance(given, datetime) and given.tzinfo is not None
    is_version = isinstance(given, int) and not isinstance(given, bool) and given >= 0
    if is_moment or is_version:
        return cast("int | datetime", given)
    raise ConfigError(
        f"{name} must be a version, 0, 1, 2 …, or a datetime with a time zone, got {repr(given)[:40]}",
        code="BAD_VALUE",
    )
