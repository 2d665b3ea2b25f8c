"""Laws of names: what we make we know again, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filesink.errors import SecurityError
from filesink.naming import (
    HiddenName,
    OutputFileConfig,
    check_relative,
    join,
    new_part_id,
    parent,
    parse_hidden,
    sink_tag,
)
from filesink.system import SystemIds

IDS = SystemIds()
WORDS = st.text("abcXYZ019-.= é", min_size=1, max_size=12)
PREFIXES = WORDS.filter(lambda word: word[0] not in "._")
SUFFIXES = st.none() | st.just("") | WORDS.map(lambda word: f".{word}")
SLOTS = st.integers(0, 10**18 - 1)
HEX = set("0123456789abcdef")


@given(PREFIXES, SUFFIXES, st.integers(0, 10**6), WORDS)
def test_a_finished_name_tells_whose_it_is(prefix: str, suffix: str | None, counter: int, sink: str) -> None:
    """The tag of the sink is found in every part's name, whatever prefix and suffix are."""
    tag = sink_tag(sink)
    names = OutputFileConfig(part_prefix=prefix, part_suffix=suffix)
    name = names.name_with(new_part_id(tag, 7, IDS), counter, names.suffix(".json"))
    assert name.startswith(f"{prefix}-{tag}-")
    assert name[0] not in "._"
    assert parse_hidden(name) is None


@given(WORDS, WORDS, SLOTS)
def test_a_hidden_name_comes_back(target: str, sink: str, slot: int) -> None:
    """parse(str(x)) == x, and readers skip it: it begins with a dot and ends like no part file."""
    name = HiddenName(target=target, tag=sink_tag(sink), slot=slot, attempt=IDS.uuid())
    assert parse_hidden(str(name)) == name
    assert str(name).startswith(".")
    assert not re.search(r"\.(parquet|json|csv|txt|orc|avro)$", str(name))


@st.composite
def nearly_hidden(draw: st.DrawFn) -> str:
    """A hidden name in which one character is another, or is missing, or is one too many."""
    slot = draw(SLOTS | st.just(10**18 - 1))
    name = HiddenName(target=draw(WORDS), tag=sink_tag(draw(WORDS)), slot=slot, attempt=str(draw(st.uuids())))
    pieces = [f".{piece}" for piece in (name.target, "inprogress", name.tag, slot, name.attempt)]
    which = draw(st.integers(0, 4))
    place = draw(st.integers(0, len(pieces[which]) - 1))
    rest = pieces[which][place + draw(st.integers(0, 1)) :]
    pieces[which] = pieces[which][:place] + draw(st.sampled_from(["", *".0fgA-\né"])) + rest
    return "".join(pieces)


@settings(max_examples=500)
@given(nearly_hidden())
def test_names_of_others_are_not_ours(name: str) -> None:
    """One character tells a name of ours from one that is not; what is taken apart is all of the name."""
    begin, pieces = name[:1], name[1:].rsplit(".", 4)
    found = parse_hidden(name)
    if begin != "." or len(pieces) < 5 or not are_ours(*pieces):
        assert found is None
        return
    target, _, tag, slot, attempt = pieces
    assert found == HiddenName(target=target, tag=tag, slot=int(slot), attempt=attempt)


def are_ours(target: str, mark: str, tag: str, slot: str, attempt: str) -> bool:
    """Whether these are the pieces of a hidden name, said without the pattern that finds them."""
    lengths = len(tag) == 8 and 0 < len(slot) <= 18 and len(attempt) == 36
    letters = set(tag) <= HEX and set(slot) <= set("0123456789") and set(attempt) <= {*HEX, "-"}
    return bool(target) and "\n" not in target and mark == "inprogress" and lengths and letters


@given(st.lists(st.text("ab.\0", max_size=3), max_size=4))
@example([])
@example(["a", "", "b"])
@example(["a\0"])
@example(["a", ".."])
@example(["a", "b..", "..c", "..."])
def test_a_checked_path_stays_below_the_base(parts: list[str]) -> None:
    """Refused are those with an empty, '.' or '..' component or a zero, by an error of ours; no others."""
    path = "/".join(parts)
    if {"", ".", ".."} & set(path.split("/")) or "\0" in path:
        with pytest.raises(SecurityError):
            check_relative(path)
    else:
        assert check_relative(path) == path


@given(
    st.text("ab/", max_size=8).filter(lambda text: not text.startswith("/") and not text.endswith("/")), WORDS
)
def test_parent_undoes_join(bucket: str, name: str) -> None:
    """parent(join(bucket, name)) == bucket, with '' for the base."""
    assert parent(join(bucket, name)) == bucket
