"""``filesink compact``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

import compaction
from compaction import CompactionPlan
from filesink import (
    ArrowWriterFactory,
    Encoder,
    EpochReport,
    OrcBulkWriterFactory,
    ParquetWriterFactory,
    SinkDirectory,
)
from filesink.cli.call import Call
from filesink.cli.command import PathArgument
from filesink.cli.planned import Planned, YesOption, carry_out
from filesink.cli.text import count
from filesink.durations import parse_duration_ms
from filesink.errors import ConfigError
from formats.sizes import size_text


class FormatChoice(StrEnum):
    """Formats whose files can be merged without their sink's program."""

    PARQUET = "parquet"
    ORC = "orc"
    ARROW = "arrow"
    JSON = "json"
    TEXT = "txt"


def compact(
    call: Call,
    path: PathArgument,
    bucket: Annotated[
        str | None, typer.Option("--bucket", metavar="DIRECTORY", help="Only this directory below PATH.")
    ] = None,
    target_size: Annotated[
        str,
        typer.Option("--target-size", metavar="SIZE", help="Of merged files; as large ones are left alone."),
    ] = "128MiB",
    reader_grace: Annotated[
        str,
        typer.Option("--reader-grace", metavar="TIME", help="How long merged files stay for their readers."),
    ] = "0 s",
    form: Annotated[
        FormatChoice | None, typer.Option("--format", help="Of the files; by default, what their names say.")
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option("--compression", help="Of Parquet; by default, that of a file that is there."),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Merge small files of PATH that are visible already.

    A plain listing shows rows twice for a moment: docs/compaction.md tells which readers do not care.
    """
    grace_ms = parse_duration_ms(reader_grace, name="reader_grace", least=0)  # the plan does not ask for it
    directory = call.open(path)
    plan = compaction.plan(
        directory.path, bucket=bucket, target_size=target_size, storage_options=call.options
    )

    def do() -> EpochReport | None:
        with call.progress() as steps:
            # Nobody tells how far it is; the clock of the bar shows that it is at work.
            steps(f"merging {count(plan.files, 'file')}", 0, None)
            return compaction.compact(
                directory.path,
                _form(directory, plan, form, compression),
                bucket=bucket,
                target_size=target_size,
                reader_grace=reader_grace,
                storage_options=call.options,
            )

    if plan.left_out and not yes:  # else it is told in the log
        call.note(
            f"{count(len(plan.left_out), 'file')}, such as {plan.left_out[0]}, would be left out: no version "
            "of the inventory has them as they are; filesink fsck tells what they are"
        )
    carry_out(
        call,
        _planned(plan),
        yes=yes,
        do=do,
        told=lambda report: _compacted(report, reader_grace if grace_ms else ""),
    )


def _compacted(report: EpochReport | None, grace: str) -> str:
    if report is None:
        return "nothing was left to do"
    if not grace:
        return report.line()
    return (
        f"{report.line()}; what was merged stays for {grace}, and until then who lists the directory sees "
        "its rows twice. The next compact after that removes it"
    )


def _planned(plan: CompactionPlan) -> Planned:
    expired = f", {count(len(plan.expired), 'merged file')} to remove" if plan.expired else ""
    return Planned(
        title=f"{count(plan.files, 'file')} ({size_text(plan.bytes)}) to merge into {len(plan.groups):,}"
        f"{expired}",
        columns=(">files", ">size", "directory"),
        rows=[
            (count(len(group.files)), size_text(sum(file.size for file in group.files)), group.bucket or ".")
            for group in plan.groups
        ],
        is_empty=not plan.groups and not plan.expired,
        value=plan,
    )


def _form(
    directory: SinkDirectory, plan: CompactionPlan, form: FormatChoice | None, compression: str | None
) -> Any:
    kind = form or _by_names(plan)
    if compression is not None and kind is not FormatChoice.PARQUET:
        raise ConfigError("--compression goes with Parquet only", code="CONFLICT")
    match kind:
        case FormatChoice.PARQUET:
            codec: Any = compression or _codec(directory)
            return ParquetWriterFactory(compression=codec)
        case FormatChoice.ORC:
            return OrcBulkWriterFactory()
        case FormatChoice.ARROW:
            return ArrowWriterFactory()
        case FormatChoice.JSON:
            return Encoder.json_lines()
        case FormatChoice.TEXT:
            return Encoder.simple_string_encoder()


def _by_names(plan: CompactionPlan) -> FormatChoice:
    endings = sorted({group.suffix for group in plan.groups}) or [".parquet"]  # only removes: any will do
    known = {f".{one.value}": one for one in FormatChoice}
    if len(endings) != 1 or endings[0] not in known:
        raise ConfigError(
            f"files that end with {', '.join(map(repr, endings))} cannot be merged without being told their "
            "format: name it as --format, or one directory as --bucket; others are merged by "
            "compaction.compact in a program that has the format of the sink",
            code="COMPACTION",
        )
    return known[endings[0]]


def _codec(directory: SinkDirectory) -> str:
    """That of the newest Parquet file."""
    fragments: Any = directory.snapshot().dataset(on_other_schema="union").get_fragments()
    first = next(iter(fragments), None)
    groups = None if first is None else first.metadata
    if groups is None or not groups.num_row_groups or not groups.num_columns:
        return "snappy"
    codec = str(groups.row_group(0).column(0).compression).lower()
    return "none" if codec == "uncompressed" else codec
