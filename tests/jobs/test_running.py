# ruff: noqa: E501 - job files
"""Whole jobs on Spark: from a file to files, by the Python API and by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest

from filesink.cli.app import app
from filesink.errors import JobError
from filesink.jobs import Jobs, State
from tests.cli.running import run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("spark")]
assert app

SCHEMA = 'schema { fields { id = bigint, name = string, day = date, tags = "array<string>", m = "map<string, int>", r { x = int, y = "decimal(9,2)" } } }'
ROWS = """rows = [
  { kind = INSERT, fields = [1, "a, \\"b\\"", "2026-01-31", ["x", "y"], {"k": 1}, {x = 1, y = 2.5}] }
  { fields = [2, null, null, null, null, null] }
  { fields = { id = 3, name = "é", r = {x = null, y = 1} } }
]"""


class Site:
    """A directory with jobs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.jobs = Jobs(path / "jobs")
        self.said: list[str] = []

    def file(self, text: str, name: str = "job.conf") -> Path:
        """A job file; ``HERE`` is the directory."""
        file = self.path / name
        file.write_text(text.replace("HERE", str(self.path)))
        return file

    def run(self, text: str, **options: Any) -> Any:
        """Run a text."""
        from filesink.jobs import RunOptions

        return self.jobs.run(self.file(text), options=RunOptions(say=self.said.append), **options)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One for each test."""
    return Site(tmp_path)


def parquet(path: Path) -> list[dict[str, Any]]:
    """The rows of visible files, by another reader."""
    files = [one for one in path.rglob("*.parquet") if "_filesink" not in one.parts]
    return sorted(
        (row for one in files for row in pq.ParquetFile(one).read().to_pylist()), key=lambda row: row["id"]
    )


def test_rows_of_a_file_become_parquet(site: Site) -> None:
    """Values of every kind, nulls too; the job says what it has done, and knows it later."""
    info = site.run(
        f"source {{ FakeSource {{ {SCHEMA}, {ROWS} }} }}\n"
        "sink { LocalFile { path = HERE/out, file_format_type = parquet, partition_by = [day], is_partition_field_write_in_file = true } }",
        name="first",
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    rows = parquet(site.path / "out")
    assert [row["id"] for row in rows] == [1, 2, 3]
    assert rows[0]["name"] == 'a, "b"'
    assert rows[0]["tags"] == ["x", "y"]
    assert (rows[1]["name"], rows[1]["r"], rows[2]["name"]) == (None, None, "é")
    assert sorted(one.name for one in (site.path / "out").glob("day=*")) == [
        "day=2026-01-31",
        "day=__HIVE_DEFAULT_PARTITION__",
    ]
    assert site.jobs.info("first").pipelines[0].done == {"sink-1": 3}


@pytest.mark.parametrize("form", ["text", "json", "csv", "parquet", "orc", "xml", "excel"])
def test_what_one_job_writes_another_reads(site: Site, form: str) -> None:
    """Every format and back: columns of all kinds have the values that were made up."""
    more = ", skip_header_row_number = 1" if form == "excel" else ""
    schema = "" if form in {"parquet", "orc"} else SCHEMA
    info = site.run(
        f"""
        source {{ FakeSource {{ plugin_output = made, {SCHEMA}, row.num = 20 }} }}
        sink {{
          LocalFile {{ plugin_input = made, path = HERE/out, file_format_type = {form} }}
          LocalFile {{ plugin_input = made, path = HERE/made, file_format_type = parquet }}
        }}
        """
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    info = site.run(
        f"""
        source {{ LocalFile {{ path = HERE/out, file_format_type = {form}, {schema} {more} }} }}
        sink {{ LocalFile {{ path = HERE/back, file_format_type = parquet }} }}
        """
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    made, back = parquet(site.path / "made"), parquet(site.path / "back")
    assert len(made) == 20
    assert made == back


def test_transforms(site: Site) -> None:
    """Each by SeaTunnel's words, one behind the other, and a function of the user's at the end."""
    info = site.run(
        """
        source { FakeSource { plugin_output = a, schema { fields { id = int, card = string } },
          rows = [{ fields = [1, "a.b.c"] }, { fields = [2, null] }] } }
        transform {
          FieldMapper { plugin_output = b, field_mapper = { id = id, card = number } }
          Copy { plugin_output = c, fields { twin = number } }
          Split { plugin_output = d, separator = ".", split_field = number, output_fields = [first, rest] }
          Replace { plugin_output = e, replace_field = twin, pattern = ".", replacement = "$", is_regex = false }
          Replace { plugin_output = f, replace_field = rest, pattern = "(.)\\\\.(.)", replacement = "$2-$1", is_regex = true, replace_first = true }
          Filter { plugin_output = g, exclude_fields = [number] }
          Sql { plugin_input = [g, a], plugin_output = h, query = "select g.*, a.card from g join a using (id)" }
          Python { plugin_output = i, function = "tests.jobs.functions:only_first", arguments { most = 1 } }
        }
        sink { LocalFile { path = HERE/out, file_format_type = parquet } }
        """
    )
    assert (info.state, info.error) == (State.FINISHED, "")
    assert parquet(site.path / "out") == [
        {"id": 1, "twin": "a$b$c", "first": "a", "rest": "c-b", "card": "a.b.c"}
    ]


@pytest.mark.parametrize(
    ("transform", "word"),
    [
        ("Filter { fields = [idd] }", "did you mean 'id'"),
        ("Copy { fields { x = idd } }", "did you mean 'id'"),
        ('Sql { query = "select idd from `source-1`" }', "idd"),
        ('Sql { query = "selec" }', "selec"),
        ('Python { function = "no.such:module" }', "cannot be imported"),
        ('Python { function = "tests.jobs.functions:nothing" }', "returned NoneType"),
    ],
)
def test_mistakes_that_show_when_a_job_runs(site: Site, transform: str, word: str) -> None:
    """The pipeline fails at once, with a sentence; nothing is repeated."""
    info = site.run(
        f"source {{ FakeSource {{ {SCHEMA} }} }}\ntransform {{ {transform} }}\nsink {{ Console {{}} }}"
    )
    assert (info.state, info.pipelines[0].starts) == (State.FAILED, 1)
    assert word in info.error
    assert "\n" not in info.error
    if transform.startswith(("Filter", "Copy", "Python")):
        assert info.error.startswith(f"{site.path / 'job.conf'}:2: ")


ASSERTED = """
source { FakeSource { schema { table = "t", fields { id = int, name = string, tags = "array<int>" } },
  rows = [{ fields = [1, "ab", [1, 2]] }, { fields = [2, "abc", [1, 2]] }] } }
