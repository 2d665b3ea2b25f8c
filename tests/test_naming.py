"""Names: made so that ours are known by sight, and nothing leaves the base."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filesink.errors import ConfigError, SecurityError
from filesink.naming import (
    HiddenName,
    OutputFileConfig,
    UploadName,
    check_relative,
    join,
    new_part_id,
    parent,
    parse_hidden,
    parse_ours,
    parse_upload,
    sink_tag,
    upload_path,
)
from tests.fakes import CountingIds

ATTEMPT = "00000000-0000-4000-8000-000000000001"


def name_of(names, part_id, counter):
    """The finished name of a part of a format whose extension is ``.json``."""
    return names.name_with(part_id, counter, names.suffix(".json"))


def test_finished_names():
    """Prefix, part id, counter and the format's extension, or the user's ending."""
    part_id = new_part_id("0123abcd", 7, CountingIds())
    assert name_of(OutputFileConfig(), part_id, 3) == f"part-{part_id}-3.json"
    assert name_of(OutputFileConfig(part_suffix=""), part_id, 0) == f"part-{part_id}-0"
    assert name_of(OutputFileConfig(part_prefix="a", part_suffix=".b"), part_id, 0) == f"a-{part_id}-0.b"


@given(st.text("abc-.01", max_size=12), st.sampled_from(["", ".x", ".y-1", ".part-0"]), st.integers(0, 10**6))
def test_our_finished_files_are_known_by_name(middle, suffix, counter):
    """Whatever prefix and suffix, the sink tag stands between them."""
    names = OutputFileConfig(part_prefix=f"p{middle}", part_suffix=suffix)
    part_id = new_part_id(sink_tag("uid-x"), 7, CountingIds())
    name = name_of(names, part_id, counter)
    assert name.startswith(f"p{middle}-{sink_tag('uid-x')}-")
    assert name.endswith(f"-{counter}{suffix}")


@pytest.mark.parametrize(
    "name", ["part-0.parquet", "_SUCCESS", "data.csv", "part-0123abcd-1-2-3-4-0.json", ""]
)
def test_other_files_are_not_ours(name):
    """Spark's own part files and anything else are no hidden files of ours."""
    assert parse_hidden(name) is None


@given(st.text("abc-.01", min_size=1, max_size=12), st.integers(0, 10**17))
def test_hidden_names_are_read_back(target, slot):
    """A hidden name tells target, tag, slot and attempt; it begins with a dot."""
    name = HiddenName(target=target, tag="0123abcd", slot=slot, attempt=ATTEMPT)
    assert parse_hidden(str(name)) == name
    assert str(name).startswith(".")


@pytest.mark.parametrize(
    "name",
    [
        f"part.inprogress.0123abcd.1.{ATTEMPT}",
        f".part.inprogress.0123abcg.1.{ATTEMPT}",
        f".part.inprogress.0123abcd.-1.{ATTEMPT}",
        f".part.inprogress.0123abcd.1.{ATTEMPT}x",
        ".part.inprogress.0123abcd.1.",
        f".part.inprogress.0123abcd.{10**18}.{ATTEMPT}",
        f".part.inprogress.0123abcd.1.{ATTEMPT}\n",
    ],
)
def test_nearly_hidden_names_are_not_ours(name):
    """What only looks like a name of ours is never removed."""
    assert parse_hidden(name) is None


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("", None),
        (".a", None),
        ("_a", None),
        ("a/b", None),
        ("a\\b", None),
        ("a\0", None),
        ("a\n", None),
        ("\ud800", None),
        (7, None),
        (None, None),
        ("a", "x"),
        ("a", "./x"),
        ("a", ".\0"),
        ("a", ".inprogress.x"),
        ("a", 7),
        ("a", ".\ud800"),
        ("a", "._COPYING_"),
        ("a", ".json._COPYING_"),
        ("a" * 101, None),
        ("é" * 40, "." + "x" * 20),
    ],
)
def test_unusable_names_are_refused(prefix, suffix):
    """Names that readers skip, that leave the directory or that are too long."""
    with pytest.raises(ConfigError) as raised:
        OutputFileConfig(part_prefix=prefix, part_suffix=suffix)
    assert raised.value.code in {"BAD_VALUE", "TOO_LONG"}


def test_the_longest_names_fit():
    """The longest allowed prefix still gives finished and hidden names of at most 255 bytes."""
    names = OutputFileConfig(part_prefix="p" * 80, part_suffix="." + "s" * 19)
    assert len(name_of(names, new_part_id("0123abcd", 7, CountingIds()), 10**9).encode()) <= 255
    hidden = HiddenName(target="p" * 80 + f"-{10**9}", tag="0123abcd", slot=10**17, attempt=ATTEMPT)
    assert len(str(hidden)) <= 255


