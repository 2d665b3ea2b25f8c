# ruff: noqa: E501 - a table
"""Typed options: what is said when a word, a type or a secret is wrong."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from filesink.errors import JobError
from filesink.jobs.model.column_types import column_type, ddl
from filesink.jobs.model.env import Env, Mode
from filesink.jobs.model.options import Options, option
from filesink.jobs.model.schema import Schema
from filesink.jobs.model.secret import Secret, SecretSettings
from filesink.jobs.model.typed import Typing
from filesink.jobs.text.read import read_text
from filesink.jobs.text.tree import Object
from filesink.jobs.text.variables import Variables


class Rule(Options):
    """A nested one."""

    kind: str = option(doc="…")
    most: int = option(0, doc="…", ge=0)


class Example(Options):
    """With everything that options have."""

    refused = {"tmp_path": "there is none"}
    harmless = {"tmp_path": ("",)}
    without_effect = {"comment": "nobody reads it"}

    path: str = option(doc="…", words=("path", "fs.path"))
    rules: tuple[Rule, ...] = option((), doc="…")
    token: Secret | None = option(None, doc="…")
    headers: dict[str, Secret] = option({}, doc="…")
    schema_: Schema | None = option(None, doc="…", words=("schema",))


class Client(Options):
    """Free settings."""

    config: SecretSettings = option(SecretSettings(), doc="…")


def written(text: str, environment: dict[str, str] | None = None) -> Object:
    """The options of a plugin."""
    whole = f"sink {{ Example {{\n{text}\n}} }}"
    return read_text(whole, "job.conf", Variables(environment=environment or {})).sink[0].options


def typed(text: str, kind: type[Any] = Example, **environment: str) -> Any:
    """What they are."""
    return Typing().typed(kind, written(text, environment), of="sink Example")


def failing(text: str, kind: type[Any] = Example, **environment: str) -> JobError:
    """The error."""
    with pytest.raises(JobError) as raised:
        typed(text, kind, **environment)
    assert "\n" not in raised.value.message
    return raised.value


@pytest.mark.parametrize("text", ["path = x", "fs.path = x", '"fs.path" = x', "fs { path = x }"])
def test_every_way_to_write_a_word(text: str) -> None:
    """With dots, in quotes, in braces, and by its older name."""
    assert typed(text).path == "x"


def test_numbers_are_texts_where_texts_are_wanted() -> None:
    """As SeaTunnel has it."""
    assert typed("path = 2026").path == "2026"


@pytest.mark.parametrize(
    ("text", "line", "code", "word"),
    [
        ("path = x\npaht = y", 3, "JOB_OPTION", "did you mean 'path'"),
        ("", 1, "JOB_OPTION", "needs the option 'path'"),
        ("path = x\nrules = [\n{kind = a},\n{kind = a, mst = 1}]", 5, "JOB_OPTION", "did you mean 'most'"),
        ("path = x\nrules = [\n{kind = a},\n{kind = a\n most = many}]", 6, "JOB_VALUE", "integer"),
        ("path = [1]", 2, "JOB_VALUE", "string"),
        ("comment = y\npahts = x", 3, "JOB_OPTION", "did you mean 'path'"),
        ("path = x\ntmp_path = y", 3, "JOB_REFUSED", "there is none"),
        ("path = x\nschema { fields {\n a = strin } }", 4, "JOB_VALUE", "did you mean 'string'"),
        (
            "path = x\nschema { fields { a = int }, columns = [{name = b, type = int}] }",
            3,
            "JOB_VALUE",
            "not both",
        ),
        ("path = x\ntoken = hunter2", 3, "JOB_SECRET", "${env:NAME}"),
        ("path = x\nheaders { Authorization = hunter2 }", 3, "JOB_SECRET", "${env:NAME}"),
    ],
)
def test_errors(text: str, line: int, code: str, word: str) -> None:
    """Each says file, line, option and the way out, and no value of a secret."""
    error = failing(text)
    assert (error.message.split(" ")[0], error.code) == (f"job.conf:{line}:", code)
    assert word in error.message
    assert "hunter2" not in error.message


def test_what_changes_nothing_is_told() -> None:
    """A word of SeaTunnel without effect is a note, and a refused one with its harmless value is none."""
    typing = Typing()
    typing.typed(Example, written('path = x\ncomment = y\ntmp_path = ""'), of="sink Example")
    assert typing.notes == ["job.conf:3: 'comment' of sink Example changes nothing: nobody reads it"]


def test_secrets_are_references() -> None:
    """By kind and name; a variable of the environment is one, and its value stays there."""
    found = typed("path = x\ntoken = ${TOKEN}\nheaders { A = ${env:A}, B = ${file:/run/b} }", TOKEN="hunter2")
    assert found.token == Secret(kind="env", name="TOKEN")
    assert {name: str(one) for name, one in found.headers.items()} == {"A": "${env:A}", "B": "${file:/run/b}"}
    assert "hunter2" not in repr(found)


def test_settings_have_the_names_that_clients_know() -> None:
    """With or without quotes; a secret below a dot is one as well."""
    found = typed('config { a.b.c = 1, "d.e" = 2, sasl { password = ${env:P} } }', Client).config
    assert {name: str(one) for name, one in found.items()} == {
        "a.b.c": "1",
        "d.e": "2",
        "sasl.password": "${env:P}",
    }
    error = failing("config { sasl.password = hunter2 }", Client)
    assert (error.code, "hunter2" in error.message) == ("JOB_SECRET", False)


def test_secrets_in_the_file_if_they_are_allowed() -> None:
    """They are printed by nobody: not in ``repr``, not in ``str``, not in a dump."""
    found = Typing(inline_secrets=True).typed(Example, written("path = x\ntoken = hunter2"), of="x")
    assert found.token.value == "hunter2"
    assert "hunter2" not in f"{found!r} {found} {found.token}"


def test_env() -> None:
    """SeaTunnel's words, old and new, with units; settings of Spark as they are."""
    text = "execution.parallelism = 4, job.mode = streaming, checkpoint.interval = 10 s, spark.app.name = x"
    found = typed(text, Env)
    assert (found.parallelism, found.mode, found.checkpoint_interval) == (4, Mode.STREAMING, 10_000)
    assert found.spark == {"spark.app.name": "x"}
    assert typed("checkpoint.interval = 5000", Env).checkpoint_interval == 5000


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("job.mode = BATHC", "'BATCH' or 'STREAMING'"),
        ("job.mod = BATCH", "did you mean 'job.mode'"),
        ("parallelism = 0", "greater than or equal to 1"),
        ("parallelism = 1\nexecution.parallelism = 2", "execution.parallelism"),
        ("checkpoint.interval = soon", "duration"),
        ("shade.identifier = base64", "${env:NAME}"),
        ("tag_filter = a", "spark.kubernetes"),
    ],
)
def test_errors_in_env(text: str, word: str) -> None:
    """What has no counterpart is refused by name."""
    assert word in failing(text, Env).message