sink { Assert { rules { %s } } }
"""


@pytest.mark.parametrize(
    ("rules", "word"),
    [
        ("row_rules = [{rule_type = MIN_ROW, rule_value = 2}, {rule_type = MAX_ROW, rule_value = 2}]", ""),
        ("row_rules = [{rule_type = MIN_ROW, rule_value = 3}]", "has 2 rows"),
        ("row_rules = [{rule_type = max_row, rule_value = 1}]", "has 2 rows"),
        (
            "field_rules = [{field_name = id, field_type = int, field_value = [{rule_type = MIN, rule_value = 1}]}]",
            "",
        ),
        (
            "field_rules = [{field_name = id, field_value = [{rule_type = MAX, rule_value = 1}]}]",
            "1 of 2 rows",
        ),
        ("field_rules = [{field_name = id, field_type = string}]", "is int, and not string"),
        ("field_rules = [{field_name = idd}]", "did you mean 'id'"),
        (
            "field_rules = [{field_name = name, field_value = [{rule_type = MIN_LENGTH, rule_value = 3}]}]",
            "1 of 2",
        ),
        ("field_rules = [{field_name = name, field_value = [{rule_type = NULL}]}]", "2 of 2"),
        ("field_rules = [{field_name = tags, field_value = [{equals_to = [1, 2]}]}]", ""),
        (
            "field_rules = [{field_name = name, field_value = [{rule_type = NOT_NULL, equals_to = ab}]}]",
            "1 of 2",
        ),
        ("table-names = [t]", ""),
        ("table-names = [t, u]", "'t', 'u'"),
    ],
)
def test_assert(site: Site, rules: str, word: str) -> None:
    """SeaTunnel's rules: which hold, and what is said where one does not; no value of a record is."""
    info = site.run(ASSERTED % rules)
    assert info.state is (State.FAILED if word else State.FINISHED), info.error
    assert word in info.error


