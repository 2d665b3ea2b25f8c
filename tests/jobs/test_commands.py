"""Commands of jobs that need no Spark: mistakes, what is shown, what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run

JOB = """
source { FakeSource { plugin_output = a, schema { fields { id = int } }, row.num = ${rows} } }
transform { Filter { plugin_input = a, plugin_output = b, fields = [id] } }
sink { Console { plugin_input = [a, b] } }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A job file."""
    found = tmp_path / "job.conf"
    found.write_text(JOB)
    return found


def test_a_plan_is_a_tree(file: Path) -> None:
    """Sources, and below them what they feed; a vertex that takes two is shown once."""
    ran = run("plan", file, "-i", "rows=3")
    assert ran.code == 0
    assert "source-1 FakeSource x1 -> a: row.num = 3" in ran.out
    assert ran.out.count("sink-1 Console") == 2
    assert "as above" in ran.out


def test_a_plan_for_machines(file: Path) -> None:
    """All of it, with places."""
    (pipeline,) = run("plan", file, "-i", "rows=3", "--json").json["pipelines"]
    assert [one["id"] for one in pipeline["vertices"]] == ["source-1", "transform-1", "sink-1"]
    assert pipeline["vertices"][2]["place"] == {"file": str(file), "line": 4}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(
    ("text", "word"),
    [
        (JOB, "-i rows=VALUE"),
        (JOB.replace("Filter", "Filtr"), "-i rows=VALUE"),
        (JOB.replace("${rows}", "3").replace("Filter", "Filtr"), "did you mean 'Filter'"),
        ("\x1b[31m{", "job.conf:1"),
        ("#" * 10_000_000, "more than"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, command: str, text: str, word: str) -> None:
    """With exit code 2, no traceback, nothing that a terminal would obey, and no record of a job."""
    file = tmp_path / "job.conf"
    file.write_text(text)
    place = ("--jobs", str(tmp_path / "jobs")) if command == "run" else ()
    ran = run(command, file, *place)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert word in ran.err
    assert "\x1b" not in ran.err
    assert not (tmp_path / "jobs").exists()


def test_nothing_is_there(tmp_path: Path) -> None:
    """A path without jobs has none, and no job has an id of its choice."""
    place = ("--jobs", str(tmp_path / "jobs"))
    assert (run("jobs", *place, "--json").code, run("jobs", *place, "--json").out) == (0, "")
    for command in ("job", "stop", "cancel", "restore"):
        assert run(command, "x", *place, "--json").json["code"] == "JOB_ID"
        assert run(command, "../x", *place).code == 2
    assert not list(tmp_path.iterdir())


def test_plugins() -> None:
    """All of them, and the options of one; a typing error names the nearest."""
    assert "FakeSource" in run("plugins").out
    assert "row.num" in run("plugins", "fakesource").out
    assert [one["kind"] for one in run("plugins", "LocalFile", "--json").lines] == ["source", "sink"]
    assert "did you mean 'LocalFile'" in run("plugins", "LocalFil").err


def test_without_the_extra() -> None:
    """Jobs say what to install. Pydantic is there wherever Typer is."""
    program = "import sys; sys.modules['yaml'] = None; from filesink.cli.app import app; app()"
    path = os.pathsep.join(one for one in sys.path if one)
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", program, "plan", "x.conf"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, "filesink[jobs]" in done.stderr) == (3, True)


def test_what_a_detached_job_says_before_it_begins(file: Path, tmp_path: Path) -> None:
    """A mistake in the file is told at once, and no process is left to find it."""
    ran = run("run", file, "--detach", "--jobs", str(tmp_path / "jobs"))
    assert (ran.code, "-i rows=VALUE" in ran.err, len(ran.err.splitlines())) == (2, True, 1)
    assert not (tmp_path / "jobs").exists()


def test_a_plan_is_drawn(file: Path, tmp_path: Path) -> None:
    """As SVG; a directory that is not there is one sentence."""
    drawn = tmp_path / "plan.svg"
    assert run("plan", file, "-i", "rows=3", "--svg", str(drawn)).code == 0
    assert drawn.read_text().count("<rect") == 3
    ran = run("plan", file, "-i", "rows=3", "--svg", str(tmp_path / "none" / "plan.svg"))
    assert (ran.code, len(ran.err.splitlines())) == (3, 1)


@pytest.mark.parametrize("command", ["logs", "retry", "restore", "cancel", "job"])
def test_jobs_that_there_are_not(tmp_path: Path, command: str) -> None:
    """Are one sentence."""
    ran = run(command, "none", "--jobs", str(tmp_path))
    assert (ran.code, "there is no job 'none'" in ran.err, len(ran.err.splitlines())) == (2, True, 1)


def test_a_page_of_nothing(tmp_path: Path) -> None:
    """``serve`` wants a path; a page of no jobs is a page."""
    from datetime import UTC, datetime

    from filesink.cli.job_page import page
    from filesink.jobs import Jobs

    assert run("serve").code == 2
    assert "0 jobs" in page(Jobs(tmp_path), str(tmp_path), datetime.now(UTC))


def test_a_savepoint_names_the_versions_that_there_are() -> None:
    """In the command and on the page: a sink that writes no files has none."""
    from filesink.cli.jobs import savepoint_line
    from filesink.jobs.life.savepoints import Saved, Savepoint

    streams = (
        Saved(sink="files", checkpoint="a", path="/data", version=7),
        Saved(sink="topic", checkpoint="b"),
    )
    assert savepoint_line(Savepoint(number=1, at_ms=0, streams=streams)) == (
        "savepoint 1 of 1970-01-01 00:00:00 files at version 7"
    )
    assert savepoint_line(Savepoint(number=2, at_ms=0, streams=streams[1:])) == (
        "savepoint 2 of 1970-01-01 00:00:00"
    )
