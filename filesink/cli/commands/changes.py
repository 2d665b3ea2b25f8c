"""``filesink recover``, ``finish``, ``sweep`` and ``adopt``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

import filesink
from filesink import HeldPart, RecoveryReport, StateError, SweepPlan
from filesink.cli.call import Call
from filesink.cli.command import PathArgument, UidOption
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
from filesink.operations.at_path import operations_at
from filesink.operations.open_path import AdoptionPlan, plan_adopt
from filesink.operations.recovery_plan import RecoveryPlan
from formats.sizes import size_text


class LostChoice(StrEnum):
    """What to do with an epoch whose files are gone."""

    RAISE = "raise"
    REWRITE = "rewrite"
    ACCEPT = "accept"


class AnnounceChoice(StrEnum):
    """What to do with a partition that cannot be announced."""

    RAISE = "raise"
    SKIP = "skip"


def recover(
    call: Call,
    path: PathArgument,
    uid: UidOption = None,
    lost: Annotated[
        LostChoice, typer.Option("--lost", help="If files of an epoch are gone: see docs/recovery.md.")
    ] = LostChoice.RAISE,
    announce: Annotated[
        AnnounceChoice, typer.Option("--announce", help="skip: go on without partitions that are refused.")
    ] = AnnounceChoice.RAISE,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", metavar="LOCATION", help="Of the query, for --lost rewrite.")
    ] = None,
    metastore: MetastoreOption = None,
    table: TableOption = None,
    success_file: SuccessOption = None,
    yes: YesOption = False,
) -> None:
    """Complete what drivers that died have decided, and remove what they left behind.

    No query may be running. A restart of the query does the same by itself.
    """
    told = announcing(metastore, table, success_file)
    found = operations_at(path, call.options, uid=uid, announcing=told)
    carry_out(
        call,
        _recovery(found.plan_recover()),
        yes=yes,
        do=lambda: found.recover(lost=lost.value, announce=announce.value, checkpoint_location=checkpoint),
        told=_recovered,
    )


def _recovery(plan: RecoveryPlan) -> Planned:
    garbage = plan.garbage
    rows = [
        (
            one.sink, str(one.epoch), one.what_for, count(one.files), count(one.rows), size_text(one.bytes),
            count(one.lost) if one.lost else "",
        )
        for one in plan.epochs
    ]  # fmt: skip
    return Planned(
        title=f"{count(len(rows), 'epoch')} to complete, {count(len(garbage.files), 'dead file')} "
        f"({size_text(garbage.bytes)}) to remove",
        columns=("sink", ">epoch", "what for", ">files", ">rows", ">size", ">lost"),
        rows=rows,
        # An empty plan may still have held files that are gone, or partitions that wait and are refused.
        is_empty=False,
        value=plan,
    )


def _recovered(report: RecoveryReport) -> str:
    parts = [
        f"{count(len(report.published), 'epoch')} completed, {count(report.swept, 'dead file')} removed",
        f"{count(len(report.retracted), 'epoch')} taken back" if report.retracted else "",
        f"{count(report.lost_rows, 'row')} given up" if report.lost_rows else "",
        f"{count(len(report.unannounced), 'partition')} not announced" if report.unannounced else "",
    ]
    return ", ".join(part for part in parts if part)


def finish(
    call: Call,
    path: PathArgument,
    uid: UidOption = None,
    metastore: MetastoreOption = None,
    table: TableOption = None,
    success_file: SuccessOption = None,
    yes: YesOption = False,
) -> None:
    """Make visible what a stream that has ended holds back. What waits for compaction is not merged.

    No query of the sink may be running. If it announces partitions, name the metastore, or call filesink
    publish afterwards.
    """
    told = announcing(metastore, table, success_file)
    found = operations_at(path, call.options, uid=uid, announcing=told)
    carry_out(
        call,
        _finishing(found.plan_finish()),
        yes=yes,
        do=found.finish,
        told=lambda report: "nothing was open any more" if report is None else report.line(),
    )


def _finishing(held: list[HeldPart]) -> Planned:
    rows, size = sum(part.rows for part in held), sum(part.bytes for part in held)
    return Planned(
        title=f"{count(len(held), 'file')} to make visible: {count(rows, 'row')}, {size_text(size)}",
        columns=("sink", "directory", "kind", ">rows", ">size"),
        rows=[
            (part.sink, part.bucket or ".", part.kind, count(part.rows), size_text(part.bytes))
            for part in held
        ],
        is_empty=not held,
        value=held,
    )


def sweep(
    call: Call,
    path: PathArgument,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="No less than the longest batch job takes.")
    ] = "7 days",
    yes: YesOption = False,
) -> None:
    """Remove hidden files of all sinks of PATH that nothing can refer to any more.

    And what overwrites have replaced and is still there, once its reader grace is over.
    """
    found = operations_at(path, call.options)
    with call.progress() as steps:
        plan = found.plan_sweep(older_than, progress=steps)

    def do() -> SweepPlan:
        with call.progress() as steps:
            return found.sweep(older_than, progress=steps)

    carry_out(
        call,
        _sweeping(plan),
        yes=yes,
        do=do,
        told=lambda plan: f"{count(len(plan.files), 'file')} removed, {size_text(plan.bytes)}",
    )


def _sweeping(plan: SweepPlan) -> Planned:
    return Planned(
        title=f"{count(len(plan.files), 'file')} to remove, {size_text(plan.bytes)}",
        columns=(">size", "why", "file"),
        rows=[(size_text(one.size), one.reason, one.path) for one in plan.files],
        is_empty=not plan.files,
        value=plan,
    )


def adopt(call: Call, path: PathArgument, yes: YesOption = False) -> None:
    """Make the inventory of PATH from its files: where there is none, or a damaged one.

    Older versions cannot be read afterwards.
    """
    directory = call.open(path)
    with call.progress() as steps:
        plan = plan_adopt(path, call.options, progress=steps)

    def do() -> dict[str, int]:
        with call.progress() as steps:
            return {"version": filesink.adopt(path, call.options, progress=steps).version}

    carry_out(
        call,
        Planned(
            title=f"{_inventory(directory)}; its next version would have {count(plan.files, 'file')}: "
            f"{len(plan.added):,} more and {len(plan.gone):,} less than now. Older versions cannot be read "
            "afterwards, nor come back",
            columns=("what", "file"),
            rows=[(what, path) for what, paths in _changed(plan) for path in paths],
            is_empty=False,
            value={
                "path": directory.path,
                "files": plan.files,
                "added": plan.added,
                "gone": plan.gone,
                "elsewhere": plan.elsewhere,
            },
        ),
        yes=yes,
        do=do,
        told=lambda result: f"version {result['version']:,} has what is there",
    )


def _changed(plan: AdoptionPlan) -> list[tuple[str, Sequence[str]]]:
    """What would change; of a path without an inventory not every file."""
    is_new = len(plan.added) == plan.files
    return [
        ("would go", plan.gone),
        ("stays out: a copy, or moved", plan.elsewhere),
        ("would be added", () if is_new else plan.added),
    ]


def _inventory(directory: filesink.SinkDirectory) -> str:
    try:
        return f"the inventory is whole, at version {directory.version:,}"
    except StateError as error:
        return error.message