def test_one_pipeline_fails(site: Site) -> None:
    """The other has written its rows; restored, the first goes on, and the other is not run again."""
    text = """
    env { job.retry.times = 0 }
    source {
      FakeSource { plugin_output = a, schema { fields { id = int } }, row.num = 4 }
      LocalFile { plugin_output = b, path = HERE/late, file_format_type = json, schema { fields { id = int } } }
    }
    sink {
      LocalFile { plugin_input = a, path = HERE/one, file_format_type = parquet }
      LocalFile { plugin_input = b, path = HERE/two, file_format_type = parquet }
    }
    """
    info = site.run(text, name="two")
    assert [one.state for one in info.pipelines] == [State.FINISHED, State.FAILED]
    assert len(parquet(site.path / "one")) == 4
    (site.path / "late").mkdir()
    (site.path / "late" / "x.json").write_text('{"id": 7}\n')
    info = site.jobs.restore("two")
    assert (info.state, [one.starts for one in info.pipelines]) == (State.FINISHED, [1, 2])
    assert (len(parquet(site.path / "one")), parquet(site.path / "two")) == (4, [{"id": 7}])
    with pytest.raises(JobError, match="has finished"):
        site.jobs.restore("two")


def test_a_batch_that_is_repeated_writes_its_rows_once(site: Site) -> None:
    """A sink that had written, and was not noted, finds its own rows."""
    text = """
    source { FakeSource { plugin_output = a, schema { fields { id = int } }, row.num = 4 } }
    sink { LocalFile { path = HERE/out, file_format_type = parquet }
           Assert { rules { row_rules = [{rule_type = MIN_ROW, rule_value = 9}] } } }
    """
    assert site.run(text, name="again").state is State.FAILED
    events = site.path / "jobs" / "again" / "events"
    noted = [one for one in sorted(events.iterdir()) if b'"sink":"sink-1"' in one.read_bytes()]
    assert len(noted) == 1
    kept = noted[0].read_bytes()
    noted[0].unlink()  # as if the process had died before; an event that says nothing takes its place
    from filesink.framing import frame, to_json

    empty = {"at_ms": 1, "by": "x", "pipeline": 0, "state": None, "sink": "", "rows": None, "error": ""}
    noted[0].write_bytes(frame("job", 1, to_json(empty)))
    assert kept
    assert site.jobs.restore("again").state is State.FAILED
    assert len(parquet(site.path / "out")) == 4


def test_another_plan_is_not_restored(site: Site) -> None:
    """What has changed is named; it goes on if that is accepted."""
    text = "source { FakeSource { schema { fields { id = int } } } }\nsink { Assert { rules { row_rules = [{rule_type = MIN_ROW, rule_value = 9}] } } }"
    assert site.run(text, name="changed").state is State.FAILED
    site.file(text.replace("rule_value = 9", "rule_value = 1"))
    with pytest.raises(JobError, match="the option 'rules' of sink-1"):
        site.jobs.restore("changed")
    assert site.jobs.restore("changed", accept_changes=True).state is State.FINISHED


STREAM = """
env { job.mode = STREAMING, checkpoint.interval = 100, job.retry.times = 0 }
source { LocalFile { path = HERE/in, file_format_type = json, schema { fields { id = int } } } }
sink { LocalFile { path = HERE/out, file_format_type = parquet } }
"""


