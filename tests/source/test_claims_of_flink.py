"""What Flink's tests of its file source claim is tested here, too."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
#: A test of Flink, and those of ours with its claims.
CLAIMS = {
    "ContinuousFileSplitEnumeratorTest": (
        "test_a_file_that_was_found_waits_until_somebody_asks",
        "test_a_file_that_comes_while_a_query_waits_is_in_its_next_batch",
        "test_a_reader_that_died_leaves_its_files_to_the_next",
    ),
    "FileSourceTextLinesITCase": (
        "test_bounded_text",
        "test_bounded_text_with_a_task_that_fails",
        "test_bounded_text_with_another_driver",
        "test_continuous_text",
        "test_continuous_text_with_a_task_that_fails",
        "test_continuous_text_with_drivers_that_follow_one_another",
    ),
    "BlockSplittingRecursiveEnumeratorTest": (
        "test_split_files_have_all_records_once",
        "test_compressed_files_are_never_split",
        "test_files_of_nested_directories",
        "test_hidden_files_and_directories",
    ),
}


def test_every_claim_of_flink_has_its_test() -> None:
    """None of them has gone."""
    there = {
        name
        for file in TESTS.rglob("*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert {name for names in CLAIMS.values() for name in names} - there == set()
