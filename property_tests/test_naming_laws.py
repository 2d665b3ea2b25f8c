"""Laws of names: what we make we know again, and nothing else."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

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
TEXT = st.text(max_size=60)


@given(PREFIXES, SUFFIXES, st.integers(0, 10**6), WORDS)
def test_a_finished_name_tells_whose_it_is(prefix: str, suffix: str | None, counter: int, sink: str) -> None:
    """The tag of the sink is found in every part's name, whatever prefix and suffix are."""
    tag = sink_tag(sink)
    names = OutputFileConfig(part_prefix=prefix, part_suffix=suffix)
    name = names.name_with(new_part_id(tag, 7, IDS), counter, names.suffix(".json"))
    assert name.startswith(f"{prefix}-{tag}-")
    assert name[0] not in "._"
    assert parse_hidden(name) is None


@given(WORDS, WORDS, st.integers(0, 10**18 - 1))
def test_a_hidden_name_comes_back(target: str, sink: str, slot: int) -> None:
    """parse(str(x)) == x, and readers skip it: it begins with a dot and ends like no part file."""
    name = HiddenName(target=target, tag=sink_tag(sink), slot=slot, attempt=IDS.uuid())
    assert parse_hidden(str(name)) == name
    assert str(name).startswith(".")
    assert not re.search(r"\.(parquet|json|csv|txt|orc|avro)$", str(name))


@given(TEXT)
def test_names_of_others_are_not_ours(name: str) -> None:
    """A name that is not exactly of our making is never taken for a hidden file."""
    found = parse_hidden(name)
    assert found is None or str(found) == name


@given(st.lists(st.text("ab.", min_size=1, max_size=3), max_size=4))
def test_a_checked_path_stays_below_the_base(parts: list[str]) -> None:
    """What passes the check has no empty, '.' or '..' component."""
    path = "/".join(parts)
    try:
        check_relative(path)
    except ValueError:
        raise AssertionError("not a typed error") from None
    except Exception:  # noqa: BLE001 - refused is fine
        return
    assert not {"", ".", ".."} & set(path.split("/"))


@given(
    st.text("ab/", max_size=8).filter(lambda text: not text.startswith("/") and not text.endswith("/")), WORDS
)
def test_parent_undoes_join(bucket: str, name: str) -> None:
    """parent(join(bucket, name)) == bucket, with '' for the base."""
    assert parent(join(bucket, name)) == bucket
