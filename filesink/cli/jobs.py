"""What the commands of jobs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from filesink.cli.call import Call, Exit
from filesink.cli.tables import show_table
from filesink.cli.text import time
from filesink.errors import DependencyError

if TYPE_CHECKING:
    from filesink.jobs import JobInfo, Jobs

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
DEFAULT = "filesink-jobs"


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
        call.line(f"{info.file}, {info.mode}, submitted {time(call.moment(info.submitted_ms))}")
        show_table(
            call,
            ("pipeline", "state", ">starts", ">rows", "last error"),
            (
                (str(one.number), one.state.value, str(one.starts), _rows(one.done.values()), one.error)
                for one in info.pipelines
            ),
        )
    if info.state.value == "FAILED":
        raise typer.Exit(int(Exit.FINDING))


def _rows(found: Any) -> str:
    known = [rows for rows in found if rows is not None]
    return f"{sum(known):,}" if known else ""
