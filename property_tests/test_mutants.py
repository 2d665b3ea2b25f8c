"""The list of seeded defects is in step with the product, and the search for them works."""

from __future__ import annotations

from pathlib import Path

import pytest

from property_tests.mutants import is_applicable, judge, snapshot
from property_tests.seeded.everything import MUTANTS
from property_tests.seeded.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_applies(mutant: Mutant) -> None:
    """What a mutant replaces occurs once and leaves what is Python; ``make mutants`` hunts them all."""
    assert is_applicable(mutant)


def test_names_are_unique() -> None:
    """A name says which defect it is."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["the sweep takes held files", pytest.param("files are not synced", marks=pytest.mark.nightly)]
)
def test_a_mutant_is_killed(name: str, tmp_path: Path) -> None:
    """The search finds a defect of the product from outside, in a process of its own."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    snapshot(tmp_path)
    assert judge(mutant, tmp_path).killer
