"""What a source reads, and how: everything that a user has chosen. A value that is pickled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from filesink.errors import ConfigError, SourceError
from filesink.ports import Clock, Ids
from filesink.source.directories import Root
from filesink.source.discovery.after_reading import Action, AfterReading, Tidying
from filesink.source.discovery.discovery import Discovery, Pace
from filesink.source.discovery.log import DiscoveryLog
from filesink.source.enumerators import FileEnumerator, RecursiveFileEnumerator
from filesink.source.files import FileSplit, SourceFile
from filesink.source.reading.codes import check_alike, code_for
from filesink.source.reading.opening import snapshot_gone
from filesink.source.reading.plan import Missing, Reading, ReadPlan
from filesink.source.reading.schemas import schema_of_files, with_metadata
from filesink.source.sinks.awaiting import AwaitedSink
from filesink.source.sinks.following import FollowedSink, OnOverwrite, Start
from filesink.source.sinks.snapshots import SinkRoot, columns_of, sink_at
from filesink.source.splits import SizeSplitAssigner, SplitAssigner, SplitPlanner
from filesink.source.streams import FileStream, FoundFiles, Limit, OneRun
from filesink.storage.open import open_store
from filesink.storage.retrying import RetryingStore

log = logging.getLogger("filesink")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLocation:
    """Where a stream keeps the log of the files that it has found."""

    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How a stream goes on.

    Attributes:
        state: needed for directories that no sink has written.
        pace: when it looks for files.
        limit: of a batch.
        after: what becomes of files that were read.
        is_static: whether a run reads what is there when it starts, and nothing that comes later.
        start, on_overwrite: of the stream of a sink's directory; see there.
    """

    state: StateLocation | None = None
    pace: Pace = field(default_factory=Pace)
    limit: Limit = field(default_factory=Limit)
    after: AfterReading = field(default_factory=AfterReading)
    is_static: bool = False
    start: Start = field(default_factory=Start)
    on_overwrite: OnOverwrite = OnOverwrite.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """Everything that is chosen of a source. Asks no store before it is asked itself.

    Attributes:
        roots: at least one.
        enumerator, assigner: see there.
        reading, following: see there.
    """

    roots: tuple[Root, ...]
    enumerator: FileEnumerator = field(default_factory=RecursiveFileEnumerator)
    assigner: SplitAssigner = field(default_factory=SizeSplitAssigner)
    reading: Reading = field(default_factory=Reading)
    following: Following = field(default_factory=Following)

    def files(self) -> Iterator[SourceFile]:
        """What is there now, or was at the version that was chosen."""
        for root in self.roots:
            sink = self._sink(root)
            if sink is not None:
                yield from sink.files(self.reading.at)
            else:
                yield from self.enumerator.enumerate_files([root])

    def schema(self) -> pa.Schema:
        """The columns of the files, of their directories, and what is wanted beside them.

        Raises:
            SourceError: ``NO_FILES``, ``NO_READER``, ``MIXED_FORMATS``, ``DAMAGED``.
            SchemaError: ``SCHEMA_REQUIRED``, ``SCHEMA_CONFLICT``.
        """
        sink = self._only_sink()
        if sink is not None:
            return with_metadata(columns_of(sink.snapshot(self.reading.at), self.reading), self.reading)
        return self.schema_of(self._there())

    def pinned(self) -> SourcePlan:
        """The same, of the version of a sink's directory that is the newest now, if none was chosen."""
        sink = self._only_sink()
        if sink is None or self.reading.at is not None:
            return self
        return replace(self, reading=replace(self.reading, at=sink.directory.version))

    def check_kept(self) -> None:
        """Refuse a version of a sink's directory whose files were removed, for readers who would not say why.

        Raises:
            StorageError: ``SNAPSHOT_GONE``.
        """
        sink, at = self._only_sink(), self.reading.at
        if sink is not None and at is not None and self.reading.missing is not Missing.IGNORE:
            file = sink.first_gone(at)
            if file is not None:
                raise snapshot_gone(file, at)

    def on_stores(self, options: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]) -> SourcePlan:
        """The same with other options of its stores: what ``options`` makes of a path and those it has."""
        roots = [
            replace(root, storage_options=options(root.base, root.storage_options)) for root in self.roots
        ]
        state, after = self.following.state, self.following.after
        if state is not None:
            state = replace(state, storage_options=options(state.path, state.storage_options))
        if after.move_to:
            after = replace(after, storage_options={**options(after.move_to, after.storage_options)})
        following = replace(self.following, state=state, after=after)
        return replace(self, roots=tuple(roots), following=following)

    def _only_sink(self) -> SinkRoot | None:
        return self._sink(self.roots[0]) if len(self.roots) == 1 else None

    def _sink(self, root: Root) -> SinkRoot | None:
        """``root`` as the directory of a sink, if its versions are known or one of them is wanted."""
        sink = sink_at(root, self.enumerator)
        if sink is None or self.reading.at is not None or sink.has_inventory:
            return sink
        log.warning(
            "'%s' has no inventory, so its files are listed: of an epoch that becomes visible at this moment "
            "some files may be missing. filesink.adopt('%s') makes an inventory, once",
            root,
            root,
        )
        return None

    def schema_of(self, files: Iterable[SourceFile]) -> pa.Schema:
        """As ``schema``, of ``files``, of which there is at least one."""
        return schema_of_files(self.roots, files, self.reading)

    def batch(self, schema: pa.Schema) -> tuple[ReadPlan | None, list[list[FileSplit]]]:
        """How all that is there now is read, and by which tasks; ``None`` and none if there is nothing.

        Raises:
            SourceError: as ``schema``.
        """
        files = self.there()
        if not files:
            return None, []
        plan = self.read_plan(schema, files[:1])
        return plan, self.tasks(plan, files)

    def read_plan(self, schema: pa.Schema, files: Iterable[SourceFile]) -> ReadPlan:
        """How files like ``files`` are read; one is enough."""
        code = self.reading.code or code_for(file.path for file in files)
        return ReadPlan(roots=self.roots, code=code, schema=schema, reading=self.reading)

    def tasks(self, plan: ReadPlan, files: Iterable[SourceFile]) -> list[list[FileSplit]]:
        """The splits of each task that reads ``files``."""
        if self.reading.code is None:
            files = check_alike(plan.code, files)
        planner = SplitPlanner(
            roots=self.roots, code=plan.code, splitting=self.enumerator.splitting, assigner=self.assigner
        )
        return planner.tasks(files)

    def stream(self, *, clock: Clock, ids: Ids, columns: Collection[str] | None = None) -> FileStream:
        """The files of a stream.

        Args:
            clock: of the driver.
            ids: of the driver.
            columns: those that are read; ``None`` if the user has chosen them.

        Raises:
            ConfigError: ``STATE_LOCATION``, it has none; ``CONFLICT``.
        """
        stream = self._followed(columns) or self._awaited(columns, clock, ids)
        return OneRun(stream) if self.following.is_static else stream

    def _awaited(self, columns: Collection[str] | None, clock: Clock, ids: Ids) -> FileStream:
        """The files of a directory that may become that of a sink."""
        found = self._found_files(clock, ids, self._state())
        is_one = len(self.roots) == 1 and self.following.after.action is Action.KEEP
        return AwaitedSink(found, lambda: self._followed(columns)) if is_one else found

    def check_batch(self) -> None:
        """Raise ``ConfigError`` (``CONFLICT``) if the start of a stream was chosen."""
        if self.following.start != Start():
            raise ConfigError(
                "starting_at() says where a stream begins, and a batch reads a whole version: use as_of(…), "
                "or read_stream(…)",
                code="CONFLICT",
            )

    def check_stream(self) -> None:
        """Raise what ``stream`` would raise.

        Raises:
            ConfigError: ``CONFLICT``, too, if a version was chosen, which is for batches.
        """
        if self.reading.at is not None:
            raise ConfigError(
                "as_of() has a batch read a version, and a stream begins with one: use starting_at(…)",
                code="CONFLICT",
            )
        if self._followed(None) is None:
            self._state()

    def _followed(self, columns: Collection[str] | None) -> FileStream | None:
        sinks = [sink for root in self.roots if (sink := sink_at(root, self.enumerator)) is not None]
        if not sinks:
            return None
        chosen = self.following
        if len(self.roots) > 1 or chosen.after.action is not Action.KEEP:
            raise ConfigError(
                f"'{sinks[0].root}' is the directory of a sink: a stream follows one such path, and removes "
                "nothing there. Give each path a stream of its own, and union them; old files of a sink go "
                "by its own means",
                code="CONFLICT",
            )
        return FollowedSink(sinks[0], start=chosen.start, on_overwrite=chosen.on_overwrite, columns=columns)

    def _found_files(self, clock: Clock, ids: Ids, state: StateLocation) -> FoundFiles:
        chosen = self.following
        store = RetryingStore(open_store(state.path, state.storage_options), clock)
        log = DiscoveryLog(store, ids=ids)

        def open_log() -> None:
            store.prepare()
            log.open([str(root) for root in self.roots])

        tidying = None
        if chosen.after.action is not Action.KEEP:
            tidying = Tidying(log, store, roots=self.roots, after=chosen.after)
        discovery = Discovery(log, self.files, clock=clock, pace=chosen.pace)
        return FoundFiles(discovery, open_log=open_log, tidying=tidying)

    def _state(self) -> StateLocation:
        """Where a stream keeps its log."""
        if self.following.state is None:
            raise ConfigError(
                "a stream needs a directory of its own, where it notes which files it has found: call "
                "with_state_location(…), or set option 'stateLocation', beside the checkpoint for instance. "
                "Only the directory of a sink needs none, once the sink has begun: a stream with a state "
                "location waits for it",
                code="STATE_LOCATION",
            )
        self.following.after.check(self.roots)
        return self.following.state

    def there(self) -> list[SourceFile]:
        """The files that are there now, at least one, unless the sink of the path has emptied it.

        Raises:
            SourceError: ``NO_FILES``.
        """
        return [*self._there()]

    def _there(self) -> Iterator[SourceFile]:
        found = self.files()
        if len(self.roots) > 1:  # one may lie below another
            found = iter({file.path: file for file in found}.values())
        first = next(found, None)
        if first is None:
            sink = self._only_sink()
            if sink is not None and sink.is_emptied(self.reading.at):
                return
            raise SourceError(
                f"there is nothing to read at {', '.join(map(str, self.roots))}: no such path, or no visible "
                "file below it that fits the patterns. Names that begin with '.' or '_' are hidden",
                code="NO_FILES",
            )
        yield first
        yield from found
