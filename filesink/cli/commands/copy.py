"""``filesink copy``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import filesink
from filesink import CopyPlan, CopyReport
from filesink.cli.call import Call
from filesink.cli.command import PathArgument
from filesink.cli.planned import Planned, YesOption, carry_out
from filesink.cli.storage import storage_options
from filesink.cli.text import count
from formats.sizes import size_text

_SHOWN = 3  # names in a note


def copy(
    call: Call,
    path: PathArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Where nothing is yet; any kind of store.")],
    target_option: Annotated[
        list[str] | None,
        typer.Option("--target-option", metavar="NAME=VALUE", help="Option of TARGET's store; repeatable."),
    ] = None,
    target_options: Annotated[
        Path | None,
        typer.Option("--target-options", metavar="FILE", help="TOML file with options of TARGET's store."),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Copy PATH to another place: files, ledgers, inventory. The copy is a sink itself.

    Stop the writers before. Call it again if it was interrupted. Nothing is overwritten.
    """
    options = storage_options(target_options, target_option or ())
    plan = filesink.plan_copy(path, target, call.options, target_options=options)
    if plan.others:
        more = f" and {len(plan.others) - _SHOWN:,} more" if len(plan.others) > _SHOWN else ""
        call.note(f"not copied, since they are of no sink: {', '.join(plan.others[:_SHOWN])}{more}")

    def do() -> CopyReport:
        with call.progress() as steps:
            return filesink.copy(path, target, call.options, target_options=options, progress=steps)

    carry_out(
        call,
        _copying(plan),
        yes=yes,
        do=do,
        told=lambda report: (
            f"version {report.version:,} copied: {count(report.files, 'file')}, {size_text(report.bytes)}"
            + (f"; {count(report.found, 'file')} were there already" if report.found else "")
        ),
    )


def _copying(plan: CopyPlan) -> Planned:
    held = f", {count(plan.held)} of them held back" if plan.held else ""
    return Planned(
        title=f"{count(plan.files, 'file')} ({size_text(plan.bytes)}{held}) of version {plan.version:,} to "
        f"copy, and {count(plan.ledger_files, 'file')} of ledgers and inventory",
        is_empty=False,
        value=plan,
    )
