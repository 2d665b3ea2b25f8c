"""``filesink export``."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

import filesink
from filesink import DeltaExport, Exporter, ManifestExport, SparkMetadataExport
from filesink.cli.call import Call
from filesink.cli.command import PathArgument
from filesink.cli.planned import Planned, YesOption, carry_out
from filesink.cli.text import count


class Target(StrEnum):
    """What is kept beside the files."""

    DELTA = "delta"
    SPARK_METADATA = "spark-metadata"
    MANIFEST = "manifest"


_EXPORTERS: dict[Target, Callable[[], Exporter]] = {
    Target.DELTA: DeltaExport,
    Target.SPARK_METADATA: SparkMetadataExport,
    Target.MANIFEST: ManifestExport,
}


def export(
    call: Call,
    path: PathArgument,
    to: Annotated[Target, typer.Option("--to", help="What is brought to the newest version of PATH.")],
    drop: Annotated[bool, typer.Option("--drop", help="Remove it instead; files stay.")] = False,
    yes: YesOption = False,
) -> None:
    """Bring the log of a table, or what else is kept beside the files of PATH, to its newest version.

    Sinks with the same export do so after each epoch; it may run beside them.
    """
    directory, exporter = call.open(path), _EXPORTERS[to]()
    newest, at = directory.version, exporter.version(directory)
    value = {"export": exporter.name, "version": at, "newest": newest}
    is_at = "is not there" if at is None else f"is at version {at:,}"
    if drop:
        carry_out(
            call,
            Planned(
                title=f"{to} {is_at}" + ("; to be removed" if at is not None else ""),
                is_empty=at is None,
                value=value,
            ),
            yes=yes,
            do=lambda: filesink.drop_export(path, exporter, call.options),
            told=lambda _: f"{to} removed; files stay",
        )
        return
    title = (
        f"{to} {is_at}; version {newest:,} with {count(len(directory.snapshot().files), 'file')} to export"
    )
    carry_out(
        call,
        Planned(title=title, is_empty=at is not None and at >= newest, value=value),
        yes=yes,
        do=lambda: filesink.export(path, exporter, call.options),
        told=lambda report: report.line(),
    )
