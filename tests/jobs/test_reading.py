"""Job files on a disk: their size, their includes, YAML and SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from filesink.errors import JobError
from filesink.jobs.text.read import LARGEST, read, read_text
from filesink.jobs.text.tree import Sections, plain
from filesink.jobs.text.variables import Variables, given_variables

HOCON = """
env { job.mode = BATCH, parallelism = 2 }
source {
  FakeSource { plugin_output = a, rows = [{fields = [1, x]}] }
  FakeSource { plugin_output = b, day = ${day} }
}
sink { Console { plugin_input = [a, b] } }
"""
YAML = """
env:
  job:
    mode: BATCH
  parallelism: 2
source:
  - FakeSource: {plugin_output: a, rows: [{fields: [1, x]}]}
  - plugin_name: FakeSource
    plugin_output: b
    day: ${day}
sink:
  Console:
    plugin_input: [a, b]
"""


def shape(found: Sections) -> object:
    """All that a file says, without places."""
    blocks = [
        [(one.name, plain(one.options)) for one in part]
        for part in (found.source, found.transform, found.sink)
    ]
    return plain(found.env), blocks


def failing(text: str, file: str = "job.yaml") -> str:
    """The sentence of the error."""
    with pytest.raises(JobError) as raised:
        read_text(text, file, Variables())
    assert "\n" not in raised.value.message
    return raised.value.message


def test_yaml_says_the_same_as_hocon() -> None:
    """Both become one tree."""
    variables = Variables(given={"day": "2026-01-31"})
    hocon = read_text(HOCON, "job.conf", variables)
    assert shape(read_text(YAML, "job.yaml", variables)) == shape(hocon)
    assert hocon.source[1].place.line == 5


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("env: {a: 1", 1, "no YAML"),
        ("a: &x [1]\nenv: {b: *x}", 2, "aliases"),
        ("- env", 1, "sections"),
        ("env:\n  a: !!python/object/apply:os.system ['x']", 2, "not read"),
        ("env:\n  a: !!python/name:os.system ''", 2, "not read"),
        ("env:\n  [1]: 2", 2, "is a text"),
        ("env: \x00", 1, "characters"),
        ("env: " + "[" * 1000, 1, "deep"),
        ("source: {FakeSource: [1]}", 1, "braces"),
    ],
)
def test_bad_yaml(text: str, line: int, word: str) -> None:
    """One sentence with its line; nothing is made of tags."""
    message = failing(text)
    assert message.startswith(f"job.yaml:{line}: ")
    assert word in message


SQL = """/* config
env { job.mode = BATCH }
*/
-- a source; and a comment with a semicolon
CREATE TABLE flights WITH (
  'connector' = 'FakeSource', 'type' = 'source', 'row.num' = '7',
  'schema' = '{ fields { id = int, name = string } }'
);
create table `late` with ('connector' = 'Console', 'type' = 'sink', 'note' = 'it''s; fine');
CREATE TABLE some AS SELECT id FROM flights WHERE name <> 'late;';
INSERT INTO late SELECT * FROM some;
"""


def test_sql_becomes_the_same_tree() -> None:
    """Tables are sources and sinks, queries are transforms that name their inputs."""
    found = read_text(SQL, "job.sql", Variables())
    (source,), transforms, (sink,) = found.source, found.transform, found.sink
    assert plain(found.env) == {"job": {"mode": "BATCH"}}
    assert plain(source.options)["schema"] == {"fields": {"id": "int", "name": "string"}}
    assert (source.place.line, source.name) == (5, "FakeSource")
    assert [plain(one.options)["plugin_input"] for one in transforms] == [["flights"], ["some"]]
    assert plain(sink.options) == {"plugin_input": "insert-1", "note": "it's; fine"}
    assert transforms[0].place.line == 10


def test_tables_of_a_query() -> None:
    """By their whole names, in quotes too; not in texts, and not as parts of other names."""
    text = """CREATE TABLE db.t WITH ('connector' = 'F'); CREATE TABLE t2 WITH ('connector' = 'F');
    CREATE TABLE a AS SELECT db.t.id, 't2' FROM `db.t`;
    CREATE TABLE b AS SELECT * FROM t2x JOIN t2 USING (id)"""
    found = read_text(text, "job.sql", Variables()).transform
    assert [plain(one.options)["plugin_input"] for one in found] == [["db.t"], ["t2"]]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("SELECT 1", 1, "none of"),
        ("\nDROP TABLE x;", 2, "none of"),
        ("CREATE TABLE a WITH ('x' = 'y');", 1, "connector"),
        ("CREATE TABLE a WITH ('connector' 'y');", 1, "has no value"),
        ("CREATE TABLE a WITH (connector = 'y');", 1, "'name' = 'value'"),
        ("CREATE TABLE a WITH ('connector' = 'F');\nCREATE TABLE a AS SELECT 1;", 2, "there already"),
        (
            "CREATE TABLE sink WITH ('connector' = 'F', 'type' = 'sink');\nINSERT INTO sinc SELECT 1",
            2,
            "'sink'",
        ),
        ("CREATE TABLE a WITH ('connector' = 'F", 1, "no end"),
        ("\nCREATE TABLE a WITH ('connector' = 'F', 'type' = 'sink')", 2, "nothing is inserted"),
        ("\n/* a comment", 2, "no end"),
        ("CREATE TABLE a WITH (\n'connector' = 'F',\n'schema' = '{ x')", 3, "no value"),
    ],
)
def test_bad_sql(text: str, line: int, word: str) -> None:
    """One sentence with its line."""
    message = failing(text, "job.sql")
    assert message.startswith(f"job.sql:{line}: ")
    assert word in message


def test_includes(tmp_path: Path) -> None:
    """A file beside the job, or below it, stands where it is included; errors have its own name and line."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "common.conf").write_text('a = 1\ninclude "more.conf"')
    (tmp_path / "below" / "more.conf").write_text("b = 2")
    job = tmp_path / "job.conf"
    job.write_text('env {\n include required(file("below/common.conf"))\n c = 3 }')
    assert plain(read(job, Variables()).env) == {"a": 1, "b": 2, "c": 3}
    (tmp_path / "below" / "more.conf").write_text("\nb = ")
    with pytest.raises(JobError, match=r"more\.conf:2: "):
        read(job, Variables())


