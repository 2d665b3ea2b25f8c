"""What a source reads, and how: everything that a user has chosen. A value that is pickled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
from filesink.source.reading.plan import Reading, ReadPlan
from filesink.source.reading.schemas import schema_of_files
from filesink.source.splits import SizeSplitAssigner, SplitAssigner, SplitPlanner
from filesink.source.streams import FileStream, FoundFiles, Limit, OneRun
from filesink.storage.open import open_store
from filesink.storage.retrying import RetryingStore


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
    """

    state: StateLocation | None = None
    pace: Pace = field(default_factory=Pace)
    limit: Limit = field(default_factory=Limit)
    after: AfterReading = field(default_factory=AfterReading)
    is_static: bool = False


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
        """What is there now."""
        return self.enumerator.enumerate_files(self.roots)

    def schema(self) -> pa.Schema:
        """The columns of the files, of their directories, and what is wanted beside them.

        Raises:
            SourceError: ``NO_FILES``, ``NO_READER``, ``MIXED_FORMATS``, ``DAMAGED``.
            SchemaError: ``SCHEMA_REQUIRED``, ``SCHEMA_CONFLICT``.
        """
        return self.schema_of(self._there())

    def schema_of(self, files: Iterable[SourceFile]) -> pa.Schema:
        """As ``schema``, of ``files``, of which there is at least one."""
        return schema_of_files(self.roots, files, self.reading)

    def batch(self, schema: pa.Schema) -> tuple[ReadPlan, list[list[FileSplit]]]:
        """How all that is there now is read, and by which tasks.

        Raises:
            SourceError: as ``schema``.
        """
        files = self.there()
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

    def stream(self, *, clock: Clock, ids: Ids) -> FileStream:
        """The files of a stream.

        Raises:
            ConfigError: ``STATE_LOCATION``, it has none; ``CONFLICT``.
        """
        chosen, state = self.following, self.check_stream()
        store = RetryingStore(open_store(state.path, state.storage_options), clock)
        log = DiscoveryLog(store, ids=ids)

        def open_log() -> None:
            store.prepare()
            log.open([str(root) for root in self.roots])

        tidying = None
        if chosen.after.action is not Action.KEEP:
            tidying = Tidying(log, store, roots=self.roots, after=chosen.after)
        discovery = Discovery(log, self.files, clock=clock, pace=chosen.pace)
        found = FoundFiles(discovery, open_log=open_log, tidying=tidying)
        return OneRun(found) if chosen.is_static else found

    def check_stream(self) -> StateLocation:
        """Where a stream keeps its log; raises as ``stream``. Asks no store."""
        if self.following.state is None:
            raise ConfigError(
                "a stream needs a directory of its own, where it notes which files it has found: call "
                "with_state_location(…), or set option 'stateLocation', beside the checkpoint for instance",
                code="STATE_LOCATION",
            )
        self.following.after.check(self.roots)
        return self.following.state

    def there(self) -> list[SourceFile]:
        """The files that are there now, at least one.

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
            raise SourceError(
                f"there is nothing to read at {', '.join(map(str, self.roots))}: no such path, or no visible "
                "file below it that fits the patterns. Names that begin with '.' or '_' are hidden",
                code="NO_FILES",
            )
        yield first
        yield from found
