"""``filesink retain``, ``rollback`` and ``erase``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

import filesink
from filesink import EpochReport, Erasure, ErasurePlan, Left, Retention, RetentionPlan, RollbackPlan
from filesink.cli.call import Call, Exit
from filesink.cli.command import PathArgument
from filesink.cli.planned import (
    MetastoreOption,
    Planned,
    TableOption,
    YesOption,
    announcing,
    carry_out,
)
from filesink.cli.text import count, time
from filesink.durations import parse_duration_ms
from formats.sizes import size_text

_SHOWN = 3  # names in a note
_LEFT_SHOWN = 20


class ByChoice(StrEnum):
    """Whose age counts."""

    WRITTEN = "written"
    PARTITION_TIME = "partition-time"


def retain(
    call: Call,
    path: PathArgument,
    max_age: Annotated[
        str | None, typer.Option("--max-age", metavar="TIME", help="Drop what is older, such as '90 days'.")
    ] = None,
    by: Annotated[
        ByChoice, typer.Option("--by", help="Whose age: each file's, or a directory's by its name.")
    ] = ByChoice.WRITTEN,
    max_bytes: Annotated[
        str | None, typer.Option("--max-bytes", metavar="SIZE", help="Drop the oldest until no more is left.")
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", help="Keep the newest N: files, or directories by their time."),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option("--extractor", metavar="TEXT", help="The time of a directory, as '$day $hour:00:00'."),
    ] = None,
    formatter: Annotated[
        str | None,
        typer.Option("--formatter", metavar="PATTERN", help="Of that time, or of the path of a directory."),
    ] = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", metavar="ZONE", help="Of the times in names of directories.")
    ] = "UTC",
    partition_length: Annotated[
        str, typer.Option("--partition-length", metavar="TIME", help="How much time a directory holds.")
    ] = "1 day",
    reader_grace: Annotated[
        str,
        typer.Option("--reader-grace", metavar="TIME", help="How long dropped files stay for their readers."),
    ] = "0 s",
    metastore: MetastoreOption = None,
    table: TableOption = None,
    yes: YesOption = False,
) -> None:
    """Drop the live files of PATH that are beyond a limit. What is beyond any limit goes.

    May run beside streams and appending writes: what they hold back, and what they publish meanwhile, stays.
    """
    retention = Retention(
        max_age=max_age,
        by="partition time" if by is ByChoice.PARTITION_TIME else "written",
        max_bytes=max_bytes,
        keep=keep,
        extractor=extractor,
        formatter=formatter,
        time_zone=time_zone,
        partition_length=partition_length,
    )
    parse_duration_ms(reader_grace, name="reader_grace", least=0)  # the plan does not ask for it
    told = announcing(metastore, table, None)
    with call.progress() as steps:
        plan = filesink.plan_retain(path, retention, call.options, progress=steps)
    _note(call, plan)
    retain_at = partial(filesink.retain, path, retention, call.options, reader_grace=reader_grace)

    def do() -> EpochReport | None:
        with call.progress() as steps:
            return retain_at(metastore=told.metastore, table=told.table or None, progress=steps)

    carry_out(call, _retention(plan), yes=yes, do=do, told=_dropped)


def _note(call: Call, plan: RetentionPlan) -> None:
    notes = (
        (plan.undated, "tell no time and stay"),
        (plan.busy, "stay until filesink recover"),
        (plan.left, "could not be removed before, which would be tried again"),
        (plan.merged, "were merged into files that would be dropped, and would go with them"),
    )
    for names, why in notes:
        if names:
            more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            call.note(f"{', '.join(name or '.' for name in names[:_SHOWN])}{more}: {why}")


def _retention(plan: RetentionPlan) -> Planned:
    return Planned(
        title=f"{count(plan.files, 'file')} to drop, {size_text(plan.bytes)}",
        columns=(">files", ">rows", ">size", ">stay", "directory"),
        rows=[
            (count(one.files), count(one.rows), size_text(one.bytes), count(one.left), one.bucket or ".")
            for one in plan.dropped
        ],
        is_empty=not plan.dropped and not plan.left,
        value=plan,
    )


def rollback(
    call: Call,
    path: PathArgument,
    to: Annotated[
        int, typer.Option("--to", metavar="VERSION", help="The version that comes back; see filesink log.")
    ],
    metastore: MetastoreOption = None,
    table: TableOption = None,
    yes: YesOption = False,
) -> None:
    """Make the live files of PATH those of an earlier version again.

    Only files go back: batches of streams, and writes with a txn_id, count as written. Stop the streams
    before, since what they publish meanwhile stays.
    """
    told = announcing(metastore, table, None)
    carry_out(
        call,
        _rolling_back(filesink.plan_rollback(path, to, call.options)),
        yes=yes,
        do=lambda: filesink.rollback(
            path, to, call.options, metastore=told.metastore, table=told.table or None
        ),
        told=_rolled_back,
    )


def _rolling_back(plan: RollbackPlan) -> Planned:
    size = sum(file.size for file in plan.removed)
    kept = f" and {count(len(plan.merged))} that were kept for readers" if plan.merged else ""
    beside = len({file.path for file in plan.restored}.difference(plan.merged))
    twice = (
        f". What comes back are copies: {count(beside)} stay beside them until their grace is over, and who "
        "lists the directory sees both"
        if beside
        else ""
    )
    return Planned(
        title=f"back to version {plan.version:,} from {plan.newest:,}: {count(len(plan.removed), 'file')} "
        f"({size_text(size)}) to remove{kept}, {count(len(plan.restored), 'file')} to bring back{twice}",
        columns=(">version", "kind", "sink", ">rows", ">files", ">removed"),
        rows=[
            (
                count(one.version), one.kind, one.sink or "the adoption", count(one.rows), count(one.files),
                count(one.removed),
            )
            for one in plan.epochs
        ],
        is_empty=not plan.removed and not plan.restored,
        value={
            "version": plan.version,
            "newest": plan.newest,
            "removed": [file.path for file in plan.removed],
            "restored": [file.path for file in plan.restored],
            "merged": plan.merged,
            "epochs": plan.epochs,
        },
    )  # fmt: skip


def _rolled_back(report: EpochReport | None) -> str:
    if report is None:
        return "nothing was left to do"
    return f"{count(len(report.replaced), 'file')} removed, {count(len(report.files), 'file')} brought back"


def _dropped(report: EpochReport | None) -> str:
    if report is None:
        return "nothing was left to do"
    kept = (
        ""
        if report.kept_until is None
        else f", {count(len(report.kept))} of them kept until {time(report.kept_until)}"
    )
    return f"{count(len(report.replaced) + len(report.kept), 'file')} dropped{kept}"


def erase(
    call: Call,
    path: PathArgument,
    where: Annotated[
        str,
        typer.Option(
            "--where", metavar="CONDITION", help='Which rows: "customer_id = 7"; see docs/erasure.md.'
        ),
    ],
    metastore: MetastoreOption = None,
    table: TableOption = None,
    yes: YesOption = False,
) -> None:
    """Take rows out of the Parquet files of PATH, and prove that they are gone.

    Ends with 1 as long as some may be left, and says where; call it again. The certificate is in --json.
    """
    told = announcing(metastore, table, None)
    with call.progress() as steps:
        plan = filesink.plan_erase(path, where, call.options, progress=steps)
    found: list[Erasure] = []

    def do() -> dict[str, Any]:
        erase_at = partial(filesink.erase, metastore=told.metastore, table=told.table or None)
        with call.progress() as steps:
            found.append(erase_at(path, where, call.options, progress=steps))
        return _erasure(found[0])

    carry_out(call, _erasing(plan), yes=yes, do=do, told=_erased)
    left = found[0].left if found else plan.left
    if not call.json:
        _note_left(call, left)
    if found and left:
        raise typer.Exit(int(Exit.FINDING))


def _erasing(plan: ErasurePlan) -> Planned:
    return Planned(
        title=f"{count(plan.rows, 'row')} to erase from {count(len(plan.files), 'file')} of "
        f"{count(plan.searched)}",
        columns=(">rows", ">of", ">size", "file"),
        rows=[
            (count(one.erased), count(one.file.rows), size_text(one.file.size), one.file.path)
            for one in plan.files
        ],
        # All is searched once more, and the certificate is of that search.
        is_empty=False,
        value={
            "columns": plan.columns,
            "files": [{"path": one.file.path, "rows": one.erased} for one in plan.files],
            "searched": plan.searched,
            "left": [_plain(one) for one in plan.left],
        },
    )


def _erasure(done: Erasure) -> dict[str, Any]:
    return {
        "rows": done.rows,
        "certificate": dict(done.certificate()) if done.is_clean else None,
        "left": [_plain(one) for one in done.left],
    }


def _plain(left: Left) -> dict[str, Any]:
    return {"kind": left.kind, "path": left.path, "rows": left.rows, "advice": left.advice}


def _erased(result: dict[str, Any]) -> str:
    certificate = result["certificate"]
    if certificate is None:
        return f"{count(result['rows'], 'row')} erased, and some may be left"
    return (
        f"{count(result['rows'], 'row')} erased; searched {count(certificate['files_searched'], 'file')} of "
        f"version {certificate['version']:,} and all else below the path: none is left"
    )


def _note_left(call: Call, left: Sequence[Left]) -> None:
    for one in left[:_LEFT_SHOWN]:
        call.note(f"not clean: {one.kind} {one.path} ({count(one.rows, 'row')}): {one.advice}")
    if len(left) > _LEFT_SHOWN:
        call.note(f"and {len(left) - _LEFT_SHOWN:,} more; --json has all")