def test_a_stream_is_stopped_and_restored(site: Site) -> None:
    """With a savepoint, and then cancelled: each row of each file is there once."""
    (site.path / "in").mkdir()
    (site.path / "in" / "1.json").write_text('{"id": 1}\n{"id": 2}\n')
    started = Thread(target=site.run, args=(STREAM,), kwargs={"name": "stream"})
    started.start()
    _until(lambda: len(parquet(site.path / "out")) == 2)
    site.jobs.savepoint("stream")
    started.join()
    assert site.jobs.info("stream").state is State.SAVEPOINT_DONE
    (site.path / "in" / "2.json").write_text('{"id": 3}\n')
    again = Thread(target=site.jobs.restore, args=("stream",))
    again.start()
    _until(lambda: len(parquet(site.path / "out")) == 3)
    with pytest.raises(JobError, match="is run by"):
        site.jobs.restore("stream")
    site.jobs.cancel("stream")
    again.join()
    assert site.jobs.info("stream").state is State.CANCELED
    assert [row["id"] for row in parquet(site.path / "out")] == [1, 2, 3]
    with pytest.raises(JobError, match="CANCELED"):
        site.jobs.cancel("stream")


def test_a_stream_into_a_batch_sink(site: Site) -> None:
    """Is refused with the line of the sink."""
    text = "env { job.mode = STREAMING }\n" + ASSERTED % "table-names = t"
    info = site.run(text)
    assert (info.state, info.pipelines[0].starts) == (State.FAILED, 1)
    assert "takes batches only" in info.error


def test_the_command_line(site: Site) -> None:
    """Plan, run, look, and what a failed job and a mistake end with."""
    file = site.file(
        "source { FakeSource { schema { fields { id = int } }, row.num = ${rows} } }\nsink { Console {} }"
    )
    place = ("--jobs", str(site.path / "jobs"))
    assert "FakeSource" in run("plan", file, "-i", "rows=3").out
    assert run("plan", file, "-i", "rows=3", "--json").json["pipelines"][0]["number"] == 1
    ran = run("run", file, "-i", "rows=3", "--name", "x", *place)
    assert (ran.code, "3 rows" in ran.out, "FINISHED" in ran.out) == (0, True, True)
    assert run("jobs", *place, "--json").json["state"] == "FINISHED"
    assert run("job", "x", *place, "--json").json["pipelines"][0]["done"] == {"sink-1": 3}
    assert (run("job", "y", *place).code, run("stop", "x", *place).code) == (2, 2)
    wrong = run("run", file, *place)
    assert (wrong.code, "-i rows=VALUE" in wrong.err, len(wrong.err.splitlines())) == (2, True, 1)
    failing = site.file(ASSERTED % "table-names = u", "other.conf")
    assert run("run", failing, *place, "--json").code == 1


def test_the_record_of_a_job_has_no_secret(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the environment, nor of the file, nor of a variable that the file lets be one."""
    monkeypatch.setenv("FILESINK_TEST_TOKEN", "hunter2")
    text = "source { Spark { format = none-such, options { password = %s } } }\nsink { Console {} }"
    more = text + "\nenv { job.name = ${name} }"
    site.run(more % "${FILESINK_TEST_TOKEN}", name="a", variables={"name": "x"})
    site.run(text % "hunter2", name="b", inline_secrets=True)
    site.run(text % "${token}", name="c", inline_secrets=True, variables={"token": "hunter2"})
    kept = [one.read_bytes() for one in (site.path / "jobs").rglob("*") if one.is_file()]
    assert kept
    assert not [one for one in kept if b"hunter2" in one]
    assert "hunter2" not in json.dumps(str(site.jobs.list()))


def _until(holds: Any) -> None:
    """Wait; pytest's own timeout ends it."""
    from time import sleep

    while not holds():
        sleep(0.1)
