"""The port of exports.

Rules of every exporter:
1. What the target has says which version it is at, in the same atomic step that brings it there. Nothing is
   remembered beside it, so that nobody can be told twice, or not at all.
2. Any driver may die at any moment, and any number of them may be at work: of two that bring a target to
   one version one does it, and the other finds it done.
3. A target that somebody else has made, or has changed since, is refused. It is never overwritten.
4. Files are only named. Their bytes are neither read nor written, if the target can do without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum

from filesink.arguments import instance_of
from filesink.errors import ConfigError, ExportError
from filesink.sink_directory.directory import SinkDirectory


class OnExportFailure(Enum):
    """What becomes of an epoch whose export fails."""

    LAG = "lag"
    FAIL = "fail"


class Exporter(ABC):
    """Keeps a target in step with the versions of a path.

    Lives on the driver. Called by one thread at a time, when an epoch is complete, or by
    ``filesink.export``; but other drivers may bring the same target to any version meanwhile.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What logs, reports and metrics call it: one word, as ``delta``. Unique among those of a sink."""

    @abstractmethod
    def version(self, directory: SinkDirectory) -> int | None:
        """The newest version of ``directory`` that the target has; ``None`` if there is no target yet.

        Called once before ``bring_to``. Only looks.

        Raises:
            ExportError: ``FOREIGN_TARGET``, somebody else has made it, or it is of another path.
        """

    @abstractmethod
    def bring_to(self, directory: SinkDirectory, version: int) -> None:
        """Make the target show what ``version`` of ``directory`` has. Replayable, by any driver.

        Called when the target is at an older version, or at none. Where the steps between are forgotten
        (``HISTORY_EXPIRED``) it compares the target with the snapshot. Leaves a target alone that is at
        ``version`` or at a newer one by then.

        Raises:
            ExportError: ``FOREIGN_TARGET``; ``CHANGED_TARGET``, somebody else has changed it since;
                ``NOT_EXPORTABLE``, it cannot hold these files. The target is at the version it was.
            FilesinkError: the path, or its store, does not answer.
        """

    def named(self, directory: SinkDirectory) -> AbstractSet[str] | None:
        """The paths that the target names, as those of a snapshot; ``None``, as here, if it cannot tell.

        Called by ``filesink.fsck``, with a target that has a version. Only looks.

        Raises:
            ExportError: ``CHANGED_TARGET``.
        """
        del directory
        return None

    def drop(self, directory: SinkDirectory) -> None:
        """Remove the target, which would stay as it is for ever when nobody exports any more. Replayable.

        Files stay.

        Raises:
            ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``, nothing was removed; ``NO_DROP``, this kind
                of target is removed by other means.
        """
        raise ExportError(
            f"export {self.name} cannot remove what it has made for '{directory.path}'; do it by hand",
            code="NO_DROP",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPlan:
    """What a sink exports, in this order, and what becomes of an epoch if that fails."""

    exporters: tuple[Exporter, ...] = ()
    on_failure: OnExportFailure = OnExportFailure.LAG

    def and_(self, exporter: Exporter) -> ExportPlan:
        """The same with one more.

        Raises:
            ConfigError: ``CONFLICT``; there is one of this name.
        """
        instance_of(exporter, Exporter, name="exporter")
        if any(one.name == exporter.name for one in self.exporters):
            raise ConfigError(
                f"there is an export '{exporter.name}' already; give one of them another name",
                code="CONFLICT",
            )
        return replace(self, exporters=(*self.exporters, exporter))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export has done.

    Attributes:
        name: of the exporter.
        before: the version that the target was at; ``None`` if there was none.
        version: the version it is at now.
    """

    name: str
    before: int | None
    version: int

    def __repr__(self) -> str:
        return f"<ExportReport {self.line()}>"

    def line(self) -> str:
        """For people."""
        if self.before == self.version:
            return f"{self.name}: is at version {self.version:,} already"
        came = "is new" if self.before is None else f"was at version {self.before:,}"
        return f"{self.name}: at version {self.version:,}; it {came}"


def bring_up(exporter: Exporter, directory: SinkDirectory) -> ExportReport:
    """Bring the target of ``exporter`` to the newest version of ``directory``.

    Raises:
        FilesinkError: as ``Exporter.bring_to``.
    """
    newest = directory.version
    before = exporter.version(directory)
    if before is not None and before >= newest:
        return ExportReport(name=exporter.name, before=before, version=before)
    exporter.bring_to(directory, newest)
    return ExportReport(name=exporter.name, before=before, version=newest)
