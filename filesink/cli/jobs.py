"""What the commands of jobs share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any

import typer

from filesink.cli.call import Call, Exit
from filesink.cli.tables import show_table
from filesink.cli.text import time
from filesink.errors import DependencyError, FilesinkError

if TYPE_CHECKING:
    from filesink.jobs import JobInfo, Jobs, PipelineInfo, Savepoint

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A job file: HOCON (.conf), YAML or SQL.", show_default=False)
]
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a job, as filesink jobs shows it.")]
JobsOption = Annotated[
    str,
    typer.Option(
        "--jobs",
        metavar="PATH",
        envvar="FILESINK_JOBS",
        help="Where the records of jobs lie, in any store.",
    ),
]
VariablesOption = Annotated[
    list[str] | None,
    typer.Option("-i", "--variable", metavar="NAME=VALUE", help="What ${NAME} is; may be repeated."),
]
InlineOption = Annotated[
    bool,
    typer.Option("--inline-secrets", help="Let secrets stand in the job file, as SeaTunnel has them."),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark's; comes before spark.master of the file."),
]
DetachOption = Annotated[
    bool,
    typer.Option("--detach", "-d", help="Leave it to a process of its own, and return once that has begun."),
]
DEFAULT = "filesink-jobs"
PIPELINE_COLUMNS = (
    ">pipeline", "state", ">starts", ">epochs", ">rows", ">rows/s", ">behind", "newest epoch", "last error",
)  # fmt: skip
_LOOK_S = 0.2


def rooms() -> Any:
    """``filesink.jobs``.

    Raises:
        DependencyError: ``DEPENDENCY``; its packages are not there.
    """
    try:
        from filesink import jobs
    except ModuleNotFoundError as error:
        if error.name not in {"pydantic", "pydantic_core", "yaml"}:
            raise
        raise DependencyError(
            f"jobs need {error.name}; pip install 'filesink[jobs]'", code="DEPENDENCY"
        ) from error
    return jobs


def jobs_at(call: Call, path: str) -> Jobs:
    """The jobs of a path."""
    found: Jobs = rooms().Jobs(path, storage_options=call.options)
    return found


def given(texts: list[str] | None) -> dict[str, str]:
    """What ``-i`` says."""
    rooms()
    from filesink.jobs.text.variables import given_variables

    return given_variables(texts or [])


def show_job(call: Call, info: JobInfo) -> None:
    """One job with its pipelines; exits with 1 if it has failed."""
    if call.json:
        call.show(info)
    else:
        call.line(f"{info.id}: {info.state.value}{f' by {info.holder}' if info.holder else ''}", style="bold")
        call.line(f"{info.file}, {info.mode}, submitted {time_of(info.submitted_ms)}")
        show_table(call, PIPELINE_COLUMNS, (pipeline_row(one) for one in info.pipelines))
    if info.state.value == "FAILED":
        raise typer.Exit(int(Exit.FINDING))


def pipeline_row(one: PipelineInfo) -> tuple[str, ...]:
    """A pipeline in the columns ``PIPELINE_COLUMNS``."""
    found = one.figures
    done = [rows for rows in one.done.values() if rows is not None]
    rows = f"{sum(done):,}" if done else "" if found is None else f"{found.rows:,}"
    streams = (
        ("", rows, "", "", "")
        if found is None
        else (
            f"{found.epochs:,}",
            rows,
            f"{found.rows_per_second:,.0f}",
            "" if found.behind is None else f"{found.behind:,}",
            found.newest,
        )
    )
    return str(one.number), one.state.value, str(one.starts), *streams, one.error


def savepoint_line(one: Savepoint) -> str:
    """When it was made, and the versions of the paths that its sinks write to."""
    versions = ", ".join(
        f"{stream.sink} at version {stream.version}" for stream in one.streams if stream.version is not None
    )
    return f"savepoint {one.number} of {time_of(one.at_ms)} {versions}".rstrip()


def time_of(at_ms: int) -> str:
    """Milliseconds since 1970 UTC for people."""
    return time(Call.moment(at_ms))


def show_savepoints(call: Call, found: Sequence[Savepoint]) -> None:
    """Where a job can go back to."""
    for one in found:
        call.line(savepoint_line(one))


def started(call: Call, here: Jobs, identity: str, *, jobs: str) -> None:
    """Run this very command in a process of its own, without ``--detach``, and wait until it has begun.

    Raises:
        JobError: ``JOB_DETACH``; it has ended before, and its file says why.
    """
    from filesink.errors import JobError

    file = Path(mkdtemp(prefix="filesink-job-")) / "output.txt"  # for this user alone
    given = [one for one in sys.argv[1:] if one not in {"--detach", "-d"}]
    named = [] if sys.argv[1:2] == ["restore"] or "--name" in given else ["--name", identity]
    with file.open("wb") as output:
        process = Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "filesink", *given, *named],
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    while not _has_begun(here, identity):
        if process.poll() is not None:
            raise JobError(f"the job has ended before it began; '{file}' says why", code="JOB_DETACH")
        call.clock.sleep(_LOOK_S)
    value = {"job": identity, "pid": process.pid, "output": str(file), "jobs": jobs}
    if call.json:
        call.show(value)
    else:
        call.line(f"job '{identity}' runs in process {process.pid}, which writes to {file}")


def _has_begun(here: Jobs, identity: str) -> bool:
    try:
        return bool(here.info(identity).holder)
    except FilesinkError as error:
        if error.code != "JOB_ID":
            raise
        return False
