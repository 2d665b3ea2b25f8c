"""What docs/reading.md says of options and of tests is complete, and true."""

from __future__ import annotations

import re
from pathlib import Path

from filesink.data_source.format_options import FORMAT_OPTIONS
from filesink.data_source.reading.options import NAMES

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "reading.md").read_text()


def test_every_option_is_documented() -> None:
    """The table has each option of reading, and none too many; those of a format are on another page."""
    table = PAGE.partition("| option | meaning |")[2].partition("\n\n")[0]
    documented = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])
    }
    assert documented == set(NAMES) - set(FORMAT_OPTIONS)


def test_every_claim_has_its_test() -> None:
    """Each test that the page names is there."""
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    there = {
        name
        for file in TESTS.rglob("*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 10
    assert named - there == set()
