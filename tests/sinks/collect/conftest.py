"""Paths of ``CollectSink``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sinks.collect.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A path of the test's own, in which nothing is yet."""
    return Site(tmp_path / "collected")
