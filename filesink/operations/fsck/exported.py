"""Compares exports with the path: whether each is at a version that is not old, and names its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from filesink.errors import ExportError, StateError
from filesink.operations.fsck.seen import Draft
from filesink.ports import Clock
from filesink.sink_directory.directory import SinkDirectory

_HANGS_AFTER_MS = 600_000  # until then its driver may just be at work, as for epochs


class Exported(Protocol):
    """What is asked of an exporter; see ``filesink.Exporter``."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def version(self, directory: SinkDirectory) -> int | None:
        """The version that it is at; ``None`` if there is nothing."""
        ...

    def named(self, directory: SinkDirectory) -> AbstractSet[str] | None:
        """The paths that it names; ``None`` if it cannot tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Exports:
    """Which exports are compared, with which path, and what tells how old an epoch is."""

    exporters: Sequence[Exported]
    directory: SinkDirectory
    clock: Clock

    def compare(self) -> Iterator[Draft]:
        """What is wrong with them, each by its name. What is not there is not wrong: nobody exports then."""
        for one in self.exporters:
            try:
                yield from self._compare(one)
            except ExportError as error:
                yield Draft("EXPORT_FOREIGN", one.name, error.message)

    def _compare(self, one: Exported) -> Iterator[Draft]:
        at, newest = one.version(self.directory), self.directory.version
        if at is None:
            return
        if at > newest:
            yield Draft("EXPORT_DISAGREES", one.name, f"it is at version {at:,}, and the path at {newest:,}")
            return
        if at < newest and self._is_old(at):
            yield Draft("EXPORT_BEHIND", one.name, f"it is at version {at:,}, and the path at {newest:,}")
        difference = self._difference(one, at)
        if difference and one.version(self.directory) == at:
            count, some = len(difference), min(difference)
            yield Draft(
                "EXPORT_DISAGREES",
                one.name,
                f"{count:,} files are either there or in version {at:,}, such as '{some}'",
            )

    def _is_old(self, at: int) -> bool:
        """Whether the epoch after ``at`` was visible ten minutes ago, or nobody remembers it."""
        try:
            following = next(self.directory.epochs(at), None)
        except StateError:
            return True
        visible_ms = 0 if following is None else following.visible.timestamp() * 1000
        return self.clock.now_ms() - visible_ms > _HANGS_AFTER_MS

    def _difference(self, one: Exported, at: int) -> AbstractSet[str]:
        """Paths that only one of both has; none if that version can be read no more."""
        named = one.named(self.directory)
        if named is None:
            return frozenset()
        try:
            files = self.directory.snapshot(at).files
        except StateError:  # it is behind, and that is told
            return frozenset()
        return named ^ {file.path for file in files}
