"""``filesink publish``."""

from __future__ import annotations

from typing import Annotated

import typer

from filesink.cli.call import Call
from filesink.cli.command import PathArgument
from filesink.cli.planned import (
    MetastoreOption,
    Planned,
    SuccessOption,
    TableOption,
    YesOption,
    announcing,
    carry_out,
)
from filesink.cli.text import count
from filesink.errors import ConfigError
from filesink.operations.at_path import PlannedPartition, operations_at
from formats.sizes import size_text


def publish(
    call: Call,
    path: PathArgument,
    buckets: Annotated[
        list[str] | None, typer.Argument(metavar="[BUCKET]...", help="Only these directories below PATH.")
    ] = None,
    metastore: MetastoreOption = None,
    table: TableOption = None,
    success_file: SuccessOption = None,
    yes: YesOption = False,
) -> None:
    """Announce partitions of PATH again: those that a metastore has forgotten, or was never told of."""
    told = announcing(metastore, table, success_file)
    if told.metastore is None and not told.success_file:
        raise ConfigError("name whom to tell: --metastore with --table, or --success-file", code="CONFLICT")
    found = operations_at(path, call.options, announcing=told)
    chosen = [bucket.strip("/") for bucket in buckets or ()]
    carry_out(
        call,
        _planned(found.plan_publish(chosen)),
        yes=yes,
        do=lambda: found.publish(chosen),
        told=lambda done: f"{count(len(done), 'partition')} announced",
    )


def _planned(partitions: list[PlannedPartition]) -> Planned:
    return Planned(
        title=f"{count(len(partitions), 'partition')} to announce",
        columns=(">files", ">rows", ">size", "partition"),
        rows=[
            (count(one.files), count(one.rows), size_text(one.bytes), one.bucket or ".") for one in partitions
        ],
        is_empty=not partitions,
        value=partitions,
    )
