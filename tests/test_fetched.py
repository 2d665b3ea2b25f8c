"""What tests fetch or make once: whole, or not at all."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fetched import fetched, kept

TOUCH = "import pathlib, sys; pathlib.Path(sys.argv[1], 'file').touch(); print(file=open(sys.argv[2], 'a'))"


def test_many_who_need_it_make_it_once(tmp_path: Path) -> None:
    """Those who come later wait, and find it whole."""

    def make(_: int) -> list[str]:
        log = str(tmp_path / "log")
        found = kept("it", lambda home: [sys.executable, "-c", TOUCH, str(home), log], home=tmp_path / "home")
        return [path.name for path in found.iterdir()]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == [["file"]] * 4
    assert (tmp_path / "log").read_text() == "\n"


def test_what_cannot_be_fetched_skips_the_test_and_leaves_nothing(tmp_path: Path) -> None:
    """The next one tries again."""
    with pytest.raises(pytest.skip.Exception, match="it@1"):
        fetched("it@1", lambda home: [sys.executable, "-c", TOUCH, str(home)], home=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["it@1.lock"]
