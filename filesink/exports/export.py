"""``filesink.export`` and ``drop_export``: what sinks do after each epoch, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from filesink.arguments import instance_of
from filesink.exports.api import Exporter, ExportReport, bring_up
from filesink.operations.open_path import open as open_path


def export(
    path: str | PathLike[str], exporter: Exporter, storage_options: Mapping[str, Any] | None = None
) -> ExportReport:
    """Bring what ``exporter`` keeps to the newest version of ``path``. No Spark is needed.

    May run beside writers, and beside sinks that have the same exporter. For a path that is years old, for
    one whose writers export nothing, and after an export that failed: it goes on from where the target is.

    Args:
        path: the base path of the sinks.
        exporter: such as ``DeltaExport()``.
        storage_options: see ``filesink.open``.

    Raises:
        ExportError: see its codes in docs/reference/error-codes.md. The target is at the version it was.
        ConfigError: as from ``filesink.open``.
        StateError: ``NO_INVENTORY``, a release without inventories wrote the path; see ``filesink.adopt``.
    """
    return bring_up(instance_of(exporter, Exporter, name="exporter"), open_path(path, storage_options))


def drop_export(
    path: str | PathLike[str], exporter: Exporter, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Remove what ``exporter`` keeps of ``path``; files stay. For the end of exports.

    Its readers would see the newest version that was exported for ever.

    Args:
        path: the base path of the sinks.
        exporter: such as ``DeltaExport()``.
        storage_options: see ``filesink.open``.

    Raises:
        ExportError: ``FOREIGN_TARGET``, ``CHANGED_TARGET``, ``NO_DROP``; nothing was removed.
        ConfigError: as from ``filesink.open``.
    """
    instance_of(exporter, Exporter, name="exporter").drop(open_path(path, storage_options))
