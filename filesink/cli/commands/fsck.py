"""``filesink fsck``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Literal

import typer

import filesink
from filesink import Finding, FsckReport
from filesink.cli.call import Call, Exit
from filesink.cli.command import PathArgument
from filesink.cli.planned import MetastoreOption, TableOption, announcing
from filesink.cli.text import count, plain
from filesink.errors import ConfigError
from filesink.exports.found import exporters_beside

_SHOWN = 5  # of each code
_STYLES = {"damage": "bold red", "warning": "bold yellow", "note": "bold"}


def fsck(
    call: Call,
    path: PathArgument,
    quick: Annotated[bool, typer.Option("--quick", help="Only list; open no file.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Read all of each file, with its checksums; of CSV and text, only codecs tell."
        ),
    ] = False,
    metastore: MetastoreOption = None,
    table: TableOption = None,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"Show every path, not {_SHOWN} of each kind.")
    ] = False,
) -> None:
    """What is wrong with PATH, what it means, and the command that mends it.

    Compares ledgers, inventory, directories, the ends of files and exports that are kept beside them, and a
    metastore if one is named. Changes nothing; may run beside writers.
    Exits with 1 if something has to be done, notes do not count; with 3 if something could not be looked at.
    """
    if quick and deep:
        raise ConfigError("--quick and --deep exclude each other", code="CONFLICT")
    depth: Literal["quick", "ends", "deep"] = "quick" if quick else "deep" if deep else "ends"
    told = announcing(metastore, table, None)
    with call.progress() as steps:
        report = filesink.fsck(
            path,
            call.options,
            depth=depth,
            progress=steps,
            metastore=told.metastore,
            table=table,
            exporters=exporters_beside(),
        )
    asked = _Asked(metastore=metastore, table=table)
    if call.json:
        findings = [_object(finding, asked) for finding in report.findings]
        call.show({**plain(report), "is_good": report.is_good, "findings": findings})
    else:
        _print(call, report, None if show_all else _SHOWN, asked)
    if any(finding.code == "FILE_UNREAD" for finding in report.findings):
        raise typer.Exit(int(Exit.COULD_NOT_LOOK))
    if not report.is_good:
        raise typer.Exit(int(Exit.FINDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The metastore that is compared, so that commands can be pasted with its name."""

    metastore: str | None
    table: str | None

    def named(self, mend: str) -> str:
        """``mend`` for it."""
        if self.metastore is None or self.table is None:
            return mend
        named = f"--metastore {shlex.quote(self.metastore)} --table {shlex.quote(self.table)}"
        return mend.replace("--metastore URI --table TABLE", named)


def _object(finding: Finding, asked: _Asked) -> dict[str, str]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "path": finding.path,
        "detail": finding.detail,
        "meaning": finding.meaning,
        "mend": asked.named(finding.mend),
    }


def _print(call: Call, report: FsckReport, shown: int | None, asked: _Asked) -> None:
    for code, found in groupby(report.findings, key=lambda finding: finding.code):
        _print_kind(call, code, list(found), shown, asked)
    looked = f"compared {count(report.files, 'file')}, opened {report.opened:,}"
    if report.version is None:
        looked = "files were not compared, since there is no inventory that can be read"
    number = len(report.findings)
    call.line(f"{count(number, 'finding') if number else 'nothing is wrong'}; {looked}")


def _print_kind(call: Call, code: str, found: Sequence[Finding], shown: int | None, asked: _Asked) -> None:
    first = found[0]
    call.line(f"{first.severity}: {code}, {len(found):,}", style=_STYLES[first.severity])
    call.line(first.meaning)
    for finding in found[:shown]:
        call.line(f"  {finding.path or '.'}: {finding.detail}")
    if shown is not None and len(found) > shown:
        call.line(f"  and {len(found) - shown:,} more; --all has them")
    call.advice(f"-> {asked.named(first.mend if len(found) == 1 else first.mend_all)}")
    call.line()
