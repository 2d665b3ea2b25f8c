"""Sinks of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sinks.letters import Letters


@pytest.fixture
def letters(tmp_path: Path) -> Letters:
    """A sink below the test's directory."""
    (tmp_path / "box").mkdir()
    return Letters(tmp_path)
