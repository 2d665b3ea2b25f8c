# ruff: noqa: E501 - files in a line each
"""HOCON as SeaTunnel writes it: what a file says, and in which line."""

from __future__ import annotations

from typing import Any

import pytest

from filesink.errors import JobError
from filesink.jobs.text.read import read_text
from filesink.jobs.text.tree import Sections, plain
from filesink.jobs.text.variables import Variables


def sections(text: str, **variables: Any) -> Sections:
    """What a text says."""
    return read_text(text, "job.conf", Variables(**variables))


def env(text: str, **variables: Any) -> Any:
    """What ``env`` of a text says, in Python's types."""
    return plain(sections(text, **variables).env)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = 1", {"a": 1}),
        ("a : 1", {"a": 1}),
        ("a = -1.5e3", {"a": -1500.0}),
        ("a = 007", {"a": "007"}),  # a zip code is no number
        ("a = true, b = null", {"a": True, "b": None}),
        ('a = "1"', {"a": "1"}),
        ("a = two words # not this", {"a": "two words"}),
        ("a = two words // nor this", {"a": "two words"}),
        ("a.b = 1\na.c = 2", {"a": {"b": 1, "c": 2}}),
        ("a { b = 1 }\na { c = 2 }", {"a": {"b": 1, "c": 2}}),
        ("a { b = 1 }\na = 2", {"a": 2}),
        ('"a.b" = 1', {"a.b": 1}),
        ("a = [1, 2\n3]", {"a": [1, 2, 3]}),
        ("a = [1] [2]", {"a": [1, 2]}),
        ("a = [1]\na += 2", {"a": [1, 2]}),
        ("a += 2", {"a": [2]}),
        ("a = {x = 1} {y = 2}", {"a": {"x": 1, "y": 2}}),
        ('a = "\\u00e9\\t\\""', {"a": 'é\t"'}),
        ('a = """x\n"y" \\n"""', {"a": 'x\n"y" \\n'}),
        ('a = "${k0}=${v0}"', {"a": "${k0}=${v0}"}),  # SeaTunnel's own placeholders
        ("a = 1\nb = ${env.a}", {"a": 1, "b": 1}),
        ('a = x\nb = ${env.a}"/"${env.a}', {"a": "x", "b": "x/x"}),
        ("a = x\na = ${env.a}y", {"a": "xy"}),
        ("a = {x = 1}\nb = ${env.a} {y = 2}", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        ("a = ${?nobody}", {}),
        ("a = ${nobody:7}", {"a": 7}),
        ('map = "map<string, string>"', {"map": "map<string, string>"}),
        ("delimiter = ;", {"delimiter": ";"}),
    ],
)
def test_values(text: str, value: Any) -> None:
    """Each form of a value is what HOCON says it is."""
    assert env(f"env {{\n{text}\n}}") == value


def test_braces_around_a_file() -> None:
    """JSON is HOCON, too."""
    assert env('{"env": {"a": [1, {"b": null}]}, "sink": {}}') == {"a": [1, {"b": None}]}


def test_two_plugins_of_one_name() -> None:
    """They stay two, in their order: this is where every library of HOCON merges."""
    found = sections("source {\n FakeSource { a = 1 }\n FakeSource { b = 2 }\n}\nsource { FakeSource {} }")
    assert [plain(block.options) for block in found.source] == [{"a": 1}, {"b": 2}, {}]
    assert [block.place.line for block in found.source] == [2, 3, 5]


def test_plugins_as_a_list() -> None:
    """The form with ``plugin_name``."""
    found = sections('sink = [{plugin_name = "Console", a = 1}, {Console {}}]')
    assert [(block.name, plain(block.options)) for block in found.sink] == [
        ("Console", {"a": 1}),
        ("Console", {}),
    ]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ('"/days/day=${day}"', "${day} stands in quotes"),
        ('[{ x = "${day}" }]', "${day} stands in quotes"),
        ("/days/${dey}", "job.conf has no ${day}, and a value for it was given; did you mean 'dey'?"),
        ("7", "job.conf has no ${day}, and a value for it was given"),
    ],
)
def test_a_variable_that_is_given_is_used(value: str, told: str) -> None:
    """Else each day would be written to the same place, whose name has the variable in it."""
    with pytest.raises(JobError) as raised:
        sections(f"env {{ a = {value} }}", given={"day": "1"}, environment={"dey": "2"})
    assert told in raised.value.message
    assert raised.value.code == "JOB_VARIABLE"
    assert env('env { a = "/days/day="${day}"/x${table_name}" }', given={"day": "1"}) == {
        "a": "/days/day=1/x${table_name}"
    }


