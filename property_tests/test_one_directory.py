"""Every engine reads the rows of its version, whatever became of the drivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from property_tests.one_directory.trial import trial

HERE = ("duckdb-listing", "polars-listing", "delta-rs", "pyiceberg")

pytestmark = pytest.mark.slow


def test_some_kills(tmp_path: Path) -> None:
    """Engines of this environment: after each of eight epochs, and after each of three kills."""
    verdict = trial(str(tmp_path / "base"), epochs=8, kills=3, names=HERE, pythons={})
    assert (verdict.wrong, verdict.missing) == ([], {})
    assert verdict.kills.total() > 0
    assert min(verdict.looks[name] for name in HERE) >= 8


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_two_hundred_kills(tmp_path: Path) -> None:
    """The same with Spark by its log, fifty epochs, and two hundred kills."""
    names = (*HERE, "spark-log")
    verdict = trial(str(tmp_path / "base"), epochs=50, kills=200, names=names, pythons={})
    assert (verdict.wrong, verdict.missing) == ([], {})
    assert verdict.kills.total() > 150
    assert min(verdict.looks[name] for name in names) >= 50
