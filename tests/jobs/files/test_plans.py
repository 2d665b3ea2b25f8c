# ruff: noqa: E501, S608 - job files in a line each; nobody's SQL
"""Plans: who feeds whom, which vertices are one pipeline, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from filesink.errors import JobError
from filesink.jobs import State, plugins
from filesink.jobs.life.described import described, plan_of
from filesink.jobs.plans.planned import Job, planned
from filesink.jobs.plans.values import differences
from filesink.jobs.plugins.api import OneTableTransform, PluginOptions, Sink
from filesink.jobs.plugins.catalog import catalog
from filesink.jobs.plugins.registry import Registry, _loaded
from filesink.jobs.text.read import read_text
from filesink.jobs.text.variables import Variables

FAKE = "FakeSource { schema { fields { id = int } }, row.num = 3"


def job(text: str, **options: Any) -> Job:
    """The job of a text."""
    return planned(read_text(text, "job.conf", Variables()), **options)


def failing(text: str, **options: Any) -> JobError:
    """The error."""
    with pytest.raises(JobError) as raised:
        job(text, **options)
    assert "\n" not in raised.value.message
    return raised.value


def edges(text: str) -> set[tuple[str, str]]:
    """Who feeds whom."""
    return {(edge.source, edge.target) for one in job(text).plan.pipelines for edge in one.edges}


def test_names_are_edges() -> None:
    """By new names and by old ones, one or several."""
    text = f"""
    source {{ {FAKE}, plugin_output = a }}
      {FAKE}, result_table_name = b }} }}
    transform {{ Sql {{ plugin_input = [a, b], plugin_output = c, query = "select * from a join b using (id)" }} }}
    sink {{ Console {{ source_table_name = c }}
      Console {{ plugin_input = "a, c" }} }}
    """
    assert edges(text) == {
        ("source-1", "transform-1"),
        ("source-2", "transform-1"),
        ("transform-1", "sink-1"),
        ("source-1", "sink-2"),
        ("transform-1", "sink-2"),
    }


def test_who_names_no_input_takes_the_last_output() -> None:
    """As SeaTunnel does: a file without names is a chain."""
    text = f"source {{ {FAKE} }} }}\ntransform {{ Filter {{ fields = id }} }}\nsink {{ Console {{}}\nConsole {{}} }}"
    assert edges(text) == {("source-1", "transform-1"), ("transform-1", "sink-1"), ("transform-1", "sink-2")}


def test_connected_vertices_are_a_pipeline() -> None:
    """Ten chains are ten pipelines, in the order of the file, and each vertex comes behind its inputs."""
    sources = "\n".join(f"{FAKE}, plugin_output = s{number} }}" for number in range(10))
    sinks = "\n".join(f"Console {{ plugin_input = t{number} }}" for number in range(10))
    transforms = "\n".join(
        f"Filter {{ plugin_input = s{number}, plugin_output = t{number}, fields = id }}"
        for number in range(10)
    )
    found = job(f"source {{ {sources} }}\ntransform {{ {transforms} }}\nsink {{ {sinks} }}").plan.pipelines
    assert [one.number for one in found] == list(range(1, 11))
    assert [[vertex.kind for vertex in one.vertices] for one in found] == [
        ["source", "transform", "sink"]
    ] * 10


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (f"source {{ {FAKE}, plugin_output = a }} }}\nsink {{\nConsole {{ plugin_input = fakr }} }}", 3, "nobody makes"),
        (f"source {{ {FAKE}, plugin_output = fake }} }}\nsink {{\nConsole {{ plugin_input = fakr }} }}", 3, "did you mean 'fake'"),
        (f"source {{ {FAKE}, plugin_output = a }}\n{FAKE}, plugin_output = a }} }}\nsink {{ Console {{}} }}", 2, "job.conf:1"),
        (f"source {{ {FAKE} }} }}", 1, "no sink"),
        ("sink { Console {} }", 1, "no source"),
        (f"source {{ {FAKE}, plugin_input = x }} }}\nsink {{ Console {{}} }}", 1, "takes no plugin_input"),
        (
            f"source {{ {FAKE} }} }}\ntransform {{\nFilter {{ plugin_input = b, plugin_output = a, fields = id }}\nFilter {{ plugin_input = a, plugin_output = b, fields = id }} }}\nsink {{ Console {{ plugin_input = b }} }}",
            3,
            "in a circle",
        ),
        (
            f"source {{ {FAKE} }} }}\ntransform {{\nFilter {{ plugin_input = a, plugin_output = a, fields = id }} }}\nsink {{ Console {{ plugin_input = a }} }}",
            3,
            "'a' -> 'a' feed one another",
        ),
        (f"source {{ {FAKE} }} }}\nsink {{ Consol {{}} }}", 2, "did you mean 'Console'"),
        (f"source {{ {FAKE} }} }}\nsink {{ FtpFile {{}} }}", 2, "no counterpart"),
        (f"source {{ {FAKE} }} }}\ntransform {{ FilterRowKind {{}} }}\nsink {{ Console {{}} }}", 2, "kinds"),
        (f"source {{ {FAKE}, row.nun = 3 }} }}\nsink {{ Console {{}} }}", 1, "did you mean 'row.num'"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_plan(text: str, line: int, word: str) -> None:
    """One sentence with its line and the nearest right word."""
    error = failing(text)
    assert error.message.startswith(f"job.conf:{line}: ")
    assert word in error.message


def test_an_output_that_nobody_takes() -> None:
    """It is told, and the vertex is a pipeline of its own without a sink."""
    found = job(f"source {{ {FAKE}, plugin_output = lost }}\n{FAKE} }} }}\nsink {{ Console {{}} }}")
    assert [note for note in found.plan.notes if "nobody takes 'lost'" in note]


REFERRING = """
source { Jdbc { url = "jdbc:postgresql://u:hunter2@db/x?password=hunter2&ssl=1", password = %s, query = "select 1" } }
sink { Http { url = "http://h/x", headers { Authorization = %s } } }
"""


def test_no_secret_is_shown() -> None:
    """Neither references nor secrets of the file, nor what stands in an address, show their values."""
    plan = job(REFERRING % ("hunter2", "hunter2"), inline_secrets=True).plan
    assert "hunter2" not in repr(plan)
    assert dict(plan.vertices[0].options)["password"] == "***"  # noqa: S105 - it is none
    plan = job(REFERRING % ("${env:DB}", "${file:/run/token}")).plan
    assert dict(plan.vertices[0].options)["password"] == "${env:DB}"  # noqa: S105 - as well
    assert "${file:/run/token}" in repr(plan)


def test_settings_with_the_name_of_a_secret() -> None:
    """In free settings as well: of Spark, of a driver, of a client."""
    for text in (
        "env { spark.hadoop.fs.s3a.secret.key = hunter2 }",
        "source { Spark { format = x, options { password = hunter2 } } }",
    ):
        error = failing(f"{text}\nsink {{ Console {{}} }}")
        assert (error.code, "hunter2" in error.message) == ("JOB_SECRET", False)


def test_plans_are_compared_and_kept() -> None:
    """Lines and comments change nothing; what does change is named; a plan survives being written."""
    text = f"source {{ {FAKE}, plugin_output = a }} }}\nsink {{ Console {{ plugin_input = a }} }}"
    before = job(text).plan
    assert job("# a comment\n\n" + text).plan == before
    assert plan_of(described(before)) == before
    assert list(differences(before, before)) == []
    after = job(text.replace("row.num = 3", "row.num = 4").replace("Console", "Console {}\nConsole")).plan
    changes = list(differences(before, after))
    assert "the option 'row.num' of source-1 (FakeSource) has changed" in changes
    assert "sink-2 (Console) is new" in changes


class Doubled(OneTableTransform):
    """A plugin of another package."""

    name = "Doubled"

    def changed(self, frame: Any) -> Any:
        return frame.union(frame)


class Null(Sink):
    """Its options are those of every plugin."""

    name = "Console"

    def write(self, frames: Any, run: Any) -> int | None:
        del frames, run
        return 0


class Point:
    """What ``importlib.metadata`` gives."""

    def __init__(self, name: str, found: object) -> None:
        self.name, self._found = name, found

    def load(self) -> object:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def test_plugins_of_other_packages() -> None:
    """They are known by name, and one of theirs comes before ours."""
    registry = Registry(
        plugins=(*catalog().plugins, *_loaded([Point("a", Doubled), Point("b", Null)])), refused={}
    )
    text = f"source {{ {FAKE} }} }}\ntransform {{ doubled {{}} }}\nsink {{ Console {{}} }}"
    found = job(text, registry=registry)
    assert isinstance(found.plugins["transform-1"], Doubled)
    assert isinstance(found.plugins["sink-1"], Null)


@pytest.mark.parametrize("found", [ImportError("x"), AttributeError("x"), dict, 3, PluginOptions])
def test_plugins_that_are_none(found: object) -> None:
    """A package that is broken is named."""
    with pytest.raises(JobError, match="the plugin 'broken'"):
        list(_loaded([Point("broken", found)]))


def test_every_option_has_a_sentence() -> None:
    """Each option of each plugin says what it means, and no two words of a plugin are the same."""
    for plugin in catalog().plugins:
        for name, info in plugin.options_type.model_fields.items():
            assert (info.description or "").strip(), f"{plugin.name} {name}"
            assert info.description.endswith((".", "…")), f"{plugin.name} {name}"


@pytest.mark.parametrize(
    ("env", "source", "word"),
    [
        (
            "job.mode = STREAMING, read_limit.rows_per_second = 5",
            f"{FAKE} }}",
            "no counterpart for source FakeSource",
        ),
        ("read_limit.bytes_per_second = 5", f"{FAKE} }}", "no counterpart for a batch"),
        (
            "job.mode = STREAMING, read_limit.bytes_per_second = 5 kb",
            "LocalFile { path = x, file_format_type = parquet }",
            "",
        ),
        ("job.batch.resumable = true", f"{FAKE} }}", "always begins again"),
        ("job.mode = STREAMING, job.batch.resumable = true", f"{FAKE} }}", "for job.mode = BATCH"),
    ],
)
def test_limits_that_nobody_would_obey(env: str, source: str, word: str) -> None:
    """They are refused by name, not ignored."""
    text = f"env {{ {env} }}\nsource {{ {source} }}\nsink {{ Console {{}} }}"
    if word:
        assert word in failing(text).message
    else:
        assert job(text).env.bytes_per_second == 5 * 1024


def test_sources_say_what_they_need() -> None:
    """Once for a source, or in each of its tables."""
    text = "source {{ LocalFile {{ {} }} }}\nsink {{ Console {{}} }}"
    assert "needs the option 'path'" in failing(text.format("")).message
    assert "needs the option 'file_format_type'" in failing(text.format("path = x")).message
    assert "file_format_type" in failing(text.format("tables_configs = [{ path = x }]")).message
    assert job(text.format("tables_configs = [{ path = x, file_format_type = orc }]")).plan.vertices


def test_the_page_names_every_plugin() -> None:
    """And every state, and nothing that there is not."""
    page = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
    assert [one.name for one in plugins() if f"`{one.name}`" not in page] == []
    assert [state for state in State if f"`{state}`" not in page] == []


def test_options_are_described() -> None:
    """By words, types and units; a name that is none names the nearest."""
    (found,) = plugins("fakesource")
    rows = next(one for one in found.options if "row.num" in one.words)
    assert (rows.type, rows.default, rows.unit) == ("int", "5", "rows")
    with pytest.raises(JobError, match="did you mean 'FakeSource'"):
        plugins("FakeSorce")


def test_a_limit_for_streams_in_a_batch() -> None:
    """It is accepted, as SeaTunnel's files have it, and told to change nothing."""
    text = f"env {{ checkpoint.timeout = 5 s }}\nsource {{ {FAKE} }} }}\nsink {{ Console {{}} }}"
    assert any("'checkpoint.timeout' is for streams" in note for note in job(text).plan.notes)
    stream = job(text.replace("checkpoint.timeout = 5 s", "job.mode = STREAMING, checkpoint.timeout = 5 s"))
    assert (stream.plan.notes, stream.env.checkpoint_timeout) == ((), 5_000)