@given(st.text("abc-.01", max_size=12), st.integers(0, 2**28 - 2), st.text(min_size=1))
def test_uploads_are_known_by_the_name_they_will_have(middle, slot, upload_id):
    """An upload goes by a hidden name that tells target, id, tag and slot."""
    part_id = new_part_id("0123abcd", slot, CountingIds())
    target = OutputFileConfig(part_prefix=f"p{middle}").name_with(part_id, 3, ".json")
    path = upload_path(join("b", target), upload_id)
    name = path.removeprefix("b/")
    assert name.startswith(".")
    assert check_relative(path)
    assert parse_upload(name) == (target, upload_id)
    assert parse_ours(name) == UploadName(target=target, upload_id=upload_id, tag="0123abcd", slot=slot)
    assert parse_hidden(name) is None


@pytest.mark.parametrize(
    "target",
    [
        f"part-{ATTEMPT}-0.parquet",
        "part-0123abcd-0000-8007-8000-000000000005.parquet",
        "part-0123abcd-0000-8007-8000-000000000005-0-0123abcd-0000-8007-8000-000000000005-0",
        "part-0123abcd-ffff-8fff-8000-000000000005-0",
        "data.csv",
    ],
)
def test_other_uploads_are_not_ours(target):
    """Another program's upload, one whose name is ambiguous or whose slot does not fit: never swept."""
    assert parse_ours(upload_path(target, "id").removeprefix("/")) is None


def test_hidden_files_are_ours_too():
    """What is swept is a hidden file or an upload."""
    name = HiddenName(target="part", tag="0123abcd", slot=1, attempt=ATTEMPT)
    assert parse_ours(str(name)) == name


@pytest.mark.parametrize("prefix", ["img.upload.v2", "a.upload.", "a.inprogress.b", ".upload.x"])
def test_a_prefix_that_looks_like_a_name_of_ours_is_a_prefix(prefix):
    """A hidden file is no upload, whatever it becomes; an upload is one, and both are read back."""
    target = f"{prefix}-{new_part_id('0123abcd', 7, CountingIds())}-0.json"
    hidden = HiddenName(target=target, tag="0123abcd", slot=7, attempt=ATTEMPT)
    assert parse_upload(str(hidden)) is None
    assert parse_hidden(str(hidden)) == parse_ours(str(hidden)) == hidden
    for becomes in (target, str(hidden)):
        name = upload_path(becomes, ATTEMPT)
        assert parse_hidden(name) is None
        assert parse_upload(name) == (becomes, ATTEMPT)
        found = parse_ours(name)
        assert found == UploadName(target=becomes, upload_id=ATTEMPT, tag="0123abcd", slot=7)


def test_a_part_id_is_a_uuid_of_version_8():
    """Of the shape that RFC 9562 keeps for layouts of one's own; slots that do not fit share the last."""
    part_id = uuid.UUID(new_part_id("0123abcd", 0x1234567, CountingIds()))
    assert (part_id.version, part_id.variant) == (8, uuid.RFC_4122)
    assert str(part_id).startswith("0123abcd-1234-8567-")
    assert new_part_id("0123abcd", 2**40, CountingIds()).startswith("0123abcd-ffff-8fff-")


def test_a_tag_stands_for_one_sink():
    """Eight digits that depend on nothing but the id."""
    assert sink_tag("uid-u") == sink_tag("uid-u") == "ce4bae9c"
    assert sink_tag("uid-v") != sink_tag("uid-u")


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "..", "a/..", "../a", ".", "a/./b", "a\0b", "/"])
def test_paths_that_leave_the_base(path):
    """No path from a record or a task names anything outside."""
    with pytest.raises(SecurityError) as raised:
        check_relative(path)
    assert raised.value.code == "ESCAPE"


@pytest.mark.parametrize("path", ["a", "a/b", "...", "..a", ".hidden/x", "a b", "é"])
def test_paths_that_stay(path):
    """Names with dots are names."""
    assert check_relative(path) == path


def test_refused_paths_are_shown_safely():
    """A message shows the beginning of a path, with control characters escaped."""
    with pytest.raises(SecurityError) as raised:
        check_relative("é\0" + "x" * 1000)
    assert len(str(raised.value)) < 200
    assert str(raised.value).isascii()


def test_joining_and_parents():
    """The base path is the empty string."""
    assert (join("", "a"), join("b", "a")) == ("a", "b/a")
    assert (parent("a"), parent("c/b/a")) == ("", "c/b")


def test_an_upload_that_becomes_a_hidden_object_is_ours() -> None:
    """A held file of several parts that was never completed is known by its hidden name."""
    name = HiddenName(target="part-1", tag="0123abcd", slot=7, attempt=ATTEMPT)
    path = upload_path(f"a/{name}", "id+/=")
    found = parse_ours(path.rpartition("/")[2])
    assert found is not None
    assert (found.tag, found.slot) == ("0123abcd", 7)