@pytest.mark.parametrize(
    ("text", "kind", "in_spark"),
    [
        ("string", pa.string(), "STRING"),
        ("Decimal(38, 18)", pa.decimal128(38, 18), "DECIMAL(38, 18)"),
        ("array<map<string,decimal(3,1)>>", pa.list_(pa.map_(pa.string(), pa.decimal128(3, 1))), "ARRAY<MAP<STRING, DECIMAL(3, 1)>>"),
        ({"a": "int", "b`": {"c": "date"}}, pa.struct({"a": pa.int32(), "b`": pa.struct({"c": pa.date32()})}), "STRUCT<`a`: INT, `b```: STRUCT<`c`: DATE>>"),
        ("timestamp", pa.timestamp("us", tz="UTC"), "TIMESTAMP"),
    ],
)  # fmt: skip
def test_types(text: Any, kind: pa.DataType, in_spark: str) -> None:
    """SeaTunnel's types, nested ones too, as Arrow and Spark have them."""
    assert (column_type(text), ddl(column_type(text))) == (kind, in_spark)


@pytest.mark.parametrize(
    "text", ["decimal(39, 1)", "decimal(3, 4)", "array<>", "map<string>", "array<int", "x(", "row"]
)
def test_types_that_are_none(text: str) -> None:
    """A sentence, whatever is written."""
    with pytest.raises(ValueError, match=r"type|decimal"):
        column_type(text)
