"""What docs/reading.md says of tests is true."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "reading.md").read_text()


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
