"""Erasure and retention under real kills beside a running stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from property_tests.killed_operations import trial

pytestmark = pytest.mark.slow


def test_some_kills(tmp_path: Path) -> None:
    """Equal to the expected multiset for readers of either kind, and right at each look before."""
    assert trial(str(tmp_path / "base"), 6) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    """The same, with five times forty."""
    assert trial(str(tmp_path / "base"), 40, seed) > 0