@pytest.mark.parametrize("name", ["../secret.conf", "/etc/passwd", "link.conf", "dir/../../secret.conf"])
def test_includes_that_leave_the_directory(tmp_path: Path, name: str) -> None:
    """By dots, as a whole path, or through a link: refused, and nothing is read."""
    home = tmp_path / "home"
    (home / "dir").mkdir(parents=True)
    (tmp_path / "secret.conf").write_text("password = hunter2")
    (home / "link.conf").symlink_to(tmp_path / "secret.conf")
    (home / "job.conf").write_text(f'env {{\n include "{name}"\n}}')
    with pytest.raises(JobError, match=r"job\.conf:2: .*leaves the directory") as raised:
        read(home / "job.conf", Variables())
    assert (raised.value.code, "hunter2" in str(raised.value)) == ("JOB_INCLUDE", False)


def test_includes_that_go_in_a_circle(tmp_path: Path) -> None:
    """Each file names the other."""
    (tmp_path / "a.conf").write_text('include "b.conf"')
    (tmp_path / "b.conf").write_text('include "a.conf"')
    with pytest.raises(JobError, match="includes itself"):
        read(tmp_path / "a.conf", Variables())


def test_includes_that_multiply(tmp_path: Path) -> None:
    """Thirty files that each include the next one twice would be a thousand million."""
    for number in range(30):
        (tmp_path / f"{number}.conf").write_text(f'include "{number + 1}.conf"\n' * 2)
    (tmp_path / "30.conf").write_text("a = 1")
    with pytest.raises(JobError, match="more than"):
        read(tmp_path / "0.conf", Variables())


def test_an_include_that_is_not_there(tmp_path: Path) -> None:
    """It names the nearest."""
    (tmp_path / "common.conf").write_text("")
    (tmp_path / "job.conf").write_text('include "comon.conf"')
    with pytest.raises(JobError, match=r"did you mean 'common\.conf'"):
        read(tmp_path / "job.conf", Variables())


def test_large_files(tmp_path: Path) -> None:
    """10 MB are refused after the first, and so are files that are large together."""
    job = tmp_path / "job.conf"
    job.write_bytes(b"#" * 10_000_000)
    with pytest.raises(JobError, match="more than 1,048,576 bytes"):
        read(job, Variables())
    (tmp_path / "half.conf").write_text("#" * (LARGEST // 2) + "\n")
    job.write_text('include "half.conf"\n' * 3)
    with pytest.raises(JobError, match="more than 1,048,576 bytes"):
        read(job, Variables())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """No such file, no text, no known ending: a sentence."""
    (tmp_path / "job.conf").write_bytes(b"env {\n a = \xff\n}")
    with pytest.raises(JobError, match=r"job\.conf:2: this is no UTF-8"):
        read(tmp_path / "job.conf", Variables())
    with pytest.raises(JobError, match=r"did you mean 'job\.conf'"):
        read(tmp_path / "jop.conf", Variables())
    with pytest.raises(JobError, match="ending"):
        read(tmp_path / "job.txt", Variables())
    (tmp_path / "dir.conf").mkdir()
    with pytest.raises(JobError, match="cannot be read"):
        read(tmp_path / "dir.conf", Variables())


def test_variables_of_a_command_line() -> None:
    """``name=value``; a value may hold ``=``, and none is shown."""
    assert given_variables(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(JobError) as raised:
        given_variables(["hunter2"])
    assert "hunter2" not in raised.value.message
