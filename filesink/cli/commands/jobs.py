"""``filesink run``, ``jobs``, ``job``, ``stop``, ``cancel`` and ``restore``."""

from __future__ import annotations

from typing import Annotated

import typer

from filesink.cli.call import Call
from filesink.cli.jobs import (
    DEFAULT,
    FileArgument,
    InlineOption,
    JobArgument,
    JobsOption,
    MasterOption,
    VariablesOption,
    given,
    jobs_at,
    rooms,
    show_job,
)
from filesink.cli.tables import show_table
from filesink.cli.text import time


def run(
    call: Call,
    job_file: FileArgument,
    name: Annotated[
        str | None, typer.Option("--name", metavar="ID", help="The id of the job; a random one by default.")
    ] = None,
    master: MasterOption = None,
    variables: VariablesOption = None,
    inline_secrets: InlineOption = False,
    jobs: JobsOption = DEFAULT,
) -> None:
    """Run the job of FILE, to its end.

    Exits with 1 if a pipeline has failed; the others have gone on. With Ctrl-C the job is cancelled.
    """
    here = jobs_at(call, jobs)
    options = rooms().RunOptions(master=master, say=call.note if call.json else call.line)
    found = here.run(
        job_file, name=name, variables=given(variables), inline_secrets=inline_secrets, options=options
    )
    show_job(call, found)


def restore(
    call: Call,
    job: JobArgument,
    master: MasterOption = None,
    variables: VariablesOption = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Go on with another plan than the one that ran.")
    ] = False,
    jobs: JobsOption = DEFAULT,
) -> None:
    """Go on with job ID, which failed, was stopped or cancelled, or whose process is gone."""
    options = rooms().RunOptions(master=master, say=call.note if call.json else call.line)
    found = jobs_at(call, jobs).restore(
        job, variables=given(variables), accept_changes=accept_changes, options=options
    )
    show_job(call, found)


def list_jobs(call: Call, jobs: JobsOption = DEFAULT) -> None:
    """All jobs, and where they are."""
    found = jobs_at(call, jobs).list()
    if call.json:
        for info in found:
            call.show(info)
        return
    show_table(
        call,
        ("job", "state", ">pipelines", "changed", "runs on"),
        (
            (
                info.id,
                info.state.value,
                str(len(info.pipelines)),
                time(call.moment(info.changed_ms)),
                info.holder,
            )
            for info in found
        ),
    )


def job(call: Call, job: JobArgument, jobs: JobsOption = DEFAULT) -> None:
    """How far job ID is, pipeline by pipeline. Exits with 1 if it has failed."""
    show_job(call, jobs_at(call, jobs).info(job))


def stop(
    call: Call,
    job: JobArgument,
    savepoint: Annotated[
        bool, typer.Option("--savepoint", help="End where restore goes on; without it the job is cancelled.")
    ] = False,
    jobs: JobsOption = DEFAULT,
) -> None:
    """Ask job ID to end. Returns at once; filesink job shows when it has."""
    here = jobs_at(call, jobs)
    found = here.savepoint(job) if savepoint else here.cancel(job)
    call.note(f"filesink: job '{found.id}' was asked to end")


def cancel(call: Call, job: JobArgument, jobs: JobsOption = DEFAULT) -> None:
    """Ask job ID to end at once. What was not decided is not there."""
    jobs_at(call, jobs).cancel(job)
    call.note(f"filesink: job '{job}' was asked to end")
