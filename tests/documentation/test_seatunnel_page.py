"""``docs/seatunnel.md`` is whole: each claim has its test, and each option of SeaTunnel's has its row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from filesink.jobs.model.options import words_of
from filesink.jobs.plugins.files.writing import FileWriting

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "seatunnel.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| SeaTunnel ")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_each_row_names_a_test_that_is_there(row: str) -> None:
    """And says something of its own."""
    _, option, ours, test, _ = row.split("|")
    path, function = re.fullmatch(r"\[✔\]\(\.\./(\S+)\)(?:<!-- (\w+) -->)?", test.strip()).groups()
    source = (ROOT / path).read_text()
    assert not function or re.search(rf"^\s*def {function}\(", source, re.MULTILINE), test
    assert option.strip()
    assert ours.strip()


def test_each_option_of_a_sink_of_files_is_there() -> None:
    """Those that are refused or mean nothing here as well."""
    refused = {*FileWriting.refused, *FileWriting.without_effect}
    # The last of its words is SeaTunnel's; the others are ours, which job files may use as well.
    known = refused | {words[-1] for _, words, _ in words_of(FileWriting)}
    told = set(re.findall(r"`(\w+)(?: = \w+)?`", PAGE))
    assert known - told == set()
