"""Tables of docs/ that the sources know are as the sources say; what people write stays short."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.fixture(name="tables")
def _tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program; programs of that directory find one another there."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    return importlib.import_module("tables")


@pytest.fixture(name="words")
def _words(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    return importlib.import_module("words")


def test_tables_are_as_the_sources_say(tables: ModuleType) -> None:
    """After a change of the sources: ``python docs/site/tables.py``."""
    stale = [page.name for page in PAGES if tables.page(page.read_text()) != page.read_text()]
    assert stale == []


def test_every_table_has_one_place(tables: ModuleType) -> None:
    """None is made for nobody, and none has a name that is not known."""
    found = [name for page in PAGES for name in tables.names(page.read_text())]
    assert sorted(found) == sorted(tables.TABLES)


def test_an_invariant_that_a_check_names_is_known(tables: ModuleType) -> None:
    """And each is checked by some history, but for that of secrets, which other tests check."""
    sources = "".join(path.read_text() for path in (ROOT / "property_tests").rglob("*.py"))
    named = set(re.findall(r'"(I\d+): ', sources))
    assert named == set(tables.INVARIANTS) - {"I11"}


def test_an_old_table_is_made_anew(tables: ModuleType) -> None:
    """Only what is between the comments."""
    head, end = "<!-- made by docs/site/tables.py: events -->\n", "<!-- end -->\nAfter."
    made = tables.page(f"Before.\n{head}\n| old |\n\n{end}")
    assert made.startswith(f"Before.\n{head}\n| event |")
    assert made.endswith(f"|\n\n{end}")
    assert "old" not in made


def test_a_word_is_counted_if_a_person_wrote_it(words: ModuleType) -> None:
    """Neither code, links, comments and bars of tables, nor what a program made."""
    text = "# Two words\n\n[a link](to/somewhere.md) | - |\n\n```python\nnot = this\n```\n\n    nor this\n\n"
    text += "<!-- nor\nthis -->\n"
    assert words.by_hand(text) == 4
    assert words.by_hand(f"{text}<!-- made by x: y -->\n| nor this |\n<!-- end -->\nmore\n") == 5
    assert words.by_hand(f"{text}<!-- Made by x. Do not edit. -->") == 0


def test_what_people_wrote_can_be_read(words: ModuleType) -> None:
    """All pages together have at most 20,000 words by hand, the README 900."""
    counted = words.counted()
    assert sum(counted.values()) <= words.MOST
    assert counted["README.md"] <= 900