def test_variables_in_their_order() -> None:
    """Given ones come first, then keys of the file, then the environment."""
    text = "x = file\nenv { a = ${x}, b = ${y}, c = ${z} }"
    found = env(text, given={"x": "given"}, environment={"x": "no", "y": "environment", "z": "1"})
    assert found == {"a": "given", "b": "environment", "c": "1"}
    assert env(text, environment={"x": "no", "y": "1", "z": "2"})["a"] == "file"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("env {\n a = ${nobody}\n}", 2, "-i nobody="),
        ("env {\n a = ${env.b}\n b = ${env.a}\n}", 2, "stands for itself"),
        ("env {\n a = ${env.a}\n}", 2, "nobody says"),
        ("env {\n\n a\n}", 3, "has no value"),
        ("env {\n a = 1\n", 1, "has no end"),
        ("env {\n a = [1, 2\n}", 2, "has no end"),
        ('env {\n a = "x\n}', 2, "no end"),
        ('env {\n a = """x\n}', 2, "no end"),
        ('env {\n a = "\\q"\n}', 2, "backslash"),
        ("env {\n a = x$y\n}", 2, "quote"),
        ("env {\n a = jdbc:mysql\n}", 2, "quote"),
        ("env { }\n}", 2, "closes nothing"),
        ("env {\n a = \n}", 3, "missing"),
        ("env {\n a = ${x\n}", 2, "no end"),
        ("env = 3", 1, "braces"),
        ("\nsinc { }", 2, "did you mean 'sink'"),
        ("source = 3", 1, "braces"),
        ("source {\n FakeSource = 3\n}", 2, "braces"),
        ("env {\n a = 1\n a += 2\n}", 3, "no"),
        ("env {\n a = {} x\n}", 2, "quote"),
        ('env {\n include url("http://x/y")\n}', 2, "not followed"),
        ('env {\n include "other.conf"\n}', 2, "includes nothing"),
        ("env {\n a = x${env:TOKEN}\n}", 2, "whole value"),
    ],
)
def test_errors_have_their_line(text: str, line: int, word: str) -> None:
    """One sentence, with file, line and what is missing."""
    with pytest.raises(JobError) as raised:
        sections(text)
    assert raised.value.message.startswith(f"job.conf:{line}: ")
    assert word in raised.value.message
    assert "\n" not in raised.value.message


def test_depth_has_an_end() -> None:
    """A file that would exhaust the stack is an error like others."""
    with pytest.raises(JobError, match="deep"):
        sections("env { a = " + "[" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"k{number} = ${{k{number + 1}}}${{k{number + 1}}}" for number in range(60)) + "\nk60 = x",
        "\n".join(f"k{number} = {{a = ${{k{number + 1}}}, b = ${{k{number + 1}}}}}" for number in range(60))
        + "\nk60 = x",
    ],
)
def test_references_that_multiply(text: str) -> None:
    """Sixty lines would stand for more than there is memory: refused after some thousands."""
    with pytest.raises(JobError, match="references are followed"):
        sections(text + "\nenv { a = ${k0} }")


def test_many_keys() -> None:
    """A file of the greatest size is read in the time of its length: 20,000 keys and thousands of references."""
    keys = "\n".join(f"a{number} = {number}" for number in range(20_000))
    assert len(env(f"env {{\n{keys}\n}}")) == 20_000
    used = "\n".join(f"b{number} = ${{env.a{number}}}" for number in range(5_000))
    assert env(f"env {{\n{keys}\n{used}\n}}")["b4999"] == 4999


def test_a_value_of_the_environment_is_no_text_of_the_file() -> None:
    """What a variable holds is neither read as HOCON, nor filled in again."""
    assert env("env { a = ${x} }", environment={"x": "1, b = ${y}"}) == {"a": "1, b = ${y}"}
