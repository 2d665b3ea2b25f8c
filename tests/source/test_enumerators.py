"""Which files there are: claims of Flink's NonSplittingRecursiveEnumeratorTest, and Spark's patterns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from filesink.errors import ConfigError
from filesink.source.directories import Root, locate, root_of
from filesink.source.enumerators import FileEnumerator, FileEnumeratorProvider, RecursiveFileEnumerator
from filesink.source.patterns import compiled, has_magic, split_pattern


def make(base: Path, *paths: str) -> None:
    """Files with some bytes in them."""
    for path in paths:
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_bytes(b"abc")


def found(
    base: Path, path: str = "", enumerator: FileEnumerator | None = None, scheme: str = ""
) -> list[str]:
    """The paths of what is found, below ``base``, sorted."""
    root = root_of(f"{scheme}{base}{path}", {})
    files = (enumerator or RecursiveFileEnumerator()).enumerate_files([root])
    return sorted(file.path.removeprefix(f"{scheme}{base}/") for file in files)


@pytest.fixture(params=["", "local://"], ids=["store", "fsspec"])
def scheme(request: pytest.FixtureRequest) -> str:
    """A store of ours, and a file system of fsspec."""
    return request.param


def test_files_of_nested_directories(tmp_path: Path, scheme: str) -> None:
    """All of them, however deep; a directory is none."""
    make(tmp_path, "file1", "nested/file.out", "nested/anotherfile.txt", "a/b/c/d")
    (tmp_path / "empty").mkdir()
    assert found(tmp_path, scheme=scheme) == ["a/b/c/d", "file1", "nested/anotherfile.txt", "nested/file.out"]


def test_hidden_files_and_directories(tmp_path: Path, scheme: str) -> None:
    """Names with '.' or '_' first are passed over, and what is below them, unless it is a partition."""
    make(tmp_path, "visible", ".h", "_h", "dir/.hid/f", "_d/f", "dir/_SUCCESS", "_k=v/in", "a.csv._COPYING_")
    assert found(tmp_path, scheme=scheme) == ["_k=v/in", "visible"]


def test_size_and_time_are_those_of_the_file(tmp_path: Path, scheme: str) -> None:
    """In bytes, and in milliseconds since 1970."""
    make(tmp_path, "f")
    os.utime(tmp_path / "f", (1_700_000_000, 1_700_000_000.5))
    file = next(iter(RecursiveFileEnumerator().enumerate_files([root_of(f"{scheme}{tmp_path}", {})])))
    assert (file.size, file.mtime_ms) == (3, 1_700_000_000_500)


def test_a_path_may_be_that_of_a_file(tmp_path: Path, scheme: str) -> None:
    """It is found by itself, and nothing beside it."""
    make(tmp_path, "a.csv", "b.csv")
    root = root_of(f"{scheme}{tmp_path}/a.csv", {})
    files = list(RecursiveFileEnumerator().enumerate_files([root]))
    assert [file.path for file in files] == [f"{scheme}{tmp_path}/a.csv"]
    opened, path = locate((root,), files[0].path)
    with opened.open().open_input(path) as content:
        assert content.read() == b"abc"


@pytest.mark.parametrize("path", ["/nothing", "/nothing/*.csv", "/empty"])
def test_nothing_is_found_where_nothing_is(tmp_path: Path, scheme: str, path: str) -> None:
    """Neither a missing directory nor an empty one is an error of a listing."""
    (tmp_path / "empty").mkdir()
    assert found(tmp_path, path, scheme=scheme) == []


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/*.csv", ["a.csv", "b.csv"]),
        ("/*", ["2024/01/x.csv", "2024/02/x.csv", "a.csv", "b.csv", "c.txt"]),
        ("/20*/0[1]", ["2024/01/x.csv"]),
        ("/*/*/x.{csv,txt}", ["2024/01/x.csv", "2024/02/x.csv"]),
        ("/?.csv", ["a.csv", "b.csv"]),
        ("/[!a].*", ["b.csv", "c.txt"]),
        ("/2024", ["2024/01/x.csv", "2024/02/x.csv"]),
    ],
)
def test_patterns_in_paths(tmp_path: Path, scheme: str, path: str, names: list[str]) -> None:
    """Name by name, as Spark has them; a directory that fits is looked into."""
    make(tmp_path, "a.csv", "b.csv", "c.txt", "2024/01/x.csv", "2024/02/x.csv", ".hidden.csv")
    assert found(tmp_path, path, scheme=scheme) == names


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({"name_pattern": "*.csv"}, ["a.csv", "dir/b.csv"]),
        ({"is_recursive": False}, ["a.csv", "old.txt"]),
        ({"modified_after_ms": 1_500_000_000_000}, ["a.csv", "dir/b.csv"]),
        ({"modified_before_ms": 1_500_000_000_000}, ["old.txt"]),
        ({"accepts": lambda file: file.path.endswith("b.csv")}, ["dir/b.csv"]),
    ],
)
def test_what_may_be_left_out(tmp_path: Path, chosen: dict, names: list[str]) -> None:
    """By name, by depth, by time, or by a function."""
    make(tmp_path, "a.csv", "dir/b.csv", "old.txt")
    os.utime(tmp_path / "old.txt", (1_000_000_000, 1_000_000_000))
    assert found(tmp_path, enumerator=RecursiveFileEnumerator(**chosen)) == names


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Neither to files nor to directories: nobody is led out of the directory, or round in circles."""
    make(tmp_path, "in/f", "out/g")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in")
    assert found(tmp_path / "in") == ["f"]


