"""The exports of a path that are found by who knows the path only: those that are kept beside its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from filesink.errors import ExportError, SecurityError, StateError
from filesink.exports.api import Exporter
from filesink.exports.delta.export import DeltaExport
from filesink.exports.manifests.export import ManifestExport
from filesink.exports.spark_metadata.export import SparkMetadataExport
from filesink.sink_directory.directory import SinkDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportState:
    """How far an export is.

    Attributes:
        name: of the exporter.
        version: that it is at; ``None`` if it cannot be read.
        behind: by how many versions.
        error: why it cannot be read; ``""`` if it can.
    """

    name: str
    version: int | None
    behind: int | None
    error: str = ""


def exporters_beside() -> tuple[Exporter, ...]:
    """One of each kind, of this call's own. An export to a catalog is known by who knows the catalog."""
    return DeltaExport(), SparkMetadataExport(), ManifestExport()


def exports_beside(directory: SinkDirectory) -> list[ExportState]:
    """Those that are there; none where the versions of the path cannot be read, which its status tells."""
    try:
        return list(_states(directory, directory.version))
    except (StateError, SecurityError):
        return []


def _states(directory: SinkDirectory, newest: int) -> Iterator[ExportState]:
    for exporter in exporters_beside():
        try:
            at = exporter.version(directory)
        except ExportError as error:
            yield ExportState(name=exporter.name, version=None, behind=None, error=error.message)
            continue
        if at is not None:
            yield ExportState(name=exporter.name, version=at, behind=max(0, newest - at))
