# ruff: noqa: E501 - job files
"""Streams of jobs on Spark: savepoints and the way back, batches that go on, time limits, second tries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from filesink.errors import FilesinkError, JobError
from filesink.jobs import Back, State
from tests.jobs.test_running import Site, parquet

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

LOOK_S = 0.1


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One for each test."""
    (tmp_path / "in").mkdir()
    return Site(tmp_path)


STREAM = """
env { job.mode = STREAMING, checkpoint.interval = 100, job.retry.times = 5, job.retry.interval.seconds = 0 }
source { LocalFile { path = HERE/in, file_format_type = json, schema { fields { id = int } } } }
sink { LocalFile { path = HERE/out, file_format_type = %s } }
"""


def ids(site: Site) -> list[int]:
    """What readers see."""
    return [row["id"] for row in parquet(site.path / "out")]


def put(site: Site, *numbers: int) -> None:
    """A file of rows, under its final name at once."""
    hidden = site.path / "in" / ".new"
    hidden.write_text("".join(f'{{"id": {number}}}\n' for number in numbers))
    hidden.rename(site.path / "in" / f"{numbers[0]}.json")


def until(holds: Callable[[], bool]) -> None:
    """Wait; pytest's own timeout ends it."""
    while not holds():
        time.sleep(LOOK_S)


@contextmanager
def running(function: Callable[..., Any], *given: Any, **options: Any) -> Iterator[list[Any]]:
    """In a thread until it ends, which the block asks for; then what it returned or raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function(*given, **options))
        except FilesinkError as error:
            found.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        thread.join()


def test_an_older_savepoint(site: Site) -> None:
    """Is refused while sinks have epochs since; rolled back, each row of each file is there once again."""
    put(site, 1, 2)
    with running(site.run, STREAM % "parquet", name="back"):
        until(lambda: ids(site) == [1, 2])
        site.jobs.savepoint("back")
    (saved,) = site.jobs.savepoints("back")
    assert [(one.sink, one.is_idle, one.version is not None) for one in saved.streams] == [
        ("sink-1", True, True)
    ]
    put(site, 3)
    with running(site.jobs.restore, "back", back=Back(savepoint=0)):  # nothing is newer: as any restore
        until(lambda: ids(site) == [1, 2, 3])
        site.jobs.savepoint("back")
    with pytest.raises(JobError, match="is older than its sinks: sink-1 has begun 1 epochs since"):
        site.jobs.restore("back", back=Back(savepoint=0))
    with pytest.raises(JobError, match="no savepoint 7; there are 0 to 1"):
        site.jobs.restore("back", back=Back(savepoint=7))
    assert ids(site) == [1, 2, 3]
    with running(site.jobs.restore, "back", back=Back(savepoint=0, on_newer_epochs="roll_back")):
        until(lambda: len(site.jobs.logs("back")) > 0 and ids(site) == [1, 2, 3] and _has_rolled_back(site))
        put(site, 4)
        until(lambda: ids(site) == [1, 2, 3, 4])
        site.jobs.cancel("back")
    with running(site.jobs.restore, "back"):  # and goes on from there
        put(site, 5)
        until(lambda: ids(site) == [1, 2, 3, 4, 5])
        site.jobs.cancel("back")
    with running(site.jobs.restore, "back", back=Back(savepoint=0, on_newer_epochs="roll_back")):
        until(
            lambda: _has_rolled_back(site, times=2) and ids(site) == [1, 2, 3, 4, 5]
        )  # over both its queries
        site.jobs.cancel("back")


def _has_rolled_back(site: Site, times: int = 1) -> bool:
    return sum("was rolled back" in text for _, text in site.jobs.logs("back")) == times


def test_a_return_that_dies_is_completed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files went back and the checkpoint did not: whoever restores next goes back with it, unasked."""
    from filesink.jobs.life.savepoints import Savepoints

    put(site, 1)
    with running(site.run, STREAM % "parquet", name="back"):
        until(lambda: ids(site) == [1])
        site.jobs.savepoint("back")
    put(site, 2)
    with running(site.jobs.restore, "back"):
        until(lambda: ids(site) == [1, 2])
        site.jobs.cancel("back")

    def dies(*_: object) -> str:
        raise JobError("the process is gone", code="JOB_TAKEN")

    with monkeypatch.context() as patched:
        patched.setattr(Savepoints, "bring_back", dies)
        with pytest.raises(JobError, match="the process is gone"):
            site.jobs.restore("back", back=Back(savepoint=0, on_newer_epochs="roll_back"))
    assert ids(site) == [1]
    with running(site.jobs.restore, "back"):
        until(lambda: ids(site) == [1, 2])
        site.jobs.cancel("back")


