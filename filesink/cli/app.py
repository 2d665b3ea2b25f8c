"""All commands together."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from filesink.cli.command import add
from filesink.cli.commands.changes import adopt, finish, recover, sweep
from filesink.cli.commands.compact import compact
from filesink.cli.commands.copy import copy
from filesink.cli.commands.epochs import log, show
from filesink.cli.commands.export import export
from filesink.cli.commands.files import du, files, ls
from filesink.cli.commands.fsck import fsck
from filesink.cli.commands.jobs.life import cancel, job, list_jobs, logs, restore, retry, run, stop
from filesink.cli.commands.jobs.plan import plan
from filesink.cli.commands.jobs.plugins import plugins
from filesink.cli.commands.publish import publish
from filesink.cli.commands.repair import repair
from filesink.cli.commands.replacing import erase, retain, rollback
from filesink.cli.commands.report import report
from filesink.cli.commands.serve import serve
from filesink.cli.commands.status import status
from filesink.cli.commands.torture import torture
from filesink.cli.commands.versions import diff, schema
from filesink.cli.program import Program

app = typer.Typer(
    name="filesink",
    cls=Program,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # errors are ours to tell, see ``call.ending``
)

for function, name in (
    (status, "status"),
    (log, "log"),
    (ls, "ls"),
    (files, "files"),
    (du, "du"),
    (schema, "schema"),
    (show, "show"),
    (diff, "diff"),
    (fsck, "fsck"),
    (report, "report"),
    (serve, "serve"),
    (repair, "repair"),
    (recover, "recover"),
    (finish, "finish"),
    (sweep, "sweep"),
    (compact, "compact"),
    (adopt, "adopt"),
    (publish, "publish"),
    (plan, "plan"),
    (plugins, "plugins"),
    (run, "run"),
    (list_jobs, "jobs"),
    (job, "job"),
    (logs, "logs"),
    (retry, "retry"),
    (stop, "stop"),
    (restore, "restore"),
    (cancel, "cancel"),
    (retain, "retain"),
    (rollback, "rollback"),
    (erase, "erase"),
    (copy, "copy"),
    (torture, "torture"),
    (export, "export"),
):
    add(app, function, name=name)


def _version(is_asked: bool) -> None:  # noqa: FBT001 - as typer calls it
    if not is_asked:
        return
    try:
        found = metadata.version("filesink")
    except metadata.PackageNotFoundError:  # run from its sources
        found = "of no release"
    typer.echo(f"filesink {found}")
    raise typer.Exit


@app.callback()
def about(
    version: Annotated[  # noqa: FBT002 - a flag of a command line
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What sinks have written to a path, what is wrong with it, and what to do about it.

    Exit codes: 0 good, 1 a finding, 2 a wrong use, 3 could not look.
    """
    del version  # its callback has ended the program
