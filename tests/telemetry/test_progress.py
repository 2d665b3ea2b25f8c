"""One line of a terminal tells how far an epoch is."""

from __future__ import annotations

import io

import pytest

from filesink.api.events import Listeners
from filesink.file_sink.report import changes_of
from filesink.telemetry.progress import ProgressLine
from tests.fakes import World, micro_batch, records

VALUE = "of a record"


def world(out=None, destination="/base"):
    """A world whose drivers are listened to."""
    return World(audience=Listeners(destination, [ProgressLine(out)], changes_of))


def test_each_step_is_written_over_the_one_before():
    """And what an epoch has done stays."""
    out = io.StringIO()
    one = world(out)
    one.driver().run(micro_batch(0), one.job(records("1", "2")))
    one.driver().run(micro_batch(1), one.job(records("3")))
    first, second, rest = out.getvalue().split("\n")
    steps = [step.rstrip() for step in first.split("\r")[1:]]
    assert steps[:4] == [
        "/base: micro-batch 0: tasks write",
        "/base: micro-batch 0: 1 files (4 B) written, hidden",
        "/base: micro-batch 0: 2 rows decided, becoming visible",
        "/base: micro-batch 0: visible, being announced and noted",
    ]
    assert steps[4].startswith("/base: micro-batch 0: 2 rows, 1 files, 4 B in ")
    assert "/base: micro-batch 1: 1 rows, 1 files" in second
    assert rest == ""
    assert len({len(step) for step in first.split("\r")[1:]}) == 1, "a longer line would shine through"


def test_a_failure_ends_the_line_without_its_text():
    """Which may hold a value of a record."""
    out = io.StringIO()
    one = world(out)
    job = one.job(records(VALUE))
    job.write = lambda _task: (_ for _ in ()).throw(ValueError(VALUE))
    with pytest.raises(ValueError, match=VALUE):
        one.driver().run(micro_batch(0), job)
    assert out.getvalue().rstrip().endswith("failed, ValueError")
    assert out.getvalue().endswith("\n")
    assert VALUE not in out.getvalue()


def test_a_long_path_leaves_room(capsys):
    """Its end is shown; the line goes to standard error."""
    one = world(destination="s3://bucket/" + "deep/" * 30 + "trips")
    one.driver().run(micro_batch(0), one.job(records("1")))
    lines = capsys.readouterr().err.replace("\n", "\r").split("\r")
    assert {len(line) for line in lines if line} == {100}
    assert "deep/trips: micro-batch 0: 1 rows, 1 files" in lines[-2]