def test_the_enumerators_of_pyflink() -> None:
    """Both are there under their names."""
    assert FileEnumeratorProvider.default_splittable_file_enumerator() == RecursiveFileEnumerator()
    whole = FileEnumeratorProvider.default_non_splittable_file_enumerator()
    assert whole.splitting.value == "never"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "PATH_REQUIRED"),
        (None, "PATH_REQUIRED"),
        (7, "PATH_REQUIRED"),
        ("a\0b", "PATH_REQUIRED"),
        ("nowhere://x/y", "SCHEME"),
        ("ftp://user:secret@host/x", "CREDENTIALS"),
        ("http://host/x?sig=secret", "CREDENTIALS"),
        ("s3:///x", "BAD_VALUE"),
    ],
)
def test_paths_that_are_none(path: object, code: str) -> None:
    """They are refused before anything is asked, and no secret is repeated."""
    with pytest.raises(ConfigError) as error:
        root_of(path, {})
    assert error.value.code == code
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("pattern", ["[a", "{a,b", "[]"])
def test_patterns_that_are_none(pattern: str) -> None:
    """A bracket that is not closed is told when the pattern is given."""
    with pytest.raises(ConfigError, match="cannot be read"):
        RecursiveFileEnumerator(name_pattern=pattern)


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("*", ["a", ""], []),
        ("a.c", ["a.c"], ["abc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x"]),
        ("[^a-c]x", ["dx"], ["ax"]),
        ("[]]", ["]"], ["["]),
        ("{a,b}{1,2}", ["a1", "b2"], ["ab"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("a\nb*", ["a\nbc"], []),
    ],
)
def test_patterns(pattern: str, fits: list[str], does_not: list[str]) -> None:
    """What each sign stands for."""
    fitting = compiled(pattern)
    assert [name for name in (*fits, *does_not) if fitting(name)] == fits


def test_the_base_of_a_pattern() -> None:
    """All names before the first one that is a pattern are those of a directory."""
    assert split_pattern("/data/2024/*/x.csv") == ("/data/2024", ("*", "x.csv"))
    assert split_pattern("s3://bucket/a") == ("s3://bucket/a", ())
    assert root_of("/*.csv", {}).base == "/"
    assert root_of("*.csv", {}).base == str(Path.cwd())
    assert not has_magic("a.csv")


def test_options_of_a_store_are_not_shown() -> None:
    """Neither as text nor in a representation."""
    root = root_of("s3://bucket/x", {"secret": "hush"})
    assert isinstance(root, Root)
    assert "hush" not in repr(root) + str(root)
