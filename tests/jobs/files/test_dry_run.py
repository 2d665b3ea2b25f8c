# ruff: noqa: E501 - job files
"""Dry runs on Spark: columns through to the sinks, and what would fail there, without a row written."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink.errors import JobError
from filesink.jobs import dry_run
from tests.cli.running import run
from tests.jobs.test_running import Site

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]

JOB = """
env {{ {env} }}
source {{ LocalFile {{ plugin_output = in, path = HERE/in, file_format_type = json, schema {{ fields {{ id = int, day = date }} }} }} }}
transform {{ {transform} }}
sink {{ {sink} }}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """With a file to read."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "day": "2026-01-31"}\n')
    return Site(tmp_path)


def job(site: Site, *, env: str = "", transform: str = "", sink: str) -> Path:
    """A job file."""
    return site.file(JOB.format(env=env, transform=transform, sink=sink))


FILES = "LocalFile { path = HERE/out, file_format_type = parquet, partition_by = [day] }"


@pytest.mark.parametrize("mode", ["BATCH", "STREAMING"])
def test_columns_up_to_the_sink(site: Site, mode: str) -> None:
    """What each plugin makes and takes; nothing is written, no directory is made."""
    transform = (
        'Sql { query = "select day, count(*) as n from `in` group by day" }'
        if mode == "BATCH"
        else "Copy { fields { n = id } }"
    )
    before = sorted(site.path.rglob("*"))
    file = job(site, env=f"job.mode = {mode}", transform=transform, sink=FILES)
    found = dry_run(file)
    assert [one.vertex for one in found] == ["source-1", "transform-1", "sink-1"]
    assert found[0].columns == (("id", "int"), ("day", "date"))
    assert ("n", "bigint" if mode == "BATCH" else "int") in found[2].columns
    assert found[2].shuffles == (1 if mode == "BATCH" else None)
    assert sorted(site.path.rglob("*")) == sorted([*before, file])


@pytest.mark.parametrize(
    ("transform", "sink", "line", "word"),
    [
        ("", "LocalFile { path = HERE/out, partition_by = [dy] }", 5, "did you mean 'day'"),
        ("", "LocalFile { path = HERE/out, sink_columns = [x, id] }", 5, "'x'"),
        ("", "Assert { rules { field_rules = [{ field_name = idd }] } }", 5, "did you mean 'id'"),
        ("", "Assert { rules { field_rules = [{ field_name = id, field_type = string }] } }", 5, "is int"),
        ('Sql { query = "select idd from `in`" }', "Console {}", 4, "idd"),
        ("Filter { fields = [idd] }", "Console {}", 4, "did you mean 'id'"),
    ],
)
def test_what_would_fail(site: Site, transform: str, sink: str, line: int, word: str) -> None:
    """One sentence with file, line and the nearest right word; nothing was written."""
    with pytest.raises(JobError) as raised:
        dry_run(job(site, transform=transform, sink=sink))
    assert f"job.conf:{line}: " in raised.value.message
    assert word in raised.value.message
    assert "\n" not in raised.value.message
    assert not (site.path / "out").exists()


def test_a_source_that_is_not_there(site: Site) -> None:
    """Is found before anything runs."""
    file = site.file("source { Spark { format = parquet, path = HERE/none } }\nsink { Console {} }")
    with pytest.raises(JobError, match=r"job\.conf:1: source Spark") as raised:
        dry_run(file)
    assert raised.value.code == "JOB_DRY_RUN"


def test_the_command_line(site: Site) -> None:
    """``plan --check`` says columns, ``--svg`` draws."""
    file = job(site, sink=FILES)
    drawn = site.path / "plan.svg"
    found = run("plan", file, "--check", "--svg", drawn)
    assert (found.code, "id int, day date; 0 shuffles" in found.out) == (0, True)
    assert drawn.read_text().startswith("<svg ")
    wrong = run("plan", job(site, sink="LocalFile { path = HERE/out, partition_by = [dy] }"), "--check")
    assert (wrong.code, len(wrong.err.splitlines())) == (2, 1)
