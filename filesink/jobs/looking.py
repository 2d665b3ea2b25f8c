"""What a job file would run, without running it: by itself, and against its real sources."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from filesink.jobs.dry_run import CheckedTable, checked
from filesink.jobs.life.secrets import process_environment
from filesink.jobs.plans.planned import Job, planned
from filesink.jobs.plans.values import Plan
from filesink.jobs.text.read import read
from filesink.jobs.text.variables import Variables


def plan(
    file: str | os.PathLike[str],
    *,
    variables: Mapping[str, str] | None = None,
    inline_secrets: bool = False,
) -> Plan:
    """What a job file would run. Nothing is opened, listed or written.

    Args:
        file: HOCON (``.conf``), YAML or SQL.
        variables: values of ``${name}``; they come before those of the file and of the environment.
        inline_secrets: whether secrets may stand in the file, as SeaTunnel has them.

    Raises:
        JobError: one sentence with file and line.
    """
    return job_of(Path(file), variables or {}, inline_secrets=inline_secrets).plan


def job_of(file: Path, variables: Mapping[str, str], *, inline_secrets: bool) -> Job:
    """The job of a file, ready to run."""
    known = Variables(given=variables, environment=process_environment())
    return planned(read(file, known), inline_secrets=inline_secrets)


def dry_run(
    file: str | os.PathLike[str],
    *,
    variables: Mapping[str, str] | None = None,
    inline_secrets: bool = False,
    master: str | None = None,
) -> Sequence[CheckedTable]:
    """The columns of a job against its real sources, up to the sinks; needs Spark, and writes nothing.

    Args:
        file: see ``plan``.
        variables: see ``plan``.
        inline_secrets: see ``plan``.
        master: Spark's, where no session is active; comes before that of the file.

    Raises:
        JobError: as ``plan``; ``JOB_DRY_RUN``, one sentence with the line of what would fail.
    """
    return checked(job_of(Path(file), variables or {}, inline_secrets=inline_secrets), master=master)
