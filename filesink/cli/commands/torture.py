"""``filesink torture``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from filesink.cli.call import Call, Exit
from filesink.cli.command import PathArgument
from filesink.cli.tables import show_table
from filesink.cli.text import count
from filesink.errors import StorageError
from filesink.operations.torture.torture import Torture, TortureReport
from filesink.page.torture import torture_page, verdict_of
from filesink.system import SystemIds
from formats.sizes import size_text


def torture(
    call: Call,
    path: PathArgument,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.05, max=1440, help="How long writers are killed.")
    ] = 10,
    writers: Annotated[int, typer.Option("--writers", min=1, max=16, help="How many at a time.")] = 2,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="A page about it.")] = None,
) -> None:
    """Try the promise on a store of yours: kill writers for some minutes, and look all the while.

    Below PATH, in a directory _torture-… of its own, which is removed afterwards, or kept if something is
    wrong: then the command ends with 1. Nothing else of PATH is read or written. Needs no Spark.
    """
    trial = Torture(
        path=path,
        seconds=int(minutes * 60),
        clock=call.clock,
        ids=SystemIds(),
        writers=writers,
        options=call.options,
    )
    with call.progress() as steps:
        report = trial.run(lambda done, of, kills: steps(f"{kills:,} kills", done, of))
    if html is not None:
        _write(html, torture_page(report, call.now()))
    if call.json:
        call.show({"is_good": report.is_good, **_plain(report)})
    else:
        _show(call, report)
    if not report.is_good:
        raise typer.Exit(int(Exit.FINDING))


def _show(call: Call, report: TortureReport) -> None:
    call.line(verdict_of(report), "green" if report.is_good else "red")
    call.line(
        f"{count(report.files, 'file')}, {size_text(report.bytes)}; {count(report.writers, 'writer')}, "
        f"{count(report.starts, 'start')}; everything listed {count(report.looks, 'time')} in "
        f"{count(report.seconds, 'second')}"
    )
    show_table(
        call, ["killed while", ">kills"], [[step, count(n)] for step, n in report.killed_while.items()]
    )
    for title, sentences in (
        ("Must not be seen, and was", report.violations),
        ("fsck has found", report.findings),
        ("Writers have ended by themselves", report.errors),
    ):
        for sentence in sentences:
            call.line(f"{title}: {sentence}")
    if not report.is_clean:
        call.line(f"'{report.path}' is left there; remove it when nobody needs it.")


def _plain(report: TortureReport) -> dict[str, object]:
    return {name: getattr(report, name) for name in report.__slots__}


def _write(html: Path, page: str) -> None:
    try:
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"'{html}' cannot be written: {error.strerror}; name another place",
            code="NOT_WRITTEN",
        ) from error