def test_others_have_written_there(site: Site) -> None:
    """A rollback would take back their rows as well: it is refused, and nothing has changed."""
    put(site, 1)
    with running(site.run, STREAM % "parquet", name="one"):
        until(lambda: ids(site) == [1])
        site.jobs.savepoint("one")
    put(site, 2)
    with running(site.jobs.restore, "one"):
        until(lambda: ids(site) == [1, 2])
        site.jobs.cancel("one")
    site.run(
        "source { FakeSource { schema { fields { id = int } }, rows = [{ fields = [9] }] } }\n"
        "sink { LocalFile { path = HERE/out, file_format_type = parquet } }",
        name="two",
    )
    site.file(STREAM % "parquet")
    with pytest.raises(JobError, match="1 other sinks have written there since, or hold"):
        site.jobs.restore("one", back=Back(savepoint=0, on_newer_epochs="roll_back"))
    assert ids(site) == [1, 2, 9]


def test_a_batch_that_goes_on(site: Site) -> None:
    """Files that it has read before it failed are not read again, and those that came since are."""
    text = """
    env { job.batch.resumable = true, job.retry.times = 0 }
    source { LocalFile { path = HERE/in, file_format_type = json, schema { fields { id = int } } } }
    transform { Sql { query = "select id from `source-1` where assert_true(id <> 2 or %s) is null" } }
    sink { LocalFile { path = HERE/out, file_format_type = parquet } }
    """
    put(site, 1)
    info = site.run(text % "false", name="first")
    assert (info.state, info.pipelines[0].done, ids(site)) == (State.FINISHED, {"sink-1": 1}, [1])
    put(site, 3)
    put(site, 2)
    site.file(text % "false")
    info = site.run(text % "false", name="second")
    assert info.state is State.FAILED
    site.file(text % "true")
    info = site.jobs.restore("second", accept_changes=True)
    assert (info.state, sorted(ids(site))) == (
        State.FINISHED,
        [1, 1, 2, 3],
    )  # two jobs, each file once by each


def test_a_micro_batch_that_takes_too_long(site: Site) -> None:
    """Its pipeline is started again, as often as the job says; the error names the option."""
    put(site, 1)
    info = site.run(
        STREAM.replace(
            "job.retry.times = 5",
            "job.retry.times = 1, checkpoint.timeout = 1000",
        ).replace("sink {", 'transform { Python { function = "tests.jobs.functions:slowly" } }\nsink {')
        % "parquet",
        name="slow",
    )
    assert (info.state, info.pipelines[0].starts) == (State.FAILED, 2)
    assert "checkpoint.timeout" in info.error
    assert not ids(site)


def test_a_failed_pipeline_is_tried_again_while_others_go_on(site: Site) -> None:
    """``retry`` starts it; figures of the one that went on are there, and all is in the log."""
    text = (STREAM % "parquet").replace(
        "LocalFile { path = HERE/in", "LocalFile { plugin_output = a, path = HERE/in"
    )
    text = text.replace("LocalFile { path = HERE/out", "LocalFile { plugin_input = a, path = HERE/out")
    other = """
    source { LocalFile { plugin_output = late, path = HERE/late, file_format_type = json, schema { fields { id = int } } } }
    sink { LocalFile { plugin_input = late, path = HERE/broken/out, file_format_type = parquet} }
    """
    broken = site.path / "broken"
    broken.write_text("x")
    put(site, 1)
    (site.path / "late").mkdir()
    (site.path / "late" / "1.json").write_text('{"id": 7}\n')
    with running(site.run, text + other, name="two"):
        until(lambda: bool(site.jobs.list()))
        until(lambda: [one.state for one in site.jobs.info("two").pipelines][1:] == [State.FAILED])
        assert site.jobs.info("two").pipelines[0].state is State.RUNNING
        broken.unlink()
        site.jobs.retry("two")
        until(lambda: len(parquet(site.path / "broken" / "out")) == 1)
        put(site, 2)
        until(lambda: ids(site) == [1, 2])
        with pytest.raises(JobError, match="no pipeline of job 'two' has failed"):
            site.jobs.retry("two")
        site.jobs.savepoint("two")
    info = site.jobs.info("two")
    assert [one.state for one in info.pipelines] == [State.SAVEPOINT_DONE] * 2
    assert info.pipelines[0].figures is not None
    assert info.pipelines[0].figures.rows == 2
    assert any("pipeline 2: FAILED" in text for _, text in site.jobs.logs("two"))
    with pytest.raises(JobError, match="has failed"):
        site.jobs.retry("two")
