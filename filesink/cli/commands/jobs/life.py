"""``filesink run``, ``jobs``, ``job``, ``logs``, ``stop``, ``cancel``, ``retry`` and ``restore``."""

from __future__ import annotations

from typing import Annotated

import typer

from filesink.cli.call import Call
from filesink.cli.jobs import (
    DEFAULT,
    DetachOption,
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
    show_savepoints,
    started,
    time_of,
)
from filesink.cli.tables import show_table
from filesink.system import SystemIds

_LOOK_S = 1.0
_ENDED = ("FINISHED", "FAILED", "CANCELED", "SAVEPOINT_DONE")


def run(
    call: Call,
    job_file: FileArgument,
    name: Annotated[
        str | None, typer.Option("--name", metavar="ID", help="The id of the job; a random one by default.")
    ] = None,
    master: MasterOption = None,
    variables: VariablesOption = None,
    inline_secrets: InlineOption = False,
    detach: DetachOption = False,
    jobs: JobsOption = DEFAULT,
) -> None:
    """Run the job of FILE, to its end.

    Exits with 1 if a pipeline has failed; the others have gone on. With Ctrl-C the job is cancelled.
    """
    here = jobs_at(call, jobs)
    if detach:
        rooms().plan(job_file, variables=given(variables), inline_secrets=inline_secrets)
        started(call, here, name or SystemIds().uuid(), jobs=jobs)
        return
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
    savepoint: Annotated[
        int | None,
        typer.Option("--savepoint", metavar="NUMBER", help="Go back to this one, as filesink job shows it."),
    ] = None,
    roll_back: Annotated[
        bool, typer.Option("--roll-back", help="Take back what sinks of files have written since.")
    ] = False,
    detach: DetachOption = False,
    jobs: JobsOption = DEFAULT,
) -> None:
    """Go on with job ID, which failed, was stopped or cancelled, or whose process is gone."""
    here = jobs_at(call, jobs)
    if detach:
        started(call, here, job, jobs=jobs)
        return
    options = rooms().RunOptions(master=master, say=call.note if call.json else call.line)
    since = "roll_back" if roll_back else "refuse"
    back = None if savepoint is None else rooms().Back(savepoint=savepoint, on_newer_epochs=since)
    found = here.restore(
        job, variables=given(variables), accept_changes=accept_changes, back=back, options=options
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
                time_of(info.changed_ms),
                info.holder,
            )
            for info in found
        ),
    )


def job(call: Call, job: JobArgument, jobs: JobsOption = DEFAULT) -> None:
    """How far job ID is, pipeline by pipeline. Exits with 1 if it has failed."""
    here = jobs_at(call, jobs)
    found = here.info(job)
    if not call.json:
        show_savepoints(call, here.savepoints(job))
    show_job(call, found)


def logs(
    call: Call,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    jobs: JobsOption = DEFAULT,
) -> None:
    """What has happened to job ID, and what filesink has warned of meanwhile.

    What Spark logs is where Spark logs; what a detached job prints is in the file that its start names.
    """
    here, shown = jobs_at(call, jobs), 0
    while True:
        has_ended = here.info(job).state.value in _ENDED
        lines = here.logs(job)
        for at_ms, text in lines[shown:]:
            if call.json:
                call.show({"at_ms": at_ms, "text": text})
            else:
                call.line(f"{time_of(at_ms)} {text}")
        shown = max(shown, len(lines))
        if has_ended or not follow:
            return
        call.clock.sleep(_LOOK_S)


def retry(call: Call, job: JobArgument, jobs: JobsOption = DEFAULT) -> None:
    """Start those pipelines of job ID again that have failed, while the others go on."""
    jobs_at(call, jobs).retry(job)
    call.note(f"filesink: job '{job}' was asked to start its failed pipelines again")


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
