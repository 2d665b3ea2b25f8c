"""``filesink repair``: does what ``fsck`` advises, as far as that is a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer

import filesink
from filesink import Finding
from filesink.cli.call import Call, Exit
from filesink.cli.command import PathArgument
from filesink.cli.planned import Planned, YesOption, carry_out
from filesink.cli.text import count
from filesink.exports.found import exporters_beside
from filesink.operations.at_path import operations_at


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repair:
    """Commands in their order, each with the findings that it mends, and what only a person can mend."""

    commands: dict[str, list[Finding]]
    others: list[Finding]


def repair(call: Call, path: PathArgument, yes: YesOption = False) -> None:
    """Do what fsck --quick advises, as far as it is filesink recover, adopt or sweep.

    Nothing is given up and no file that readers see is removed: that stays for you, and exits with 1.
    """
    with call.progress() as steps:
        report = filesink.fsck(
            path, call.options, depth="quick", progress=steps, exporters=exporters_beside()
        )
    found = _plan(report.findings)
    carry_out(
        call,
        _shown(found),
        yes=yes,
        do=lambda: _do(call, path, list(found.commands)),
        told=lambda done: f"{', '.join(done)}. Ask filesink fsck again",
    )
    if not call.json:
        for line in _by_hand(found.others):
            call.advice(line)
    if found.others:
        raise typer.Exit(int(Exit.FINDING))


def _shown(found: _Repair) -> Planned:
    mended = found.commands.items()
    return Planned(
        title=f"{count(sum(map(len, found.commands.values())), 'finding')} can be mended by commands, "
        f"{len(found.others):,} by hand only",
        columns=("by", ">findings", "such as"),
        rows=[
            *((f"filesink {name}", count(len(some)), _such_as(some)) for name, some in mended),
            *(("hand", "1", f"{one.code} {one.path}") for one in found.others),
        ],
        is_empty=not found.commands,
        nothing="No command can do any of it." if found.others else "There is nothing to do.",
        value={
            **{name: [one.path for one in some] for name, some in mended},
            "hand": [{"code": one.code, "path": one.path, "mend": one.mend} for one in found.others],
        },
    )


def _by_hand(findings: Sequence[Finding]) -> Iterator[str]:
    """What to do about each kind of finding, once."""
    by_code: dict[str, list[Finding]] = {}
    for one in findings:
        by_code.setdefault(one.code, []).append(one)
    for code, some in by_code.items():
        yield f"{code} -> {some[0].mend if len(some) == 1 else some[0].mend_all}"


#: What recovery does without; it has to come before an adoption, which waits for epochs at work. A damaged
#: inventory has to be mended first: an epoch cannot be completed without its version.
_NO_INVENTORY = frozenset({"INVENTORY_MISSING", "INVENTORY_ADOPTING"})


def _plan(findings: Sequence[Finding]) -> _Repair:
    adopting = {finding.code for finding in findings if finding.command == "adopt"}
    first = ("adopt", "recover") if adopting - _NO_INVENTORY else ("recover", "adopt")
    by: dict[str, list[Finding]] = {name: [] for name in (*first, "sweep")}
    others = []
    for finding in findings:
        if finding.command:
            by[finding.command].append(finding)
        elif finding.severity != "note":
            others.append(finding)
    return _Repair(commands={name: some for name, some in by.items() if some}, others=others)


def _such_as(findings: Sequence[Finding]) -> str:
    return f"{findings[0].code} {findings[0].path}"


def _do(call: Call, path: str, commands: Sequence[str]) -> list[str]:
    operations = operations_at(path, call.options)
    for name in commands:
        with call.progress() as steps:
            match name:
                case "recover":
                    operations.recover()
                case "adopt":
                    filesink.adopt(path, call.options, progress=steps)
                case _:
                    operations.sweep(progress=steps)
    return [*commands]
