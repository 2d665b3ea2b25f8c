"""A sink of the tests: each task reports its values, and the committer puts them where all can see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filesink import StoreLedger
from filesink.api import (
    Announcements,
    JsonCodec,
    Sink,
    SinkAggregatedCommitter,
    SinkCommitter,
    SinkWriter,
)


@dataclass
class LetterWriter(SinkWriter):
    """Keeps the values; what it reports is all there is."""

    values: list[str] = field(default_factory=list)

    def write(self, batch, context):
        del context
        self.values += batch["value"].to_pylist()

    def prepare_commit(self, epoch):
        del epoch
        return self.values


@dataclass(frozen=True)
class LetterCommitter(SinkCommitter):
    """A file for each value, named by it."""

    directory: Path

    def commit(self, committables: Sequence[str]) -> list[str]:
        if not self.directory.exists():
            return list(committables)
        for value in committables:
            (self.directory / value).touch()
        return []


@dataclass(frozen=True)
class Announcer(SinkAggregatedCommitter):
    """A file for each epoch, named by its slot."""

    directory: Path

    def combine(self, epoch, prepared):
        del prepared
        return Announcements(now=[epoch.slot])

    def commit(self, aggregated: Sequence[int]) -> list[int]:
        for slot in aggregated:
            (self.directory / str(slot)).touch()
        return []


@dataclass(frozen=True)
class Letters(Sink):
    """Letters below ``directory``."""

    directory: Path
    uid: str | None = "letters"
    box: str = "box"
    announces: bool = False
    committable_codec = JsonCodec()

    def prepare(self, schema):
        del schema
        StoreLedger(self.directory).prepare()

    def create_writer(self, context):
        del context
        return LetterWriter()

    def create_committer(self):
        return LetterCommitter(self.directory / self.box)

    def open_ledger(self, sink_id):
        return StoreLedger(self.directory).open(sink_id)

    def create_aggregated_committer(self):
        return Announcer(self.directory / "announced") if self.announces else None

    @property
    def aggregated_codec(self):
        return JsonCodec()

    def closed(self) -> Letters:
        """The same sink, as long as its letter box is not there."""
        return replace(self, box="nowhere")

    def arrived(self) -> list[str]:
        """What has been committed, sorted."""
        return sorted(path.name for path in (self.directory / self.box).iterdir())
